"""From a value to nodes: it is packed whole, then cut where its content says."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from playhead_checkpoint.values import nodes
from playhead_checkpoint.values.encoding import (
    NotPlain,
    ValueEncoder,
    head,
    holds_bytes,
    may_hold_bytes,
    typed,
)
from playhead_checkpoint.values.entries import (
    RAW_DICT,
    RAW_LIST,
    Entries,
    EntryPlace,
    ListEntries,
    LongKey,
    PackedEntries,
    opened,
    packed_entries,
)
from playhead_checkpoint.values.nodes import BYTES, DICT, LIST, TEXT, Ref, pack, type_of
from playhead_checkpoint.values.reading import LARGEST_STATE_BYTES
from playhead_checkpoint.values.standard_types import STANDARD
from playhead_checkpoint.values.stretches import Block, Leaf, OpenBlock, Stretches
from playhead_checkpoint.values.types import Types
from playhead_semconv.errors import StateRefused

LARGEST_PUT_BYTES: Final = LARGEST_STATE_BYTES // 2
"""What a state may take that is put: less than what is read."""
_FEW: Final = 64
"""Entries up to which a large dict is not cut by stretches, as what is large in it may be in nodes."""
_CUT: Final = (1 << 32) // nodes.LEAF_BYTES
_LONG: Final = 16
"""Entries from which on a list is long."""
_MOST_PARTS: Final = 4
"""How deep long lists are looked for."""
_LONG_KEY: Final = nodes.INLINE_BYTES // 4
_MOST_STRETCH_BYTES: Final = 1 << 25
_TEXT_HEADS: Final = {0xC4: 2, 0xC5: 3, 0xC6: 5, 0xD9: 2, 0xDA: 3, 0xDB: 5}


_NONE: Final = Stretches()


class Packer:
    """Packs values; each node goes to ``keep(digest, node)``, those below before those above.

    The nodes of a value depend on the value alone. Where the entries of a large container are cut
    depends on the entries themselves: after a change the nodes before and behind it are the same.
    ``known``: stretches whose nodes are kept already; they are not given to ``keep`` again.
    """

    def __init__(
        self, types: Types, keep: Callable[[bytes, bytes], None], known: Stretches = _NONE
    ) -> None:
        self._encoder = ValueEncoder(types)
        self._keep = keep
        self._known = known
        self.stretches: list[Leaf | OpenBlock | Block] = []
        """Those that were cut."""
        self._begin()

    def state(self, state: Any) -> bytes:
        """The packed state. `StateRefused` names the path and type of what cannot be stored."""
        self._begin()
        try:
            packed = self._part(state)
        except NotPlain:
            packed = None
        if packed is None or self._holds_bytes:
            self._begin()
            packed = self._cut(self._encoder.exactly(state))
        for digest, node in self._kept.items():
            self._keep(digest, node)
        return packed

    def _begin(self) -> None:
        self._kept: dict[bytes, bytes] = {}
        self._holds_bytes = False
        self.stretches.clear()
        self.logical_bytes = self._depth = self._open_bytes = 0

    def _part(self, value: Any) -> bytes:
        """A part of the state. Of a long list, what is known is never packed together with the rest."""
        if self._depth < _MOST_PARTS and _is_long(value, _MOST_PARTS - self._depth):
            if type_of(value) is list:
                return self._long(value)
            self._depth += 1
            entries: list[bytes] = []
            opened = self._open_bytes
            for key, one in value.items():
                if type_of(key) is not str or len(key) >= _LONG_KEY:
                    raise NotPlain
                name = self._encoder.packed(key)
                self.logical_bytes += len(name)
                kind = type_of(one)
                if kind is list or kind is dict:
                    entries.append(name + self._part(one))
                else:
                    entries.append(name + self._cut(self._encoder.packed(one)))
            self._depth -= 1
            self.logical_bytes += 1
            return self._joined(DICT, entries, self._open_bytes - opened)
        return self._cut(self._encoder.packed(value))

    def _long(self, values: list[Any]) -> bytes:
        """A list whose entries are packed only as far as they are not known."""
        before, self._kept = self._kept, {}
        found = len(self.stretches)
        entries = ListEntries(values, self._encoder.packed)
        blocks, opened, leaves, size = self._walk(LIST, entries, grows=True)
        if size <= nodes.WHOLE_BYTES:  # it is one node, or none: those that were made are not
            self._kept = before
            del self.stretches[found:]
            return self._cut(self._encoder.packed(values))
        self._spend(size)
        tail = head(LIST, 0)
        if leaves and not leaves[-1].ended and (blocks or opened or len(leaves) > 1):
            last = leaves.pop()
            tail = head(LIST, last.entries) + last.cut
        if leaves:
            opened = self._opened(leaves)
        refs = [self._root(blocks)] if blocks else []
        if opened:
            refs.append(opened.ref)
        self._kept = before | self._kept
        if len(tail) == 1 and len(refs) == 1:
            return refs[0].packed()
        packed = nodes.open_list(refs, tail)
        self._open_bytes += len(packed)
        return packed

    def _opened(self, leaves: list[Leaf]) -> OpenBlock:
        """Leaves of a block that is open, as one."""
        ref = self._root([*map(self._alone, leaves)])
        raw = b"".join(leaf.raw for leaf in leaves)
        holds = any(leaf.holds_bytes for leaf in leaves)
        opened = OpenBlock(leaves[0].first, LIST, raw, ref.length, holds, ref)
        if leaves[-1].ended:
            self.stretches.append(opened)
        return opened

    def _spend(self, size: int) -> None:
        self.logical_bytes += size
        if self.logical_bytes > LARGEST_PUT_BYTES:
            raise StateRefused(f"the state has more than {LARGEST_PUT_BYTES} bytes")

    def _cut(self, data: bytes) -> bytes:
        self._spend(len(data))
        return self._value(data, 0, len(data))

    # Below, ``data`` is the packed state, and a value stands in it from ``at`` to ``end``.

    def _value(self, data: bytes, at: int, end: int) -> bytes:
        if end - at <= nodes.INLINE_BYTES:
            found = data[at:end]
            if not self._holds_bytes and holds_bytes(found):
                self._holds_bytes = True
            return found
        first = data[at]
        if 0x90 <= first <= 0x9F or first in (0xDC, 0xDD):
            return self._deeper(self._list, data, at, end)
        if 0x80 <= first <= 0x8F or first in (0xDE, 0xDF):
            return self._deeper(self._dict, data, at, end)
        if 0xC4 <= first <= 0xC6:
            self._holds_bytes = True
            return self._pieces(BYTES, data, at, end)
        if 0xD9 <= first <= 0xDB:
            return self._pieces(TEXT, data, at, end)
        return self._deeper(self._typed, data, at, end)

    def _deeper(self, way: Callable[[bytes, int, int], bytes], data: bytes, at: int, end: int) -> bytes:
        if self._depth >= nodes.MOST_DEPTH:
            raise StateRefused(
                f"what is larger than {nodes.INLINE_BYTES} bytes is nested deeper than "
                f"{nodes.MOST_DEPTH} levels"
            )
        self._depth += 1
        try:
            return way(data, at, end)
        finally:
            self._depth -= 1

    def _pieces(self, kind: int, data: bytes, at: int, end: int) -> bytes:
        """A text or bytes."""
        start = at + _TEXT_HEADS[data[at]]
        if end - start <= nodes.WHOLE_BYTES:
            return data[at:end]
        size = nodes.PIECE_BYTES
        pieces = (data[one : min(one + size, end)] for one in range(start, end, size))
        return self._root([self._node(kind, piece, len(piece)) for piece in pieces]).packed()

    def _typed(self, data: bytes, at: int, end: int) -> bytes:
        before = self._holds_bytes
        held = msgspec.msgpack.decode(data[at:end], type=msgspec.msgpack.Ext).data
        name, parts = map(bytes, RAW_LIST.decode(held))
        cut = self._value(parts, 0, len(parts))
        self._holds_bytes = before  # what is typed was packed exactly
        return typed(msgspec.msgpack.decode(name, type=str), cut)

    def _list(self, data: bytes, at: int, end: int) -> bytes:
        return self._container(LIST, data, at, end)

    def _dict(self, data: bytes, at: int, end: int) -> bytes:
        try:
            return self._container(DICT, data, at, end)
        except LongKey:
            found = RAW_DICT.decode(data[at:end]).items()
            pairs = b"".join(one for key, value in found for one in (pack(key), value))
            listed = head(LIST, 2 * len(found)) + pairs
            return typed(STANDARD[dict].name, self._container(LIST, listed, 0, len(listed)))

    def _container(self, kind: int, data: bytes, at: int, end: int) -> bytes:
        count, _ = opened(data, at)
        entries = packed_entries(kind, data, at, end)
        if end - at > nodes.WHOLE_BYTES and (kind == LIST or count > _FEW):
            return self._tree_of(kind, entries)
        return self._joined(kind, [self._cut_entry(entries, number) for number in range(count)])

    def _joined(self, kind: int, entries: list[bytes], open_bytes: int = 0) -> bytes:
        """A container of entries that were cut; in a node, open lists do not count in what holds it."""
        size = sum(map(len, entries))
        if size - open_bytes <= nodes.INLINE_BYTES:
            return head(kind, len(entries)) + b"".join(entries)
        self._open_bytes -= open_bytes
        if size <= nodes.WHOLE_BYTES:
            return self._node(kind, head(kind, len(entries)) + b"".join(entries), len(entries)).packed()
        ends = [*accumulate(map(len, entries), initial=0)]
        places = [EntryPlace(start, end, end) for start, end in pairwise(ends)]
        return self._tree_of(kind, PackedEntries(b"".join(entries), places))

    def _cut_entry(self, entries: Entries, at: int, packed: bytes = b"") -> bytes:
        packed = packed or entries.packed(at)
        key = entries.key_bytes(at)
        value = self._value(packed, key, len(packed))
        return packed[:key] + value if key else value

    def _tree_of(self, kind: int, entries: Entries) -> bytes:
        blocks, _, leaves, _ = self._walk(kind, entries)
        return self._root([*blocks, *map(self._alone, leaves)]).packed()

    def _walk(self, kind: int, entries: Entries, *, grows: bool = False) -> _Walked:
        """Cut a container. ``grows``: leaves behind the last block may be known as one."""
        refs: list[Ref] = []
        at, end, size = 0, len(entries), 0
        while at < end:
            first = entries.packed(at)
            block = self._known.block(first, kind, end - at)
            if block is None or not entries.go_on(at, block.entries, block.raw):
                if grows and (found := self._tail_of_open(entries, at, first)):
                    opened, tail = found
                    self._holds_bytes |= opened.holds_bytes or tail.holds_bytes
                    return _Walked(refs, opened, [tail], size + len(opened.raw) + len(tail.raw))
                leaves = self._block_leaves(kind, entries, at, first)
                if not leaves[-1].closes:
                    self._holds_bytes |= any(leaf.holds_bytes for leaf in leaves)
                    size += sum(len(leaf.raw) for leaf in leaves)
                    return _Walked(refs, None, leaves, size)
                block = self._block(leaves)
            self._holds_bytes |= block.holds_bytes
            refs.append(block.ref)
            at, size = at + block.entries, size + len(block.raw)
        return _Walked(refs, None, [], size)

    def _tail_of_open(self, entries: Entries, at: int, first: bytes) -> tuple[OpenBlock, Leaf] | None:
        """An open block that is known, and the leaf behind it, when nothing has ended since."""
        known = self._known.open_block(first, LIST, len(entries) - at)
        if known is None or not entries.go_on(at, known.entries, known.raw):
            return None
        start = at + known.entries
        tail = self._leaf(LIST, entries, start, entries.packed(start))
        return None if tail.ended else (known, tail)

    def _block_leaves(self, kind: int, entries: Entries, at: int, first: bytes) -> list[Leaf]:
        """Leaves up to one that closes a block, or to the last one."""
        leaves: list[Leaf] = []
        size = 0
        while True:
            leaf = self._leaf(kind, entries, at, first)
            at, size = at + leaf.entries, size + len(leaf.cut)
            if size >= nodes.LARGEST_BLOCK_BYTES and leaf.ended:
                leaf = leaf._replace(closes=True)
            leaves.append(leaf)
            if leaf.closes or at == len(entries):
                return leaves
            first = entries.packed(at)

    def _leaf(self, kind: int, entries: Entries, start: int, first: bytes) -> Leaf:
        """The entries from ``start`` on, up to where one says that a leaf ends.

        Lists grow at their end: leaves that a block has closed over are one, so reading takes few nodes.
        What is changed in a dict may stand anywhere: its leaves stay small, each is a block.
        """
        end = len(entries)
        known = self._known.leaf(first, kind, end - start)
        if known is not None and entries.go_on(start, known.entries, known.raw):
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
        return Leaf(first, kind, whole, b"".join(cut), len(raw), ended, closes, there, None)

    def _node(self, kind: int, payload: bytes, count: int) -> Ref:
        node = nodes.leaf(kind, payload)
        digest = nodes.digest_of(node)
        self._kept[digest] = node
        return Ref(kind, 0, count, digest)

    def _block(self, leaves: list[Leaf]) -> Block:
        """The node of leaves that a block has closed over."""
        first, kind, count = leaves[0].first, leaves[0].kind, sum(leaf.entries for leaf in leaves)
        ref = self._node(kind, head(kind, count) + b"".join(leaf.cut for leaf in leaves), count)
        raw = b"".join(leaf.raw for leaf in leaves)
        block = Block(first, kind, raw, count, any(leaf.holds_bytes for leaf in leaves), ref)
        self.stretches.append(block)
        return block

    def _alone(self, leaf: Leaf) -> Ref:
        """The node of a leaf in a block that is open."""
        if leaf.ref is not None:
            return leaf.ref
        ref = self._node(leaf.kind, head(leaf.kind, leaf.entries) + leaf.cut, leaf.entries)
        if leaf.ended:
            self.stretches.append(leaf._replace(ref=ref))
        return ref

    def _root(self, refs: list[Ref]) -> Ref:
        """The ref above all of these."""
        while len(refs) > 1:
            above: list[Ref] = []
            start = 0
            for at, ref in enumerate(refs, 1):
                held = at - start
                cut = held > 1 and ref.digest[0] < 256 // nodes.FAN_OUT
                if cut or held == nodes.LARGEST_FAN_OUT or at == len(refs):
                    node, count = nodes.index(refs[start:at])
                    digest = nodes.digest_of(node)
                    self._kept[digest] = node
                    above.append(Ref(ref.kind, ref.level + 1, count, digest))
                    start = at
            refs = above
        return refs[0]


class _Walked(NamedTuple):
    """A container as it was cut: blocks, and what stands behind them; its size, packed."""

    blocks: list[Ref]
    opened: OpenBlock | None
    leaves: list[Leaf]
    size: int


def _is_long(value: Any, levels: int) -> bool:
    """Whether it is a long list, or a small dict with one in it."""
    kind = type_of(value)
    if kind is list:
        return len(value) >= _LONG
    if kind is not dict or len(value) > _FEW or not levels:
        return False
    return any(_is_long(one, levels - 1) for one in value.values())
