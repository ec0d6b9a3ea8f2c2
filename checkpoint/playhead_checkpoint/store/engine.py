"""The base of all checkpoint stores: packs states into rows and nodes, and reads them back."""

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
from playhead_checkpoint.tree.ranges import KnownRanges
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
"""New nodes by digest, children before parents; none of them is known to be stored."""


class Row(NamedTuple):
    """A checkpoint with its packed state."""

    checkpoint: Checkpoint
    packed: bytes


class KnownNodes:
    """Digests of nodes and ranges of states that are stored, as far as this process knows.

    After a deletion of nodes it is replaced by an empty one, never corrected.
    """

    def __init__(self) -> None:
        self.digests: set[bytes] = set()
        self.ranges = KnownRanges()

    def fresh(self, kept: Mapping[bytes, bytes]) -> dict[bytes, Node]:
        """Return the nodes that are not known to be stored."""
        return {digest: parsed(node) for digest, node in kept.items() if digest not in self.digests}


class Put(NamedTuple):
    """A checkpoint to be written, with the nodes that ``known`` does not have.

    ``replace``: it replaces an earlier one with the same id. Without ``known`` the store looks up the
    other nodes. ``roots``: the nodes that the packed state refers to; None: the store determines them.
    """

    row: Row
    fresh: Fresh
    known: KnownNodes | None
    replace: bool
    roots: Collection[bytes] | None = None


class Notes(NamedTuple):
    """Packed notes of one checkpoint by key; ``replace``: they replace earlier ones."""

    id: bytes
    packed: Mapping[str, bytes]
    replace: bool
    fresh: Fresh
    known: KnownNodes | None


class Packed(NamedTuple):
    """A stored checkpoint: its row and its packed notes."""

    row: Row
    notes: Mapping[str, bytes]


class NodesGone(Exception):
    """A deletion removed nodes that this process believed to be stored."""


class CheckpointEngine(ABC):
    """A `CheckpointStore` on top of an engine that stores rows and nodes.

    `_known` holds the nodes that are known to be stored, so that they are not sent again. After a
    deletion the engine replaces `_known`, and refuses writes that were prepared with the old one.
    """

    def __init__(self, types: Types = TYPES) -> None:
        self._types = types
        self._known = KnownNodes()
        self._cache = NodeCache()

    @abstractmethod
    def write(self, put: Put) -> Row:
        """Write a row and its nodes, children before parents, in one transaction.

        Returns the stored row: an earlier one with the same id, if there is one. `NodesGone` if some of
        ``known`` no longer exist.
        """

    @abstractmethod
    def _reading(self) -> AbstractContextManager[Any]:
        """Hold one consistent view of the store during several reads."""

    @abstractmethod
    def packed(self, id: bytes) -> Packed:
        """Read a row and its packed notes. `CheckpointUnknown`."""

    @abstractmethod
    def row(self, id: bytes) -> Row:
        """Return the row with an id. `CheckpointUnknown`."""

    @abstractmethod
    def nodes(self, digests: Collection[bytes]) -> Mapping[bytes, bytes]:
        """Return the existing nodes by digest. They need not be verified."""

    @abstractmethod
    def write_notes(self, notes: Notes) -> None:
        """Write packed notes and nodes in one transaction; else as `write`."""

    @abstractmethod
    def packed_notes(self, id: bytes) -> Mapping[str, bytes]:
        """Return the packed notes of a checkpoint, in the order in which they were added."""

    def put(
        self,
        state: Any,
        lineage: Lineage = _NONE,
        types: Types | None = None,
        *,
        replace: bool = False,
    ) -> Checkpoint:
        """Store a state; see `CheckpointStore.put`."""
        _check(lineage)
        while True:
            known = self._known
            packer = Packer(types or self._types, known.ranges)
            packed = packer.state(state)
            fresh = known.fresh(packer.kept)
            wanted = _row(packed, packer.logical_bytes, lineage)
            try:
                stored = self.write(Put(wanted, fresh, known, replace, packer.roots))
            except NodesGone:
                continue
            if stored is wanted:
                known.ranges.add(packer.ranges)
                for digest, node in fresh.items():
                    self._cache.add(digest, node)
            elif not _same(stored.checkpoint, wanted.checkpoint):
                raise CheckpointTaken(f"another checkpoint has the id {wanted.checkpoint.id.hex()}")
            reporting.report_state(self.nodes, stored.checkpoint, packed, fresh, packer.roots)
            return stored.checkpoint

    def note(
        self, id: bytes, notes: Mapping[str, Any], types: Types | None = None, *, replace: bool = False
    ) -> None:
        """Add notes to a checkpoint; see `CheckpointStore.note`."""
        while True:
            known = self._known
            packed: dict[str, bytes] = {}
            fresh: dict[bytes, Node] = {}
            for key, value in notes.items():
                packer = Packer(types or self._types, known.ranges)
                packed[key] = packer.state(value)
                fresh |= known.fresh(packer.kept)
            try:
                self.write_notes(Notes(id, packed, replace, fresh, known))
            except NodesGone:
                continue
            return reporting.report_notes(self.nodes, id, packed, fresh, replace=replace)

    def notes(self, id: bytes, types: Types | None = None) -> dict[str, Any]:
        """Return the notes of a checkpoint; see `CheckpointStore.notes`."""
        return self._read(types, lambda: self.packed_notes(id), _all_notes)

    def contents(self, id: bytes, types: Types | None = None) -> Contents:
        """Return checkpoint, state and notes; see `CheckpointStore.contents`."""
        return self._read(types, lambda: self.packed(id), _contents)

    def _read(
        self,
        types: Types | None,
        load: Callable[[], _T],
        unpack: Callable[[_T, Callable[[bytes], Any]], _R],
    ) -> _R:
        """Load packed data and unpack it with ``unpack``."""
        reader = Reader(self.nodes, types or self._types, self._cache)
        try:
            return unpack(load(), reader.value)
        except CorruptTape:  # or deleted before all nodes were loaded: read again in one view
            with self._reading():
                return unpack(load(), reader.value)

    def checkpoint(self, id: bytes) -> Checkpoint:
        """Return the checkpoint with an id; see `CheckpointStore.checkpoint`."""
        return self.row(id).checkpoint

    def state(self, id: bytes, types: Types | None = None) -> Any:
        """Return the state of a checkpoint; see `CheckpointStore.state`."""
        return self._read(types, lambda: self.row(id), _state)

    def difference(self, before: bytes, after: bytes) -> list[StateChange]:
        """Compare two states; see `CheckpointStore.difference`."""
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
        """Close the store."""

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
    """Return ``row`` if its packed state matches its digest, else raise `CorruptTape`."""
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


def _row(packed: bytes, size_bytes: int, lineage: Lineage) -> Row:
    digest = blake3(packed).digest()
    id, time_ns = lineage.id, lineage.time_ns
    if not id or not time_ns:
        run, span, kind, parent, thread = (
            lineage.run,
            lineage.span,
            lineage.kind,
            lineage.parent,
            lineage.thread,
        )
        time_ns = time_ns or time.time_ns()
        report_state = (digest, run, span, kind, parent, time_ns, lineage.labels, thread, lineage.name)
        id = id or blake3(pack(report_state)).digest()[:ID_BYTES]
        lineage = Lineage(run, span, kind, parent, time_ns, lineage.labels, id, thread, lineage.name)
    return Row(Checkpoint(id, lineage, size_bytes, digest), packed)


def _same(stored: Checkpoint, wanted: Checkpoint) -> bool:
    """Whether the stored checkpoint is that of a repeated put, apart from the time."""
    one, other = stored.lineage, wanted.lineage
    return stored.digest == wanted.digest and (one.run, one.parent) == (other.run, other.parent)
