"""From a value to nodes: it is packed whole, then cut where its content says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec

from playhead_checkpoint.values import nodes
from playhead_checkpoint.values.encoding import Unlike, ValueEncoder, head, holds_bytes, may_hold_bytes, typed
from playhead_checkpoint.values.nodes import BYTES, DICT, LIST, TEXT, Ref, pack, type_of
from playhead_checkpoint.values.reading import LARGEST_STATE_BYTES
from playhead_checkpoint.values.standard_types import STANDARD
from playhead_checkpoint.values.types import Types
from playhead_semconv.errors import StateRefused

LARGEST_PUT_BYTES: Final = LARGEST_STATE_BYTES // 2
"""What a state may take that is put: less than what is read."""
_FEW: Final = 64
"""Entries up to which a large dict is not cut by stretches, as what is large in it may be in nodes."""
_CUT: Final = (1 << 32) // nodes.LEAF_BYTES
_LONG: Final = 32
"""Entries from which on a list is long."""
_MOST_PARTS: Final = 4
"""How deep long lists are looked for."""
_LONG_KEY: Final = nodes.INLINE_BYTES // 4
_MOST_STRETCH_BYTES: Final = 1 << 25
_TEXT_HEADS: Final = {0xC4: 2, 0xC5: 3, 0xC6: 5, 0xD9: 2, 0xDA: 3, 0xDB: 5}
_RAW_LIST: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
_RAW_DICT: Final = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])


class Stretch(NamedTuple):
    """Entries of a container that are one node: packed in a row, before large ones got nodes."""

    first: bytes
    raw: bytes
    ref: Ref
    holds_bytes: bool


class Stretches:
    """Stretches whose nodes are stored, those used last; they are not cut again.

    They are found by their first entry and compared as a whole, so nothing but equal bytes is taken for
    what did not change. It holds about 32 MB at most.
    """

    def __init__(self) -> None:
        self._found: dict[bytes, Stretch] = {}
        self._size = 0

    def of(self, first: bytes, kind: int, most: int) -> Stretch | None:
        """One that begins with a packed entry, and has at most so many."""
        found = self._found.get(first)
        if found is None or found.ref.kind != kind or found.ref.length > most:
            return None
        return found

    def add(self, stretches: Iterable[Stretch]) -> None:
        """Remember them; their nodes are stored."""
        for one in stretches:
            if self._size > _MOST_STRETCH_BYTES:
                self._found, self._size = {}, 0
            self._found[one.first] = one
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
        self._begin()
        try:
            packed = self._part(state)
            if not self._holds_bytes:
                return packed
        except Unlike:
            pass
        self._begin()
        return self._cut(self._encoder.exactly(state))

    def _begin(self) -> None:
        self._holds_bytes = False
        self.stretches.clear()
        self.logical_bytes = self._depth = 0

    def _part(self, value: Any) -> bytes:
        """A part of the state. Of a long list, what is known is never packed together with the rest."""
        if self._depth < _MOST_PARTS and _is_long(value, _MOST_PARTS - self._depth):
            if type_of(value) is list:
                return self._long(value)
            self._depth += 1
            entries: list[bytes] = []
            for key, one in value.items():
                if type_of(key) is not str or len(key) >= _LONG_KEY:
                    raise Unlike
                name = self._encoder.packed(key)
                self.logical_bytes += len(name)
                kind = type_of(one)
                if kind is list or kind is dict:
                    entries.append(name + self._part(one))
                else:
                    entries.append(name + self._cut(self._encoder.packed(one)))
            self._depth -= 1
            self.logical_bytes += 1
            return self._joined(DICT, entries)
        return self._cut(self._encoder.packed(value))

    def _long(self, values: list[Any]) -> bytes:
        """A list whose entries are packed only as far as they are not known."""
        keep, kept = self._keep, list[tuple[bytes, bytes]]()
        self._keep = lambda digest, node: kept.append((digest, node))
        refs: list[Ref] = []
        packed = self._encoder.packed
        at = size = 0
        while at < len(values):
            first = packed(values[at])
            known = self._known.of(first, LIST, len(values) - at)
            if known is not None and self._is(known, values[at : at + known.ref.length]):
                self._holds_bytes |= known.holds_bytes
                refs.append(known.ref)
                at, size = at + known.ref.length, size + len(known.raw)
                self._spend(len(known.raw))
                continue
            entries: list[bytes] = []
            before, self._holds_bytes = self._holds_bytes, False
            cut = self._next(LIST, self._one_by_one(values, at, entries))
            raw = b"".join(entries)
            if may_hold_bytes(raw, 0, len(raw)) and any(map(holds_bytes, entries)):
                self._holds_bytes = True
            if cut.closed:
                self.stretches.append(Stretch(first, raw, cut.refs[0], self._holds_bytes))
            self._holds_bytes |= before
            refs += cut.refs
            at, size = at + len(entries), size + len(raw)
            self._spend(len(raw))
        self._keep = keep
        if size <= nodes.WHOLE_BYTES:
            return self._cut(packed(values))
        for digest, node in kept:
            keep(digest, node)
        return self._tree(refs)

    def _is(self, known: Stretch, values: list[Any]) -> bool:
        """Whether these are the entries of a stretch."""
        raw = self._encoder.packed(values)
        return len(raw) - len(head(LIST, len(values))) == len(known.raw) and raw.endswith(known.raw)

    def _one_by_one(
        self, values: list[Any], at: int, packed: list[bytes]
    ) -> Iterator[tuple[int, bytes]]:
        """Pack the entries from ``at`` on, as far as they are asked for; add them to ``packed``."""
        for number in range(at, len(values)):
            entry = self._encoder.packed(values[number])
            packed.append(entry)
            size = len(entry)
            yield size, entry if size <= nodes.INLINE_BYTES else self._value(entry, 0, size)

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
        found = _entries(kind, data, start, end, count)
        return self._joined(kind, [self._entry(data, one) for one in found])

    def _joined(self, kind: int, entries: list[bytes]) -> bytes:
        """A container of entries that were cut."""
        size = sum(map(len, entries))
        if size <= nodes.INLINE_BYTES:
            return head(kind, len(entries)) + b"".join(entries)
        if size <= nodes.WHOLE_BYTES:
            return self._leaf(kind, entries).packed()
        refs: list[Ref] = []
        sized = ((len(entry), entry) for entry in entries)
        while (cut := self._next(kind, sized)).refs:
            refs += cut.refs
        return self._tree(refs)

    def _entry(self, data: bytes, entry: _Entry) -> bytes:
        value = self._value(data, entry.value, entry.end)
        return data[entry.start : entry.value] + value if entry.start < entry.value else value

    def _leaves(self, kind: int, data: bytes, at: int, end: int, left: int) -> list[Ref]:
        """The leaves of ``left`` entries. Known stretches are passed over."""
        refs: list[Ref] = []
        rest = _entries(kind, data, at, end, left)
        while left:
            first = data[at : rest[-left].end]
            known = self._known.of(first, kind, left)
            if known is not None and data.startswith(known.raw, at):
                self._holds_bytes |= known.holds_bytes
                refs.append(known.ref)
                at, left = at + len(known.raw), left - known.ref.length
                continue
            before, self._holds_bytes = self._holds_bytes, False
            cut = self._next(kind, self._sized(data, rest, left))
            if cut.closed:
                raw = data[at : at + cut.raw_bytes]
                self.stretches.append(Stretch(first, raw, cut.refs[0], self._holds_bytes))
            self._holds_bytes |= before
            refs += cut.refs
            at, left = at + cut.raw_bytes, left - sum(ref.length for ref in cut.refs)
        return refs

    def _sized(
        self, data: bytes, entries: Sequence[_Entry], left: int
    ) -> Iterator[tuple[int, bytes]]:
        """The last entries, cut, and what each has taken before."""
        at, end = entries[-left].start, entries[-1].end
        plain = self._holds_bytes or not may_hold_bytes(data, at, end)
        for number in range(len(entries) - left, len(entries)):
            start, value, end = entries[number]
            if plain and end - value <= nodes.INLINE_BYTES:
                yield end - start, data[start:end]
            else:
                yield end - start, self._entry(data, entries[number])

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


def _is_long(value: Any, levels: int) -> bool:
    """Whether it is a long list, or a small dict with one in it."""
    kind = type_of(value)
    if kind is list:
        return len(value) >= _LONG
    if kind is not dict or len(value) > _FEW or not levels:
        return False
    return any(_is_long(one, levels - 1) for one in value.values())


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
