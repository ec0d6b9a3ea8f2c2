"""Ranges of long containers that were cut before: unchanged ranges are not cut again."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeAlias

import msgspec

from playhead_checkpoint.tree.models import SeenModels
from playhead_checkpoint.tree.nodes import Ref

_MOST_BYTES: Final = 1 << 24


class Leaf(msgspec.Struct, frozen=True):
    """Consecutive entries up to the end of a leaf.

    ``raw``: as packed; ``cut``: as in the node, with references for large entries. ``first``: the first
    entry, packed; ``entries``: their number. ``ended``: the leaf ends by content, not with the
    container; ``closes``: it also ends a block. ``ref``: reference to its node, if there is one.
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
    """Consecutive leaves up to the end of a block: one node."""

    first: bytes
    kind: int
    raw: bytes
    entries: int
    holds_bytes: bool
    ref: Ref
    seen: SeenModels = msgspec.field(default_factory=SeenModels)


class OpenBlock(msgspec.Struct, frozen=True):
    """The ended leaves of a block that is still open; ``ref``: reference to all of them."""

    first: bytes
    kind: int
    raw: bytes
    entries: int
    holds_bytes: bool
    ref: Ref
    seen: SeenModels = msgspec.field(default_factory=SeenModels)


Part: TypeAlias = Block | OpenBlock | Leaf


class Grown(msgspec.Struct, frozen=True):
    """A list without bytes values, as it was cut last time.

    ``beginning``: its first packed bytes. ``parts``: blocks, an open block, and the ``tail``, which is
    not a node. ``blocks``: number of blocks; ``root``: reference to all of them; ``refs``: references to
    all parts but the tail; ``roots``: digests that refs and tail refer to; ``opening``: start of the
    list's extension, before the tail. ``entries``, ``size``: of the whole list, the size in packed
    bytes. ``grows``: whether entries may be added to the tail.
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


EntryRange: TypeAlias = Leaf | Block | Grown


class KnownRanges:
    """Recently used leaves and blocks whose nodes are stored: about 80 MB at most.

    They are looked up by their first entry. The caller compares all bytes: only equal bytes count as
    unchanged.
    """

    def __init__(self) -> None:
        self._blocks: dict[bytes, Block] = {}
        self._leaves: dict[bytes, Leaf] = {}
        self._grown: dict[bytes, Grown] = {}
        self._block_bytes = self._leaf_bytes = self._grown_bytes = 0

    def block(self, first: bytes, kind: int, most: int) -> Block | None:
        """Return the block that begins with the entry ``first`` and has at most ``most`` entries."""
        found = self._blocks.get(first)
        return found if found is not None and found.kind == kind and found.entries <= most else None

    def grown(self, beginning: bytes) -> Grown | None:
        """Return a list with this beginning. It may be another list with the same beginning."""
        return self._grown.get(beginning)

    def leaf(self, first: bytes, kind: int, most: int) -> Leaf | None:
        """Return a leaf, else as `block`."""
        found = self._leaves.get(first)
        return found if found is not None and found.kind == kind and found.entries <= most else None

    def add(self, found: Iterable[EntryRange]) -> None:
        """Remember ranges whose nodes are stored."""
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
