"""Reads all tables of checkpoints, and finds damaged, missing and miscounted rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from playhead_checkpoint.store.rows import COLUMNS, Session, read_row, rows_after
from playhead_checkpoint.tree.stored_nodes import packed_roots, roots_of, verified_below
from playhead_core.errors import CorruptTape


class Damage(NamedTuple):
    """A damaged ``checkpoint``, ``note`` or ``node`` with its id, or the ``database``.

    ``run``: the run of the checkpoint, or empty.
    """

    what: str
    where: str
    problem: str
    run: bytes = b""

    def __str__(self) -> str:
        return f"{self.what} {self.where}: {self.problem}"


class DamageSearch:
    """Checks all rows against their digests, their references, and the counts of uses."""

    def __init__(self, database: Session) -> None:
        """``database``: a connection that sees one state of the tables."""
        self._database = database
        self._used: set[bytes] = set()
        self._counted: Counter[bytes] = Counter()
        """Number of references to each node from counted rows."""
        self._lost: set[bytes] = set()
        """Nodes that are damaged or missing, and those above them."""

    def damages(self) -> Iterator[Damage]:
        """Yield all damages."""
        query = "SELECT checkpoint, note, node FROM counted"
        checkpoint, note, node = self._database.execute(query).fetchone()
        yield from self._packed(checkpoint, note)
        there: set[bytes] = set()
        counts: dict[bytes, int] = {}
        for id, digest, size, data, count in self._nodes():
            if not isinstance(digest, bytes):
                yield Damage("node", repr(digest)[:80], "it has no digest")
                continue
            there.add(digest)
            if id <= node:
                counts[digest] = count
            try:
                self._use(verified_below(digest, size, data), id <= node)
            except CorruptTape as problem:
                self._lost.add(digest)
                yield Damage("node", _name(digest), problem.cause or problem.what)
        for digest in self._used - there:
            self._lost.add(digest)
            yield Damage("node", _name(digest), "it is missing")
        yield from self._miscounted(counts)
        if self._lost:
            yield from self._concerned()

    def _use(self, digests: set[bytes], counted: bool) -> None:
        self._used |= digests
        if counted:
            self._counted.update(digests)

    def _packed(self, last_checkpoint: int, last_note: int) -> Iterator[Damage]:
        """Check checkpoints and notes, without their nodes. Count uses up to the given rows."""
        for seq, *row in rows_after(self._database, COLUMNS, "checkpoint", "seq"):
            try:
                self._use(packed_roots(read_row(row).packed), seq <= last_checkpoint)
            except CorruptTape as problem:
                yield Damage("checkpoint", _name(row[0]), problem.cause or problem.what, _run(row[1]))
        for id, checkpoint, packed in rows_after(self._database, "checkpoint, packed", "note", "id"):
            try:
                self._use(packed_roots(packed), id <= last_note)
            except CorruptTape as problem:
                yield Damage("note", _name(checkpoint), problem.cause or problem.what)

    def _miscounted(self, counts: dict[bytes, int]) -> Iterator[Damage]:
        for digest in counts.keys() - self._used:
            yield Damage("node", _name(digest), "it is used by nothing")
        for digest, count in counts.items():
            used = self._counted[digest]
            if digest in self._used and count != used:
                yield Damage(
                    "node", _name(digest), f"it is used {used} times, and said to be {count} times"
                )

    def _concerned(self) -> Iterator[Damage]:
        """Yield the checkpoints that cannot be read because of damaged nodes."""
        before = 0
        while before != len(self._lost):
            before = len(self._lost)
            for _, digest, size, data, _ in self._nodes():
                if isinstance(digest, bytes) and digest not in self._lost:
                    if not self._lost.isdisjoint(verified_below(digest, size, data)):
                        self._lost.add(digest)
        notes = "note LEFT JOIN checkpoint ON checkpoint.id = note.checkpoint"
        rows = (
            rows_after(self._database, "id, run, packed", "checkpoint", "seq"),
            rows_after(self._database, "note.checkpoint, run, note.packed", notes, "note.id"),
        )
        reported: set[bytes] = set()
        for _, id, run, packed in chain(*rows):
            if id not in reported and not self._lost.isdisjoint(roots_of(packed)):
                reported.add(id)
                yield Damage("checkpoint", _name(id), "nodes of it are damaged or missing", _run(run))

    def _nodes(self) -> Iterator[Any]:
        """Yield id, digest, size, data and count of uses of each node."""
        columns = "digest, size, data, coalesce(count, -1)"
        return rows_after(self._database, columns, "node LEFT JOIN use_count ON node = id", "id")


def _name(id: object) -> str:
    return id.hex()[:32] if isinstance(id, bytes) else repr(id)[:80]


def _run(run: object) -> bytes:
    return run if isinstance(run, bytes) else b""
