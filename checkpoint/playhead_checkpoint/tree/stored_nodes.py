"""Nodes as engines store them (compressed if shorter, with their length), and a cache of nodes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from typing import Final, NamedTuple

from blake3 import blake3

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.nodes import LARGEST_NODE_BYTES, Node, Ref, damaged
from playhead_core.errors import CorruptTape
from playhead_core.zstd_frames import DamagedFrame, compressor, decompress

_WORTH_BYTES: Final = 256
_LEVEL: Final = 1


class _Packer(threading.local):
    """A compressor for each thread. Small states never import the library."""

    def __init__(self) -> None:
        self.compress = compressor(_LEVEL)


@cache
def _packer() -> _Packer:
    return _Packer()


def compressed(node: bytes) -> bytes:
    """Compress a node; return it unchanged if that is not shorter."""
    if len(node) < _WORTH_BYTES or node[1]:  # digests do not get shorter
        return node
    data = _packer().compress(node)
    return data if len(data) < len(node) else node


def decompressed(data: object, size: object) -> bytes:
    """Return the node of ``size`` bytes. `CorruptTape` if it is not one, or too large."""
    if not isinstance(data, bytes) or not isinstance(size, int):
        raise damaged("a node that is not made of bytes")
    if len(data) == size:
        return data
    try:
        node = decompress(data, size) if len(data) < size <= LARGEST_NODE_BYTES else b""
    except DamagedFrame as problem:
        raise damaged(str(problem)) from None
    if len(node) != size:
        raise damaged(f"a node of {size} bytes is stored in {len(data)}")
    return node


def packed_roots(packed: object) -> set[bytes]:
    """Return the digests that a packed value refers to. `CorruptTape`."""
    if not isinstance(packed, bytes):
        raise damaged("something packed that is not made of bytes")
    return {ref.digest for ref in nodes.refs_in(packed)}


def state_roots(digest: object, packed: object) -> set[bytes]:
    """Return the digests that a state refers to. `CorruptTape`, also if it differs from its digest."""
    if not isinstance(packed, bytes) or blake3(packed).digest() != digest:
        raise damaged("it differs from its digest")
    return packed_roots(packed)


def roots_of(packed: object) -> set[bytes]:
    """As `packed_roots`, but empty for damaged data."""
    with suppress(CorruptTape):
        return packed_roots(packed)
    return set()


def all_roots(packed: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the digests that each of the packed values refers to."""
    return (digest for one in packed for digest in roots_of(one))


def verified_below(digest: object, size: object, data: object) -> set[bytes]:
    """Return the digests that a stored node refers to. `CorruptTape` if it differs from its digest."""
    if not isinstance(digest, bytes):
        raise damaged("a node without a digest")
    return {ref.digest for ref in nodes.opened(digest, decompressed(data, size)).below}


def nodes_below(data: object, size: object) -> list[bytes]:
    """Return the digests that a stored node refers to; empty if it is damaged, so that they stay."""
    with suppress(CorruptTape):
        return list({ref.digest for ref in nodes.parsed(decompressed(data, size)).below})
    return []


_MOST_BYTES: Final = 1 << 24
_BESIDE: Final = 300


class Leaves(NamedTuple):
    """The payloads of the leaves below a reference, in order, and the size of all its nodes."""

    payloads: list[memoryview]
    size: int


class NodeCache:
    """Recently used nodes by digest, and leaves by their reference. Nodes are verified only once.

    At most 32 MB of nodes and 32 MB of leaves. Any thread may use it.
    """

    def __init__(self) -> None:
        self._young: dict[bytes, Node] = {}
        self._old: dict[bytes, Node] = {}
        self._size = 0
        self._leaves: dict[Ref, Leaves] = {}
        self._leaf_bytes = 0

    def leaves(self, ref: Ref) -> Leaves | None:
        """Return the leaves below a reference, if they are cached."""
        return self._leaves.get(ref)

    def add_leaves(self, ref: Ref, leaves: Leaves) -> None:
        """Cache the leaves of a reference."""
        if self._leaf_bytes > 2 * _MOST_BYTES:
            self._leaves, self._leaf_bytes = {}, 0
        self._leaves[ref] = leaves
        self._leaf_bytes += leaves.size

    def get(self, digest: bytes) -> Node | None:
        """Return the node, if it is cached."""
        found = self._young.get(digest)
        if found is None and (found := self._old.get(digest)) is not None:
            self.add(digest, found)
        return found

    def add(self, digest: bytes, node: Node) -> None:
        """Cache a node."""
        if self._size > _MOST_BYTES:  # the old half is dropped next time
            self._old, self._young, self._size = self._young, {}, 0
        self._young[digest] = node
        self._size += len(node.payload) + _BESIDE
