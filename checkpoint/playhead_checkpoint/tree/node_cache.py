"""Nodes that were verified lately: what is read twice is loaded and verified once."""

from __future__ import annotations

from typing import Final, NamedTuple

from playhead_checkpoint.tree.nodes import Node, Ref

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
