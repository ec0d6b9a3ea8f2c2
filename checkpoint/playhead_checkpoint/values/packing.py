"""From a value to nodes: it is packed whole, then cut where its content says."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from playhead_checkpoint.values import nodes
from playhead_checkpoint.values.encoding import ValueEncoder, head, holds_bytes, typed
from playhead_checkpoint.values.nodes import BYTES, DICT, LIST, TEXT, Ref, pack
from playhead_checkpoint.values.reading import LARGEST_STATE_BYTES
from playhead_checkpoint.values.standard_types import STANDARD
from playhead_checkpoint.values.types import Types
from playhead_semconv.errors import StateRefused

LARGEST_PUT_BYTES: Final = LARGEST_STATE_BYTES // 2
"""What a state may take that is put: less than what is read."""
_FEW: Final = 64
"""Entries up to which a large dict is not cut by stretches, as what is large in it may be in nodes."""
_CUT: Final = (1 << 32) // nodes.LEAF_BYTES
_KEY_BYTES: Final = 160
_MOST_STRETCH_BYTES: Final = 1 << 25
_TEXT_HEADS: Final = {0xC4: 2, 0xC5: 3, 0xC6: 5, 0xD9: 2, 0xDA: 3, 0xDB: 5}
_RAW_LIST: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_RAW_DICT: Final = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


class Stretch(NamedTuple):
    """Entries of a container that are one node: packed in a row, before large ones got nodes."""

    raw: bytes
    ref: Ref
    holds_bytes: bool


class Stretches:
    """Stretches whose nodes are stored, those used last; they are not cut again.

    They are found by their first bytes and compared as a whole, so nothing but equal bytes is taken for
    what did not change. It holds at most 32 MB.
    """

    def __init__(self) -> None:
        self._found: dict[bytes, Stretch] = {}
        self._size = 0

    def at(self, data: bytes, start: int) -> Stretch | None:
        """The one that ``data`` goes on with at ``start``."""
        found = self._found.get(data[start : start + _KEY_BYTES])
        return found if found is not None and data.startswith(found.raw, start) else None

    def add(self, stretches: Iterable[Stretch]) -> None:
        """Remember them; their nodes are stored."""
        for one in stretches:
            if self._size > _MOST_STRETCH_BYTES:
                self._found, self._size = {}, 0
            self._found[one.raw[:_KEY_BYTES]] = one
            self._size += len(one.raw)


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
        self._depth = 0
        self._holds_bytes = False
        self.stretches: list[Stretch] = []
        """Those that were cut."""
        self.logical_bytes = 0

    def state(self, state: Any) -> bytes:
        """The packed state. `StateRefused` names the path and type of what cannot be stored."""
        data = self._encoder.packed(state)
        if data is not None:
            packed = self._cut(data)
            if not self._holds_bytes:
                return packed
        return self._cut(self._encoder.exactly(state))

    def _cut(self, data: bytes) -> bytes:
        if len(data) > LARGEST_PUT_BYTES:
            raise StateRefused(f"the state has more than {LARGEST_PUT_BYTES} bytes")
        self._holds_bytes = False
        self.stretches.clear()
        self.logical_bytes = len(data)
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
        return self._tree([self._kept(kind, piece, len(piece)) for piece in pieces])

    def _typed(self, data: bytes, at: int, end: int) -> bytes:
        before = self._holds_bytes
        held = msgspec.msgpack.decode(data[at:end], type=msgspec.msgpack.Ext).data
        name, parts = map(bytes, _RAW_LIST.decode(held))
        cut = self._value(parts, 0, len(parts))
        self._holds_bytes = before  # what is typed was packed exactly
        return typed(msgspec.msgpack.decode(name, type=str), cut)

    def _list(self, data: bytes, at: int, end: int) -> bytes:
        return self._container(LIST, data, at, end)

    def _dict(self, data: bytes, at: int, end: int) -> bytes:
        try:
            return self._container(DICT, data, at, end)
        except _LongKey:
            found = _RAW_DICT.decode(data[at:end]).items()
            pairs = b"".join(one for key, value in found for one in (pack(key), value))
            listed = head(LIST, 2 * len(found)) + pairs
            return typed(STANDARD[dict].name, self._container(LIST, listed, 0, len(listed)))

    def _container(self, kind: int, data: bytes, at: int, end: int) -> bytes:
        count, start = _opened(data, at)
        if end - at > nodes.WHOLE_BYTES and (kind == LIST or count > _FEW):
            return self._tree(self._leaves(kind, data, start, end, count))
        entries = [self._entry(data, one) for one in _entries(kind, data, start, end, count)]
        size = sum(map(len, entries))
        if size <= nodes.INLINE_BYTES:
            return head(kind, count) + b"".join(entries)
        if size <= nodes.WHOLE_BYTES:
            return self._leaf(kind, entries).packed()
        sized = ((len(entry), entry) for entry in entries)
        refs: list[Ref] = []
        while (cut := self._next(kind, sized)).refs:
            refs += cut.refs
        return self._tree(refs)

    def _entry(self, data: bytes, entry: _Entry) -> bytes:
        value = self._value(data, entry.value, entry.end)
        return data[entry.start : entry.value] + value if entry.start < entry.value else value

    def _leaves(self, kind: int, data: bytes, at: int, end: int, left: int) -> list[Ref]:
        """The leaves of ``left`` entries. Known stretches are passed over."""
        refs: list[Ref] = []
        rest: list[_Entry] = []
        while left:
            known = self._known.at(data, at)
            if known is not None and known.ref.kind == kind and known.ref.length <= left:
                self._holds_bytes |= known.holds_bytes
                refs.append(known.ref)
                at, left = at + len(known.raw), left - known.ref.length
                continue
            rest = rest or _entries(kind, data, at, end, left)
            before, self._holds_bytes = self._holds_bytes, False
            ahead = map(rest.__getitem__, range(len(rest) - left, len(rest)))
            cut = self._next(kind, ((one.end - one.start, self._entry(data, one)) for one in ahead))
            if cut.closed:
                raw = data[at : at + cut.raw_bytes]
                self.stretches.append(Stretch(raw, cut.refs[0], self._holds_bytes))
            self._holds_bytes |= before
            refs += cut.refs
            at, left = at + cut.raw_bytes, left - sum(ref.length for ref in cut.refs)
        return refs

    def _next(self, kind: int, entries: Iterable[tuple[int, bytes]]) -> _Cut:
        """Cut off entries, up to where a stretch is closed; else all, leaf by leaf.

        Lists grow at their end: leaves that a block has closed over are one, so reading takes few nodes.
        What is changed in a dict may stand anywhere: its leaves stay small.
        """
        leaves: list[list[bytes]] = []
        leaf: list[bytes] = []
        size = block_size = raw_bytes = 0
        for raw_size, entry in entries:
            raw_bytes += raw_size
            leaf.append(entry)
            size += len(entry)
            chance, due = crc32(entry), len(entry) * _CUT
            if chance >= due and size < nodes.LARGEST_LEAF_BYTES:
                continue
            leaves.append(leaf)
            block_size += size
            leaf, size = [], 0
            last = chance * nodes.BLOCK_LEAVES < due or block_size >= nodes.LARGEST_BLOCK_BYTES
            if last or kind == DICT:
                whole = [one for leaf in leaves for one in leaf]
                return _Cut([self._leaf(kind, whole)], raw_bytes, True)
        if leaf:
            leaves.append(leaf)
        return _Cut([self._leaf(kind, some) for some in leaves], raw_bytes, False)

    def _leaf(self, kind: int, entries: list[bytes]) -> Ref:
        return self._kept(kind, head(kind, len(entries)) + b"".join(entries), len(entries))

    def _kept(self, kind: int, payload: bytes, count: int) -> Ref:
        node = nodes.leaf(kind, payload)
        digest = nodes.digest_of(node)
        self._keep(digest, node)
        return Ref(kind, 0, count, digest)

    def _tree(self, refs: list[Ref]) -> bytes:
        """The ref above all of these, packed."""
        while len(refs) > 1:
            above: list[Ref] = []
            start = 0
            for at, ref in enumerate(refs, 1):
                held = at - start
                cut = held > 1 and ref.digest[0] < 256 // nodes.FAN_OUT
                if cut or held == nodes.LARGEST_FAN_OUT or at == len(refs):
                    node, count = nodes.index(refs[start:at])
                    digest = nodes.digest_of(node)
                    self._keep(digest, node)
                    above.append(Ref(ref.kind, ref.level + 1, count, digest))
                    start = at
            refs = above
        return refs[0].packed()


class _LongKey(Exception):
    """A dict with a key that is too long for a node."""


class _Entry(NamedTuple):
    """Where an entry of a container stands, and its value; in a list both begin together."""

    start: int
    value: int
    end: int


class _Cut(NamedTuple):
    """Leaves of some entries; ``closed``: they are one, and a stretch ends with it."""

    refs: list[Ref]
    raw_bytes: int
    closed: bool


def _opened(data: bytes, at: int) -> tuple[int, int]:
    """How many entries a packed list or dict has, and where they begin."""
    first = data[at]
    if first < 0xA0:
        return first & 0x0F, at + 1
    width = 2 if first in (0xDC, 0xDE) else 4
    return int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width


def _entries(kind: int, data: bytes, at: int, end: int, count: int) -> list[_Entry]:
    """The ``count`` entries that stand there. `_LongKey`."""
    opening = head(kind, count)
    start = max(at - len(opening), 0)
    if data.startswith(opening, start):
        rest: Any = memoryview(data)[start:end]
    else:
        rest = opening + data[at:end]
    found: list[_Entry] = []
    if kind == LIST:
        for one in _RAW_LIST.decode(rest):
            found.append(_Entry(at, at, at := at + len(memoryview(one))))
        return found
    for key, value in _RAW_DICT.decode(rest).items():
        start = at
        at += len(pack(key))
        if at - start > nodes.INLINE_BYTES:
            raise _LongKey
        found.append(_Entry(start, at, at := at + len(memoryview(value))))
    return found
