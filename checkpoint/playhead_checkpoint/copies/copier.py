"""Copies stored states to a tape: packed states without credentials, and each node once.

Without its credential a node has another digest, and so have the nodes above that refer to it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

import msgspec

from playhead_checkpoint.copies.cleaning import Redacts, cleaned
from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import BYTES, TEXT, Node, pack
from playhead_checkpoint.tree.reading import Load
from playhead_checkpoint.tree.stored_nodes import roots_of
from playhead_core.errors import CorruptTape

if TYPE_CHECKING:
    from playhead_checkpoint.store.protocol import Checkpoint

_MOST_RUNS: Final = 64
"""Number of runs whose copied nodes are remembered; nodes of other runs are copied again."""
_PIECES: Final = (TEXT, BYTES)
_T = TypeVar("_T")

Digests: TypeAlias = dict[bytes, bytes]
"""Digests of nodes on the tape by their digests in the store; they differ after a redaction."""


class Copy(NamedTuple):
    """The copy of a put on a tape, in addition to its fact; one MessagePack array.

    ``run``, ``span``, ``time_ns``, ``labels``: as in `Lineage`. ``nodes``: those that no earlier copy of
    the run holds, children before parents.
    """

    run: bytes
    span: bytes
    time_ns: int
    labels: list[str]
    packed: bytes
    nodes: list[bytes]


class NotesCopy(NamedTuple):
    """The copy of notes: packed notes by key, and whether they replace earlier ones."""

    packed: dict[str, bytes]
    replace: bool
    nodes: list[bytes]


_COPY: Final = msgspec.msgpack.Decoder(Copy)
_NOTES_COPY: Final = msgspec.msgpack.Decoder(NotesCopy)


def read_copy(data: bytes) -> Copy:
    """Decode the copy of a put from the body of its fact. `CorruptTape` if it is not one."""
    return _read(_COPY, data)


def read_notes_copy(data: bytes) -> NotesCopy:
    """Decode the copy of notes. `CorruptTape` if it is not one."""
    return _read(_NOTES_COPY, data)


def _read(decoder: msgspec.msgpack.Decoder[_T], data: bytes) -> _T:
    try:
        return decoder.decode(data)
    except (msgspec.MsgspecError, ValueError, RecursionError) as problem:
        raise CorruptTape("a copy of a checkpoint cannot be read", cause=str(problem)) from None


class _Run:
    """The nodes on the tape of a run, and how many bytes it may still take."""

    def __init__(self, left_bytes: int) -> None:
        self.left_bytes = left_bytes
        self.there: Digests = {}


class StateCopier:
    """Copies stored states. Safe from any thread: at worst a node is copied twice.

    ``most_bytes``: limit for all copies of a run. Beyond it nothing more is copied.
    """

    def __init__(self, redactor: Redacts, most_bytes: int) -> None:
        self._redactor = redactor
        self._most_bytes = most_bytes
        self._runs: OrderedDict[bytes, _Run] = OrderedDict()

    def copy(
        self,
        run: bytes,
        load: Load,
        stored: Checkpoint,
        packed: bytes,
        fresh: Mapping[bytes, Node],
        roots: Collection[bytes],
    ) -> bytes | None:
        """Return the copy of a put for the tape of ``run``; None if the limit of that run is reached.

        Other parameters: see `playhead_checkpoint.copies.reporting.report_state`.
        """
        known, lineage = self._of(run), stored.lineage
        writing = self._writing(known, load, fresh, roots)
        if writing is None:
            return None
        labels = list(map(self._redactor.text, lineage.labels))
        kept = writing.packed(packed, roots)
        copy = Copy(lineage.run, lineage.span, lineage.time_ns, labels, kept, writing.written)
        return self._spent(known, writing, pack(copy))

    def copy_notes(
        self,
        run: bytes,
        load: Load,
        packed: Mapping[str, bytes],
        fresh: Mapping[bytes, Node],
        *,
        replace: bool,
    ) -> bytes | None:
        """Return the copy of notes; else as `copy`."""
        known = self._of(run)
        roots = {key: roots_of(one) for key, one in packed.items()}
        writing = self._writing(known, load, fresh, set[bytes]().union(*roots.values()))
        if writing is None:
            return None
        kept = {key: writing.packed(one, roots[key]) for key, one in packed.items()}
        return self._spent(known, writing, pack(NotesCopy(kept, replace, writing.written)))

    def _writing(
        self, known: _Run, load: Load, fresh: Mapping[bytes, Node], roots: Collection[bytes]
    ) -> _Writing | None:
        """Return a writer of the nodes that the tape lacks; None if there is no room for them."""
        lacking = _lacking(known, load, fresh, roots) if known.left_bytes > 0 else None
        if lacking is None:
            known.left_bytes = 0
            return None
        return _Writing(known.there, lacking, self._redactor)

    @staticmethod
    def _spent(known: _Run, writing: _Writing, data: bytes) -> bytes | None:
        known.left_bytes -= len(data)
        if known.left_bytes < 0:
            return None
        known.there.update(writing.new)
        return data

    def _of(self, run: bytes) -> _Run:
        found = self._runs.get(run)
        if found is None:
            found = self._runs[run] = _Run(self._most_bytes)
            while len(self._runs) > _MOST_RUNS:
                self._runs.popitem(last=False)
        return found


def _lacking(
    known: _Run, load: Load, fresh: Mapping[bytes, Node], roots: Collection[bytes]
) -> dict[bytes, Node] | None:
    """Return the nodes of packed values that the tape lacks; None if they are too large."""
    found: dict[bytes, Node] = {}
    left_bytes = known.left_bytes
    ahead = {one for one in roots if one not in known.there}
    while ahead:
        absent = [one for one in ahead if one not in fresh]
        loaded: Mapping[bytes, bytes] = load(absent) if absent else {}
        below: set[bytes] = set()
        for digest in ahead:
            node = fresh.get(digest) or nodes.opened(digest, loaded[digest])
            found[digest] = node
            left_bytes -= len(node.data)
            below.update(ref.digest for ref in node.below)
        if left_bytes < 0:
            return None
        ahead = {one for one in below if one not in found and one not in known.there}
    return found


class _Writing:
    """Writes nodes without credentials, children first."""

    def __init__(self, there: Digests, lacking: Mapping[bytes, Node], redactor: Redacts) -> None:
        self._there = there
        self._lacking = lacking
        self._redactor = redactor
        self._redacted_texts: set[bytes] = set()
        self._pieces: dict[bytes, bytes] = {}
        """Pieces of long texts that were redacted as a whole."""
        self.new: Digests = {}
        self.written: list[bytes] = []

    def packed(self, packed: bytes, roots: Iterable[bytes]) -> bytes:
        """Return a packed value for the tape; writes its nodes."""
        return self._linked(cleaned(packed, self._redactor), roots)

    def _linked(self, data: bytes, below: Iterable[bytes]) -> bytes:
        """Return the data with the digests that its child nodes have on the tape."""
        for digest in below:
            there = self._digest(digest)
            if there != digest:
                data = data.replace(digest, there)
        return data

    def _digest(self, digest: bytes) -> bytes:
        """Return the digest of a node on the tape; writes the node if it is missing."""
        found = self._there.get(digest) or self.new.get(digest)
        if found is None:
            node = self._lacking[digest]
            if node.level and node.kind in _PIECES and digest not in self._redacted_texts:
                self._mask(node)
            data = self._linked(self._clean(digest, node), (ref.digest for ref in node.below))
            found = digest if data == node.data else nodes.digest_of(data)
            self.new[digest] = found
            self.written.append(data)
        return found

    def _clean(self, digest: bytes, node: Node) -> bytes:
        if node.level:
            return node.data
        if node.kind in _PIECES:
            known = self._pieces.get(digest)
            return known or nodes.leaf(node.kind, self._redactor.masked(bytes(node.payload)))
        payload = bytes(node.payload)
        clean = cleaned(payload, self._redactor)
        return node.data if clean is payload else node.data[:2] + clean

    def _mask(self, above: Node) -> None:
        """Redact the pieces of a text as one, because a credential may span two pieces."""
        pieces = list(self._leaves(above))
        masked = self._redactor.masked(b"".join(bytes(node.payload) for _, node in pieces))
        at = 0
        for digest, node in pieces:
            self._pieces.setdefault(digest, nodes.leaf(node.kind, masked[at : at + node.length]))
            at += node.length

    def _leaves(self, above: Node) -> Iterator[tuple[bytes, Node]]:
        for ref in above.below:
            node = self._lacking.get(ref.digest)
            if node is not None and node.level:
                self._redacted_texts.add(ref.digest)
                yield from self._leaves(node)
            elif node is not None:
                yield ref.digest, node
