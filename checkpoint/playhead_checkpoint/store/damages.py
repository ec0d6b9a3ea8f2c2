"""Reads all tables of checkpoints, and finds what is damaged, missing, or counted wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from typing import Any, Final, NamedTuple

from playhead_checkpoint.store.rows import COLUMNS, read_row
from playhead_checkpoint.store.stored_nodes import stretched
from playhead_checkpoint.values import nodes
from playhead_semconv.errors import CorruptTape

_AT_ONCE: Final = 500
"""Rows that are read at a time."""


class Damage(NamedTuple):
    """A part that is damaged: ``checkpoint``, ``note`` or ``node`` with its id, or the ``database``.

    ``run``: that of the checkpoint, or empty.
    """

    what: str
    where: str
    problem: str
    run: bytes = b""

    def __str__(self) -> str:
        return f"{self.what} {self.where}: {self.problem}"


class DamageSearch:
    """Compares everything with its digests, with what refers to it, and with the counts of uses."""

    def __init__(self, database: Any) -> None:
        """``database``: a connection that sees one state of the tables."""
        self._database = database
        self._used: Counter[bytes] = Counter()
        self._lost: set[bytes] = set()
        """Nodes that are damaged or missing, and those above them."""

    def damages(self) -> Iterator[Damage]:
        """Yield all damages."""
        yield from self._packed()
        counts: dict[bytes, int] = {}
        for digest, size, data, count in self._nodes():
            if not isinstance(digest, bytes):
                yield Damage("node", repr(digest)[:80], "it has no digest")
                continue
            counts[digest] = count
            try:
                self._used.update(_below(digest, size, data))
            except CorruptTape as problem:
                self._lost.add(digest)
                yield Damage("node", _name(digest), problem.cause or problem.what)
        for digest in self._used.keys() - counts.keys():
            self._lost.add(digest)
            yield Damage("node", _name(digest), "it is missing")
        yield from self._counted(counts)
        if self._lost:
            yield from self._concerned()

    def _packed(self) -> Iterator[Damage]:
        """Checkpoints and notes, without what they refer to."""
        for row in self._rows(COLUMNS, "checkpoint", "seq"):
            try:
                self._used.update(_roots(read_row(row).packed))
            except CorruptTape as problem:
                yield Damage("checkpoint", _name(row[0]), problem.cause or problem.what, _run(row[1]))
        for checkpoint, packed in self._rows("checkpoint, packed", "note", "id"):
            try:
                self._used.update(_roots(packed))
            except CorruptTape as problem:
                yield Damage("note", _name(checkpoint), problem.cause or problem.what)

    def _counted(self, counts: dict[bytes, int]) -> Iterator[Damage]:
        for digest in counts.keys() - self._used.keys():
            yield Damage("node", _name(digest), "it is used by nothing")
        for digest, count in counts.items():
            used = self._used[digest]
            if used and count != used:
                yield Damage(
                    "node", _name(digest), f"it is used {used} times, and said to be {count} times"
                )

    def _concerned(self) -> Iterator[Damage]:
        """The checkpoints that cannot be read because of nodes of theirs."""
        before = 0
        while before != len(self._lost):
            before = len(self._lost)
            for digest, size, data, _ in self._nodes():
                if isinstance(digest, bytes) and digest not in self._lost:
                    if not self._lost.isdisjoint(_below(digest, size, data)):
                        self._lost.add(digest)
        notes = "note LEFT JOIN checkpoint ON checkpoint.id = note.checkpoint"
        rows = (
            self._rows("id, run, packed", "checkpoint", "seq"),
            self._rows("note.checkpoint, run, note.packed", notes, "note.id"),
        )
        told: set[bytes] = set()
        for id, run, packed in chain(*rows):
            if id not in told and not self._lost.isdisjoint(_readable_roots(packed)):
                told.add(id)
                yield Damage("checkpoint", _name(id), "nodes of it are damaged or missing", _run(run))

    def _nodes(self) -> Iterator[Any]:
        """Digest, size, data and count of uses of each node."""
        return self._rows(
            "digest, size, data, coalesce(count, -1)", "node LEFT JOIN uses ON node = id", "id"
        )

    def _rows(self, columns: str, table: str, key: str) -> Iterator[Any]:
        """All rows of a table, some at a time."""
        question = (
            f"SELECT {key}, {columns} FROM {table} WHERE {key} > ? ORDER BY {key} LIMIT {_AT_ONCE}"
        )
        last = -1
        while rows := self._database.execute(question, (last,)).fetchall():
            yield from (row[1:] for row in rows)
            last = rows[-1][0]


def _roots(packed: bytes) -> set[bytes]:
    """The nodes that something packed refers to. `CorruptTape`."""
    return {ref.digest for ref in nodes.refs_in(packed)}


def _readable_roots(packed: bytes) -> set[bytes]:
    """The same; none, if it is damaged."""
    with suppress(CorruptTape):
        return _roots(packed)
    return set()


def _below(digest: bytes, size: object, data: object) -> set[bytes]:
    """The nodes that a stored node refers to. `CorruptTape`: it is not that of its digest."""
    return {ref.digest for ref in nodes.opened(digest, stretched(data, size)).below}


def _name(id: object) -> str:
    return id.hex()[:32] if isinstance(id, bytes) else repr(id)[:80]


def _run(run: object) -> bytes:
    return run if isinstance(run, bytes) else b""
