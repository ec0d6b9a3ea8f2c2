"""From nodes to a value. All that is read is hostile: digests, kinds, depth and sizes are checked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, TypeAlias

from playhead_checkpoint.values import nodes
from playhead_checkpoint.values.nodes import DICT, LIST, TEXT, Ref, damaged, type_of
from playhead_checkpoint.values.types import Types
from playhead_semconv.errors import CorruptTape

Load: TypeAlias = Callable[[Collection[bytes]], Mapping[bytes, bytes]]
"""From digests to nodes, those that are there."""

LARGEST_STATE_BYTES: Final = 1 << 29
"""Bytes of nodes that one value may take, a node counted as often as it stands there."""
LARGEST_PUT_BYTES: Final = LARGEST_STATE_BYTES // 2
"""What a state may take that is put: less, so that it can be read."""
_REF_BYTES: Final = 256
"""What a node takes beside its own bytes while it is read."""


class Nodes:
    """Nodes that were loaded and verified."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._loaded: dict[bytes, bytes] = {}

    def want(self, refs: Iterable[Ref]) -> None:
        """Load these at once. `CorruptTape`: one is missing or damaged."""
        digests = {ref.digest for ref in refs} - self._loaded.keys()
        found: Mapping[bytes, bytes] = self._load(digests) if digests else {}
        for digest in digests:
            if digest not in found:
                raise damaged(f"node {digest.hex()[:16]} is missing")
            self._loaded[digest] = nodes.checked(digest, found[digest])

    def want_all(self, refs: Iterable[Ref]) -> None:
        """Load these and all below them, level by level. `CorruptTape`: as `want`, or it is too much."""
        seen: set[Ref] = set()
        ahead = set(refs)
        size = 0
        while ahead:
            self.want(ahead)
            seen |= ahead
            below: set[Ref] = set()
            for ref in ahead:
                node = self._loaded[ref.digest]
                size += len(node)
                below.update(nodes.refs_of(ref, node))
            if size > LARGEST_STATE_BYTES:
                raise damaged(f"more than {LARGEST_STATE_BYTES} bytes of nodes")
            ahead = below - seen

    def __getitem__(self, ref: Ref) -> bytes:
        return self._loaded[ref.digest]


class Reader:
    """Makes values of packed ones."""

    def __init__(self, load: Load, types: Types) -> None:
        self._nodes = Nodes(load)
        self._types = types
        self._room = LARGEST_STATE_BYTES
        self._depth = 0

    def value(self, data: bytes) -> Any:
        """The value, whole. Equal parts are objects of their own.

        `CorruptTape`: a node is missing or damaged, or the value is nested too deep or too large.
        """
        self._nodes.want_all(nodes.refs_in(data))
        try:
            return nodes.unpack(data, self._extension)
        except RecursionError:
            raise damaged("nested too deep") from None

    def _extension(self, code: int, data: memoryview) -> Any:
        self._depth += 1
        if self._depth > nodes.MOST_DEPTH:
            raise damaged(f"nested deeper than {nodes.MOST_DEPTH} levels")
        if code == nodes.TYPED:
            found = self._types.together(*nodes.unpacked_typed(data, self._extension))
        elif code == nodes.REF:
            found = self._whole(nodes.unpacked_ref(data))
        else:
            raise damaged(f"an extension {code}")
        self._depth -= 1
        return found

    def _whole(self, ref: Ref) -> Any:
        """What a ref stands for."""
        pieces: list[bytes] = []
        found: Any = [] if ref.kind == LIST else {}
        for one in self._leaves(ref):
            data = nodes.payload(one, self._nodes[one])
            if one.kind not in (LIST, DICT):
                pieces.append(data)
                continue
            entries: Any = nodes.unpack(data, self._extension)
            if (
                type_of(entries) is not (list if one.kind == LIST else dict)
                or len(entries) != one.length
            ):
                raise damaged(f"node {one.digest.hex()[:16]} does not hold {one.length} entries")
            found.extend(entries) if one.kind == LIST else found.update(entries)
        if ref.kind in (LIST, DICT):
            return found
        data = b"".join(pieces)
        if len(data) != ref.length:
            raise damaged(f"{len(data)} bytes instead of {ref.length}")
        try:
            return data.decode() if ref.kind == TEXT else data
        except UnicodeDecodeError as problem:
            raise damaged(str(problem)) from None

    def _leaves(self, ref: Ref) -> list[Ref]:
        refs = [ref]
        while refs[0].level:
            refs = [under for one in refs for under in self._below(one)]
        for one in refs:
            self._spend(one)
        return refs

    def _below(self, ref: Ref) -> list[Ref]:
        self._spend(ref)
        return nodes.below(ref, self._nodes[ref])

    def _spend(self, ref: Ref) -> None:
        self._room -= len(self._nodes[ref]) + _REF_BYTES
        if self._room < 0:
            raise CorruptTape(f"a stored state takes more than {LARGEST_STATE_BYTES} bytes")
