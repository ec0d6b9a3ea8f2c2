"""Nodes that were verified lately: what is read twice is loaded and verified once."""

from __future__ import annotations

from typing import Final

from playhead_checkpoint.values.nodes import Node

_MOST_BYTES: Final = 1 << 24
_BESIDE: Final = 300


class NodeCache:
    """Nodes of a store by digest; at most 32 MB, those used last. Any thread may use it."""

    def __init__(self) -> None:
        self._young: dict[bytes, Node] = {}
        self._old: dict[bytes, Node] = {}
        self._size = 0

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
