"""Nodes as engines store them: compressed where that pays, with their length beside."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final, NamedTuple

from blake3 import blake3

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import LARGEST_NODE_BYTES, Node, Ref, damaged
from playhead_core.errors import CorruptTape

_WORTH_BYTES: Final = 256
_LEVEL: Final = 1


class _Codecs(threading.local):
    """A compressor and a decompressor for each thread; small states do without zstandard."""

    def __init__(self) -> None:
        import zstandard

        self.compress: Any = zstandard.ZstdCompressor(level=_LEVEL).compress
        self.decompress: Any = zstandard.ZstdDecompressor().decompress
        self.size: Any = zstandard.frame_content_size
        self.error = zstandard.ZstdError


@cache
def _codecs() -> _Codecs:
    return _Codecs()


def squeezed(node: bytes) -> bytes:
    """The node as it is stored: shorter than it is, or itself."""
    if len(node) < _WORTH_BYTES or node[1]:  # digests do not get shorter
        return node
    data = _codecs().compress(node)
    return data if len(data) < len(node) else node


def stretched(data: object, size: object) -> bytes:
    """The node of ``size`` bytes. `CorruptTape`: it is none, or too large."""
    if not isinstance(data, bytes) or not isinstance(size, int):
        raise damaged("a node that is not made of bytes")
    if len(data) == size:
        return data
    codecs = _codecs()
    try:
        if not len(data) < size <= LARGEST_NODE_BYTES or codecs.size(data) != size:
            raise damaged(f"a node of {size} bytes is stored in {len(data)}")
        return codecs.decompress(data, allow_extra_data=False)
    except codecs.error as problem:
        raise damaged(str(problem)) from None


def packed_roots(packed: object) -> set[bytes]:
    """The nodes that something packed refers to. `CorruptTape`."""
    if not isinstance(packed, bytes):
        raise damaged("something packed that is not made of bytes")
    return {ref.digest for ref in nodes.refs_in(packed)}


def state_roots(digest: object, packed: object) -> set[bytes]:
    """The same, for a state. `CorruptTape`: also when it is not that of its digest."""
    if not isinstance(packed, bytes) or blake3(packed).digest() != digest:
        raise damaged("it differs from its digest")
    return packed_roots(packed)


def roots_of(packed: object) -> set[bytes]:
    """As `packed_roots`; none, if it is damaged."""
    with suppress(CorruptTape):
        return packed_roots(packed)
    return set()


def all_roots(packed: Iterable[bytes]) -> Iterator[bytes]:
    """The nodes that packed values refer to, for each."""
    return (digest for one in packed for digest in roots_of(one))


def verified_below(digest: object, size: object, data: object) -> set[bytes]:
    """The nodes that a stored node refers to. `CorruptTape`: it is not that of its digest."""
    if not isinstance(digest, bytes):
        raise damaged("a node without a digest")
    return {ref.digest for ref in nodes.opened(digest, stretched(data, size)).below}


def nodes_below(data: object, size: object) -> list[bytes]:
    """The nodes that a stored node refers to; none, if it is damaged: those stay."""
    with suppress(CorruptTape):
        return list({ref.digest for ref in nodes.parsed(stretched(data, size)).below})
    return []


_MOST_BYTES: Final = 1 << 24
_BESIDE: Final = 300


class Leaves(NamedTuple):
    """What the leaves below a ref hold, in order, and how many bytes all nodes of it take."""

    payloads: list[memoryview]
    size: int


class NodeCache:
    """Nodes of a store by digest, and leaves by what refers to all of them, those used last.

    At most 32 MB of nodes, and as much of leaves. Any thread may use it.
    """

    def __init__(self) -> None:
        self._young: dict[bytes, Node] = {}
        self._old: dict[bytes, Node] = {}
        self._size = 0
        self._leaves: dict[Ref, Leaves] = {}
        self._leaf_bytes = 0

    def leaves(self, ref: Ref) -> Leaves | None:
        """The leaves below a ref, if they are known."""
        return self._leaves.get(ref)

    def add_leaves(self, ref: Ref, leaves: Leaves) -> None:
        """Keep the leaves of a ref for a while."""
        if self._leaf_bytes > 2 * _MOST_BYTES:
            self._leaves, self._leaf_bytes = {}, 0
        self._leaves[ref] = leaves
        self._leaf_bytes += leaves.size

    def get(self, digest: bytes) -> Node | None:
        """The node, if it is there."""
        found = self._young.get(digest)
        if found is None and (found := self._old.get(digest)) is not None:
            self.add(digest, found)
        return found

    def add(self, digest: bytes, node: Node) -> None:
        """Keep a node for a while."""
        if self._size > _MOST_BYTES:  # the others are forgotten the next time
            self._old, self._young, self._size = self._young, {}, 0
        self._young[digest] = node
        self._size += len(node.payload) + _BESIDE
