"""Cuts the entries of a container into nodes at content-defined boundaries, with a tree above them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import is_
from typing import Final
from zlib import crc32

from msgspec.structs import replace

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.encoding import head, holds_bytes, may_hold_bytes
from playhead_checkpoint.tree.entries import Entries, ListEntries
from playhead_checkpoint.tree.nodes import DICT, LIST, Ref
from playhead_checkpoint.tree.ranges import Block, EntryRange, Grown, KnownRanges, Leaf, OpenBlock, Part

_CUT: Final = (1 << 32) // nodes.LEAF_BYTES


class EntryCutter(ABC):
    """Cuts entries into leaves, groups leaves into blocks, and makes their nodes.

    ``known``: ranges whose nodes are already stored; they are not made again.
    """

    def __init__(self, known: KnownRanges) -> None:
        self._known = known
        self._begin()

    def _begin(self) -> None:
        """Reset the state."""
        self.kept: dict[bytes, bytes] = {}
        """The new nodes by digest."""
        self.ranges: list[EntryRange] = []
        """The ranges that were cut."""
        self._holds_bytes = False

    @abstractmethod
    def _cut_entry(self, entries: Entries, at: int, packed: bytes = b"") -> bytes:
        """Return an entry with references in place of large values."""

    def _tree_of(self, kind: int, entries: Entries) -> bytes:
        """Return the reference to a large container."""
        blocks: list[Block] = []
        leaves = self._cut_on(kind, entries, 0, blocks)
        self._holds_bytes |= any(part.holds_bytes for part in (*blocks, *leaves))
        return self._root([*(block.ref for block in blocks), *map(self._alone, leaves)]).packed()

    def _grown(self, entries: ListEntries) -> Grown:
        """Cut a list that grows at its end. Its known part is only packed and compared."""
        beginning = entries.beginning()
        known = self._known.grown(beginning)
        parts = known.parts if known else ()
        same = entries.known(parts)
        if known and same == len(parts) and (more := self._more(known, entries)):
            return more
        blocks = [part for part in parts[:same] if isinstance(part, Block)]
        there = len(blocks)
        leaves = self._cut_on(LIST, entries, sum(block.entries for block in blocks), blocks)
        root = known.root if known and known.blocks == there == len(blocks) else None
        if blocks and root is None:
            root = self._root([block.ref for block in blocks])
        return self._as_grown(beginning, blocks, root, leaves)

    def _more(self, known: Grown, entries: ListEntries) -> Grown | None:
        """Return the known list plus the new entries; None if one of those ends a leaf or is large."""
        if len(entries) == known.entries:
            return known
        if not known.grows:
            return None
        more = entries.after(known.entries, known.size)
        for packed in more:
            if len(packed) > nodes.INLINE_BYTES or crc32(packed) < len(packed) * _CUT:
                return None
        tail, parts, added = known.tail, known.parts, b"".join(more)
        size = len(added) + (len(tail.cut) if tail else 0)
        if size >= nodes.LARGEST_LEAF_BYTES or may_hold_bytes(added, 0, len(added)):
            return None
        if tail is None:
            tail = Leaf(more[0], LIST, added, added, len(more))
        else:
            raw, parts = tail.raw + added, parts[:-1]
            cut = raw if tail.cut is tail.raw else tail.cut + added
            tail = Leaf(tail.first, LIST, raw, cut, tail.entries + len(more))
        found = Grown(
            known.beginning,
            (*parts, tail),
            known.blocks,
            known.root,
            known.refs,
            known.roots,
            known.opening,
            tail,
            known.entries + len(more),
            known.size + len(added),
            True,
        )
        self.ranges.append(found)
        return found

    def _as_grown(
        self, beginning: bytes, blocks: list[Block], root: Ref | None, leaves: list[Leaf]
    ) -> Grown:
        """Return a list cut into blocks and leaves; the last leaf is its tail, unless it has ended."""
        parts: list[Part] = [*blocks]
        refs = [root] if root else []
        tail = None
        if leaves and not leaves[-1].ended:
            tail = leaves.pop()
        grows = tail is not None or not leaves or leaves[-1].ended
        if leaves:
            opened = self._opened(leaves)
            refs.append(opened.ref)
            parts.append(opened)
        if tail:
            parts.append(tail)
        roots = {ref.digest for ref in refs}
        if tail and tail.cut != tail.raw:
            packed = head(LIST, tail.entries) + tail.cut
            roots |= {ref.digest for ref in nodes.refs_in(packed)}
        count, size = sum(part.entries for part in parts), sum(len(part.raw) for part in parts)
        opening = nodes.open_list(refs)
        found = Grown(
            beginning, tuple(parts), len(blocks), root, refs, roots, opening, tail, count, size, grows
        )
        if any(part.holds_bytes for part in parts):
            self._holds_bytes = True
        else:
            self.ranges.append(found)
        return found

    def _cut_on(self, kind: int, entries: Entries, at: int, blocks: list[Block]) -> list[Leaf]:
        """Cut entries from ``at`` on. Add blocks to ``blocks``; return the leaves after the last one."""
        end = len(entries)
        while at < end:
            first = entries.packed(at)
            block = self._known.block(first, kind, end - at)
            if block is None or not entries.matches(at, block):
                leaves = self._block_leaves(kind, entries, at, first)
                if not leaves[-1].closes:
                    return leaves
                block = self._block(leaves)
            blocks.append(block)
            at += block.entries
        return []

    def _block_leaves(self, kind: int, entries: Entries, at: int, first: bytes) -> list[Leaf]:
        """Return leaves up to one that closes a block, or up to the last."""
        leaves: list[Leaf] = []
        size = 0
        while True:
            leaf = self._leaf(kind, entries, at, first)
            at, size = at + leaf.entries, size + len(leaf.cut)
            if size >= nodes.LARGEST_BLOCK_BYTES and leaf.ended:
                leaf = replace(leaf, closes=True)
            leaves.append(leaf)
            if leaf.closes or at == len(entries):
                return leaves
            first = entries.packed(at)

    def _leaf(self, kind: int, entries: Entries, start: int, first: bytes) -> Leaf:
        """Return the leaf that begins at ``start``; the hash of an entry decides where a leaf ends.

        Lists grow at their end: closed leaves are joined into one block, so reading takes few nodes. A
        dict may change anywhere: its leaves stay small, and each is a block of its own.
        """
        end = len(entries)
        known = self._known.leaf(first, kind, end - start)
        if known is not None and entries.matches(start, known):
            return known
        before, self._holds_bytes = self._holds_bytes, False
        raw: list[bytes] = []
        cut: list[bytes] = []
        size, ended, closes = 0, False, False
        at, packed = start, first
        while True:
            raw.append(packed)
            entry = packed if len(packed) <= nodes.INLINE_BYTES else self._cut_entry(entries, at, packed)
            cut.append(entry)
            size += len(entry)
            chance, due = crc32(entry), len(entry) * _CUT
            at += 1
            if chance < due or size >= nodes.LARGEST_LEAF_BYTES:
                ended = True
                closes = kind == DICT or chance * nodes.BLOCK_LEAVES < due
                break
            if at == end:
                break
            packed = entries.packed(at)
        whole = b"".join(raw)
        there = self._holds_bytes or (
            may_hold_bytes(whole, 0, len(whole))
            and any(
                holds_bytes(one[entries.key_bytes(start + number) :]) for number, one in enumerate(raw)
            )
        )
        self._holds_bytes = before
        joined = whole if all(map(is_, raw, cut)) else b"".join(cut)
        return Leaf(first, kind, whole, joined, len(raw), ended, closes, there)

    def _node(self, kind: int, payload: bytes, count: int) -> Ref:
        node = nodes.leaf(kind, payload)
        digest = nodes.digest_of(node)
        self.kept[digest] = node
        return Ref(kind, 0, count, digest)

    def _block(self, leaves: list[Leaf]) -> Block:
        """Make the node of a closed block from its leaves."""
        first, kind, count = leaves[0].first, leaves[0].kind, sum(leaf.entries for leaf in leaves)
        ref = self._node(kind, head(kind, count) + b"".join(leaf.cut for leaf in leaves), count)
        raw = b"".join(leaf.raw for leaf in leaves)
        block = Block(first, kind, raw, count, any(leaf.holds_bytes for leaf in leaves), ref)
        self.ranges.append(block)
        return block

    def _opened(self, leaves: list[Leaf]) -> OpenBlock:
        """Join the leaves of an open block."""
        ref = self._root([*map(self._alone, leaves)])
        raw = b"".join(leaf.raw for leaf in leaves)
        holds = any(leaf.holds_bytes for leaf in leaves)
        return OpenBlock(leaves[0].first, LIST, raw, ref.length, holds, ref)

    def _alone(self, leaf: Leaf) -> Ref:
        """Make the node of a leaf in an open block."""
        if leaf.ref is not None:
            return leaf.ref
        ref = self._node(leaf.kind, head(leaf.kind, leaf.entries) + leaf.cut, leaf.entries)
        if leaf.ended:
            self.ranges.append(replace(leaf, ref=ref))
        return ref

    def _root(self, refs: list[Ref]) -> Ref:
        """Make index nodes above ``refs``; return the reference to the top one."""
        while len(refs) > 1:
            above: list[Ref] = []
            start = 0
            for at, ref in enumerate(refs, 1):
                held = at - start
                cut = held > 1 and ref.digest[0] < 256 // nodes.FAN_OUT
                if cut or held == nodes.LARGEST_FAN_OUT or at == len(refs):
                    node, count = nodes.index(refs[start:at])
                    digest = nodes.digest_of(node)
                    self.kept[digest] = node
                    above.append(Ref(ref.kind, ref.level + 1, count, digest))
                    start = at
            refs = above
        return refs[0]
