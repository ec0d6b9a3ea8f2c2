"""Stretches of long containers that were cut before: what did not change is not cut again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from playhead_checkpoint.tree.models import SeenModels
from playhead_checkpoint.tree.nodes import Ref

_MOST_BYTES: Final = 1 << 24


class Leaf(msgspec.Struct, frozen=True):
    """Entries in a row up to where a leaf ends.

    ``raw``: as they are packed; ``cut``: as they stand in the node, where large ones are refs.
    ``first``: of the entries; ``entries``: how many. ``ended``: it ends there, not with the
    container; ``closes``: so does a block. ``ref``: of the node that they are, if they were one.
    """

    first: bytes
    kind: int
    raw: bytes
    cut: bytes
    entries: int
    ended: bool = False
    closes: bool = False
    holds_bytes: bool = False
    ref: Ref | None = None
    seen: SeenModels = msgspec.field(default_factory=SeenModels)


class Block(msgspec.Struct, frozen=True):
    """Leaves in a row up to where a block ends: one node."""

    first: bytes
    kind: int
    raw: bytes
    entries: int
    holds_bytes: bool
    ref: Ref
    seen: SeenModels = msgspec.field(default_factory=SeenModels)


class OpenBlock(msgspec.Struct, frozen=True):
    """The leaves of a block that is open still, up to where the last one ended; ``ref``: of all."""

    first: bytes
    kind: int
    raw: bytes
    entries: int
    holds_bytes: bool
    ref: Ref
    seen: SeenModels = msgspec.field(default_factory=SeenModels)


Part: TypeAlias = Block | OpenBlock | Leaf


class Grown(msgspec.Struct, frozen=True):
    """A list without bytes, as it was cut, and what it begins with.

    ``parts``: blocks, what is open behind them, and the ``tail``, which is no node. ``blocks``: how
    many; ``root``: of those; ``refs``: of all but the tail; ``roots``: what refs and tail refer to;
    ``opening``: what the list's extension begins with, before the tail. ``entries``, ``size``: of it
    all, the size in bytes as it is packed. ``grows``: entries may be added to the tail.
    """

    beginning: bytes
    parts: tuple[Part, ...]
    blocks: int
    root: Ref | None
    refs: list[Ref]
    roots: set[bytes]
    opening: bytes
    tail: Leaf | None
    entries: int
    size: int
    grows: bool


Stretch: TypeAlias = Leaf | Block | Grown


class Stretches:
    """Leaves and blocks whose nodes are stored, those used last: about 80 MB at most.

    They are found by what they begin with, and are to be compared as a whole: nothing but equal bytes is
    taken for what did not change.
    """

    def __init__(self) -> None:
        self._blocks: dict[bytes, Block] = {}
        self._leaves: dict[bytes, Leaf] = {}
        self._grown: dict[bytes, Grown] = {}
        self._block_bytes = self._leaf_bytes = self._grown_bytes = 0

    def block(self, first: bytes, kind: int, most: int) -> Block | None:
        """One that begins with an entry, and has at most so many."""
        found = self._blocks.get(first)
        return found if found is not None and found.kind == kind and found.entries <= most else None

    def grown(self, beginning: bytes) -> Grown | None:
        """A list that begins so; it may be another list that does."""
        return self._grown.get(beginning)

    def leaf(self, first: bytes, kind: int, most: int) -> Leaf | None:
        """As `block`."""
        found = self._leaves.get(first)
        return found if found is not None and found.kind == kind and found.entries <= most else None

    def add(self, found: Iterable[Stretch]) -> None:
        """Remember them; their nodes are stored."""
        for one in found:
            if isinstance(one, Grown):
                if self._grown_bytes > _MOST_BYTES:
                    self._grown, self._grown_bytes = {}, 0
                self._grown[one.beginning] = one
                self._grown_bytes += len(one.beginning) + (2 * len(one.tail.raw) if one.tail else 0)
                continue
            if isinstance(one, Block):
                if self._block_bytes > 2 * _MOST_BYTES:
                    self._blocks, self._grown, self._block_bytes = {}, {}, 0
                self._blocks[one.first] = one
                self._block_bytes += len(one.raw)
                continue
            if self._leaf_bytes > _MOST_BYTES:
                self._leaves, self._grown, self._leaf_bytes = {}, {}, 0
            self._leaf_bytes += 2 * len(one.raw)
            self._leaves[one.first] = one
