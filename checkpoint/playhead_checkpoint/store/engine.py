"""The part that all engines share: it makes rows of a state, and a state of rows."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, NamedTuple, Self, TypeAlias, TypeVar

from blake3 import blake3

from playhead_checkpoint.copies import reporting
from playhead_checkpoint.store.protocol import Checkpoint, Contents, Freed, Lineage
from playhead_checkpoint.tree.difference import StateChange, StateComparison
from playhead_checkpoint.tree.nodes import Node, pack, parsed
from playhead_checkpoint.tree.packing import Packer
from playhead_checkpoint.tree.ranges import Stretches
from playhead_checkpoint.tree.reading import Reader
from playhead_checkpoint.tree.stored_nodes import NodeCache
from playhead_checkpoint.tree.types import TYPES, Types
from playhead_core.errors import CheckpointTaken, CorruptTape, UsageError

ID_BYTES: Final = 16
MOST_LABELS: Final = 64
LONGEST_LABEL: Final = 256
_NONE: Final = Lineage()
LONGEST_THREAD: Final = 1024
_T = TypeVar("_T")
_R = TypeVar("_R")
KINDS: Final = ("auto", "manual", "framework", "workspace")


Fresh: TypeAlias = Mapping[bytes, Node]
"""Nodes by digest, those below before those above, of which none is known to be stored."""


class Row(NamedTuple):
    """A checkpoint with its packed state."""

    checkpoint: Checkpoint
    packed: bytes


class KnownNodes:
    """What this process knows to be stored: digests of nodes, and stretches of states.

    When nodes were deleted a new one takes its place: this one is not corrected.
    """

    def __init__(self) -> None:
        self.digests: set[bytes] = set()
        self.stretches = Stretches()

    def fresh(self, kept: Mapping[bytes, bytes]) -> dict[bytes, Node]:
        """Those nodes that are not known to be stored."""
        return {digest: parsed(node) for digest, node in kept.items() if digest not in self.digests}


class Put(NamedTuple):
    """A checkpoint to be written, and those of its nodes that ``known`` does not have.

    ``replace``: it wins over an earlier one of the same id. Without ``known`` the store looks for the
    other nodes. ``roots``: the nodes that the packed state refers to; None: they are looked for in it.
    """

    row: Row
    fresh: Fresh
    known: KnownNodes | None
    replace: bool
    roots: Collection[bytes] | None = None


class Notes(NamedTuple):
    """Packed notes of one checkpoint by key; ``replace``: they win over earlier ones."""

    id: bytes
    packed: Mapping[str, bytes]
    replace: bool
    fresh: Fresh
    known: KnownNodes | None


class Packed(NamedTuple):
    """A stored checkpoint as it was read: its row, and its packed notes."""

    row: Row
    notes: Mapping[str, bytes]


class NodesGone(Exception):
    """A deletion took nodes that this process took for stored."""


class CheckpointEngine(ABC):
    """A `CheckpointStore` over an engine that keeps rows and nodes.

    An engine says in `_known` which nodes are stored, as far as it knows, so that they are not sent
    again. When it learns better, `_known` is another one, and a write refuses what was collected before.
    """

    def __init__(self, types: Types = TYPES) -> None:
        self._types = types
        self._known = KnownNodes()
        self._cache = NodeCache()

    @abstractmethod
    def write(self, put: Put) -> Row:
        """Keep a row and nodes, those below before those above, in one transaction.

        The row that is stored: an earlier one of the same id, if there is one. `NodesGone`: not all of
        ``known`` is there any longer.
        """

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """Holds one view of the store while several reads are made."""

    @abstractmethod
    def packed(self, id: bytes) -> Packed:
        """Read the packed state of an id. `CheckpointUnknown`."""

    @abstractmethod
    def row(self, id: bytes) -> Row:
        """The row of an id. `CheckpointUnknown`."""

    @abstractmethod
    def nodes(self, digests: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Nodes by digest, those that are there. They need not be verified."""

    @abstractmethod
    def write_notes(self, notes: Notes) -> None:
        """Keep packed notes and nodes, in one transaction; else as `write`."""

    @abstractmethod
    def packed_notes(self, id: bytes) -> Mapping[str, bytes]:
        """The notes of a checkpoint, packed, in the order in which they came."""

    def put(
        self,
        state: Any,
        lineage: Lineage = _NONE,
        types: Types | None = None,
        *,
        replace: bool = False,
    ) -> Checkpoint:
        """Keep a state; see `CheckpointStore.put`."""
        _check(lineage)
        while True:
            known = self._known
            packer = Packer(types or self._types, known.stretches)
            packed = packer.state(state)
            fresh = known.fresh(packer.kept)
            wanted = _row(packed, packer.logical_bytes, lineage)
            try:
                stored = self.write(Put(wanted, fresh, known, replace, packer.roots))
            except NodesGone:
                continue
            if stored is wanted:
                known.stretches.add(packer.stretches)
                for digest, node in fresh.items():
                    self._cache.add(digest, node)
            elif not _same(stored.checkpoint, wanted.checkpoint):
                raise CheckpointTaken(f"another checkpoint has the id {wanted.checkpoint.id.hex()}")
            reporting.told(self.nodes, stored.checkpoint, packed, fresh, packer.roots)
            return stored.checkpoint

    def note(
        self, id: bytes, notes: Mapping[str, Any], types: Types | None = None, *, replace: bool = False
    ) -> None:
        """Say more about a checkpoint; see `CheckpointStore.note`."""
        while True:
            known = self._known
            packed: dict[str, bytes] = {}
            fresh: dict[bytes, Node] = {}
            for key, value in notes.items():
                packer = Packer(types or self._types, known.stretches)
                packed[key] = packer.state(value)
                fresh |= known.fresh(packer.kept)
            try:
                self.write_notes(Notes(id, packed, replace, fresh, known))
            except NodesGone:
                continue
            return reporting.noted(self.nodes, id, packed, fresh, replace=replace)

    def notes(self, id: bytes, types: Types | None = None) -> dict[str, Any]:
        """What was said about a checkpoint."""
        return self._read(types, lambda: self.packed_notes(id), _all_notes)

    def contents(self, id: bytes, types: Types | None = None) -> Contents:
        """A checkpoint, its state and notes; see `CheckpointStore.contents`."""
        return self._read(types, lambda: self.packed(id), _contents)

    def _read(
        self,
        types: Types | None,
        load: Callable[[], _T],
        made: Callable[[_T, Callable[[bytes], Any]], _R],
    ) -> _R:
        """Make the value of something packed."""
        reader = Reader(self.nodes, types or self._types, self._cache)
        try:
            return made(load(), reader.value)
        except CorruptTape:  # or it was deleted before all of its nodes were loaded: look in one view
            with self._reading():
                return made(load(), reader.value)

    def checkpoint(self, id: bytes) -> Checkpoint:
        """The checkpoint of an id; see `CheckpointStore.checkpoint`."""
        return self.row(id).checkpoint

    def state(self, id: bytes, types: Types | None = None) -> Any:
        """The state of a checkpoint; see `CheckpointStore.state`."""
        return self._read(types, lambda: self.row(id), _state)

    def difference(self, before: bytes, after: bytes) -> list[StateChange]:
        """What differs between two states; see `CheckpointStore.difference`."""
        with self._reading():
            one, other = self.row(before), self.row(after)
            comparison = StateComparison(self.nodes, self._types, self._cache)
            return list(comparison.changes(one.packed, other.packed))

    def damages(self) -> list[str]:
        """Return a line for each damaged or missing part; see `CheckpointStore.damages`."""
        return list(self._damages())

    @abstractmethod
    def _damages(self) -> Iterator[str]: ...

    @abstractmethod
    def delete(self, ids: Any) -> Freed:
        """Delete checkpoints; see `CheckpointStore.delete`."""

    @abstractmethod
    def close(self) -> None:
        """Close it."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _state(row: Row, value: Callable[[bytes], Any]) -> Any:
    return value(row.packed)


def _all_notes(packed: Mapping[str, bytes], value: Callable[[bytes], Any]) -> dict[str, Any]:
    return {key: value(one) for key, one in packed.items()}


def _contents(packed: Packed, value: Callable[[bytes], Any]) -> Contents:
    return Contents(packed.row.checkpoint, value(packed.row.packed), _all_notes(packed.notes, value))


def verified(row: Row) -> Row:
    """The row, when its packed state is that of its digest. `CorruptTape`: it is not."""
    if blake3(row.packed).digest() != row.checkpoint.digest:
        raise CorruptTape(f"checkpoint {row.checkpoint.id.hex()} differs from its digest")
    return row


def _check(one: Lineage) -> None:
    if not (
        len(one.run) in (0, 16)
        and len(one.span) in (0, 8)
        and len(one.parent) in (0, ID_BYTES)
        and len(one.id) in (0, ID_BYTES)
        and one.kind in KINDS
        and len(one.labels) <= MOST_LABELS
        and (not one.labels or max(map(len, one.labels)) <= LONGEST_LABEL)
        and len(one.thread) <= LONGEST_THREAD
        and len(one.name) <= LONGEST_LABEL
        and 0 <= one.time_ns < 1 << 63
    ):
        raise UsageError(
            f"a checkpoint cannot be stored: its name has {len(one.name)} characters, its thread "
            + f"{len(one.thread)}, and its lineage is {one!r:.400}",
            hint="a run has 16 bytes, a span 8, an id and a parent 16; kinds are "
            + f"{', '.join(KINDS)}; labels are at most {MOST_LABELS}, of {LONGEST_LABEL} characters; "
            + f"a name has at most {LONGEST_LABEL} characters, a thread {LONGEST_THREAD}",
        )


def _row(packed: bytes, size_bytes: int, given: Lineage) -> Row:
    digest = blake3(packed).digest()
    id, time_ns = given.id, given.time_ns
    if not id or not time_ns:
        run, span, kind, parent, thread = given.run, given.span, given.kind, given.parent, given.thread
        time_ns = time_ns or time.time_ns()
        told = (digest, run, span, kind, parent, time_ns, given.labels, thread, given.name)
        id = id or blake3(pack(told)).digest()[:ID_BYTES]
        given = Lineage(run, span, kind, parent, time_ns, given.labels, id, thread, given.name)
    return Row(Checkpoint(id, given, size_bytes, digest), packed)


def _same(stored: Checkpoint, wanted: Checkpoint) -> bool:
    """Whether a put found its own checkpoint. The time of a put that is repeated is another one."""
    one, other = stored.lineage, wanted.lineage
    return stored.digest == wanted.digest and (one.run, one.parent) == (other.run, other.parent)
