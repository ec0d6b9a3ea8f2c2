"""Packs a value whole, then cuts it into nodes at content-defined boundaries."""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate, compress, pairwise
from typing import Any, Final, NamedTuple

import msgspec
import ormsgpack

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.cutting import EntryCutter
from playhead_checkpoint.tree.encoding import (
    NotPlain,
    ValueEncoder,
    head,
    holds_bytes,
    may_hold_bytes,
    typed,
)
from playhead_checkpoint.tree.entries import (
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
from playhead_checkpoint.tree.nodes import BYTES, DICT, LIST, TEXT, pack, type_of
from playhead_checkpoint.tree.ranges import KnownRanges
from playhead_checkpoint.tree.reading import LARGEST_STATE_BYTES
from playhead_checkpoint.tree.standard_types import STANDARD
from playhead_checkpoint.tree.types import Types
from playhead_core.errors import StateRefused

LARGEST_PUT_BYTES: Final = LARGEST_STATE_BYTES // 2
"""Largest state that can be stored: less than what can be read."""
_FEW: Final = 64
"""Largest number of entries of a dict that is cut by its values only, not into ranges."""
_LONG: Final = 4
"""Smallest number of entries of a long list."""
_MOST_PARTS: Final = 3
"""How many dicts deep to search for long lists."""
_TEXT: Final = frozenset({str})
_IS_CONTAINER: Final = frozenset({dict, list}).__contains__
_LONG_KEY: Final = nodes.INLINE_BYTES // 4
_MARK_BYTES: Final = 48
_TEXT_HEADS: Final = {0xC4: 2, 0xC5: 3, 0xC6: 5, 0xD9: 2, 0xDA: 3, 0xDB: 5}
_NONE: Final = KnownRanges()


class _Placed(NamedTuple):
    """The placeholder of a long list: a unique prefix, and its size."""

    mark: bytes
    size: int
    opened: bool


class Packer(EntryCutter):
    """Packs one value. The new nodes are in ``kept``, children before parents.

    The nodes of a value depend on the value alone. The entries of a large container decide where it is
    cut: so after a change the nodes before and after it stay the same. ``known``: ranges whose nodes are
    already stored; they are not made again.
    """

    def __init__(self, types: Types, known: KnownRanges = _NONE) -> None:
        self._encoder = ValueEncoder(types)
        super().__init__(known)

    def state(self, state: Any) -> bytes:
        """Pack a state. `StateRefused` names the path and type of a value that cannot be stored."""
        try:
            packed = self._cut(self._encoder.packed(self._without_long(state)))
        except NotPlain:
            packed = b""
        if not packed or self._holds_bytes:
            self._begin()
            packed = self._cut(self._encoder.exactly(state))
        return packed

    def _begin(self) -> None:
        """Reset the state."""
        super()._begin()
        self.roots: set[bytes] = set()
        """Digests of the nodes that the packed state refers to."""
        self.logical_bytes = 0
        self._placed: list[_Placed] = []
        self._depth = self._small_bytes = 0

    def _cut(self, data: bytes) -> bytes:
        self._spend(len(data))
        packed = self._value(data, 0, len(data))
        if packed is not data:
            self.roots = {ref.digest for ref in nodes.refs_in(packed)}
        return packed

    def _without_long(self, value: Any) -> Any:
        """Return the value with each long list replaced by packed MessagePack."""
        kind = type_of(value)
        if kind is list and len(value) >= _LONG:
            return self._long(value)
        return self._without_long_below(value, _MOST_PARTS) if kind is dict else value

    def _without_long_below(self, value: dict[Any, Any], levels: int) -> dict[Any, Any]:
        """Replace long lists in a dict, ``levels`` levels deep."""
        if len(value) > _FEW:
            return value
        found: dict[Any, Any] = {}
        for key, one in compress(value.items(), map(_IS_CONTAINER, map(type_of, value.values()))):
            if type_of(one) is list:
                part = self._long(one) if len(one) >= _LONG else one
            else:
                part = self._without_long_below(one, levels - 1) if levels > 1 and one else one
            if part is not one:
                found[key] = part
        if not found:
            return value
        if not _TEXT.issuperset(map(type_of, value)) or max(map(len, value)) >= _LONG_KEY:
            raise NotPlain
        return value | found

    def _long(self, values: list[Any]) -> Any:
        """Pack a list, only as far as it is not known; return it unchanged if it is small."""
        before, self.kept = self.kept, {}
        found = len(self.ranges)
        grown = self._grown(ListEntries(values, self._encoder))
        if not self._has_room(grown.size):  # it will be one node or inline: discard the new nodes
            self.kept = before
            del self.ranges[found:]
            return values
        self.kept = before | self.kept
        self.roots |= grown.roots
        tail, refs = grown.tail, grown.refs
        if tail is None and len(refs) == 1:
            code, data = nodes.REF, refs[0].data()
        else:
            tail_data = head(LIST, tail.entries) + tail.cut if tail else head(LIST, 0)
            code, data = nodes.OPEN, grown.opening + tail_data
        placed = pack(msgspec.msgpack.Ext(code, data))
        size = len(placed)
        self._spend(grown.size - size)
        mark = placed[:_MARK_BYTES] if refs else placed
        self._placed.append(_Placed(mark, size, code == nodes.OPEN))
        return ormsgpack.Ext(code, data)

    def _has_room(self, size: int) -> bool:
        """Whether to store a list of this size as an open list; of small lists only the first ones."""
        if size > nodes.WHOLE_BYTES:
            return True
        if size > nodes.INLINE_BYTES:
            self._small_bytes += size
        return size > nodes.INLINE_BYTES and self._small_bytes <= nodes.WHOLE_BYTES

    def _spend(self, size: int) -> None:
        self.logical_bytes += size
        if self.logical_bytes > LARGEST_PUT_BYTES:
            raise StateRefused(f"the state has more than {LARGEST_PUT_BYTES} bytes")

    # In the methods below, ``data`` is the packed state, and the value is at ``data[at:end]``.

    def _value(self, data: bytes, at: int, end: int) -> bytes:
        if end - at - self._open_bytes(data, at, end) <= nodes.INLINE_BYTES:
            found = data[at:end]
            if not self._holds_bytes and self._looks_like_bytes(found) and holds_bytes(found):
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

    def _open_bytes(self, data: bytes, at: int, end: int) -> int:
        """Return the size of open lists in the range; it does not count for the decision about nodes."""
        found = 0
        for one in self._placed:
            if one.opened and data.find(one.mark, at, end) >= 0:
                found += one.size
        return found

    def _looks_like_bytes(self, found: bytes) -> bool:
        """Whether a packed value may contain bytes, outside of the placeholders of long lists."""
        for one in self._placed:
            if (at := found.find(one.mark)) >= 0:
                found = found[:at] + found[at + one.size :]
        return may_hold_bytes(found, 0, len(found))

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
        """Cut a text or bytes value into pieces."""
        start = at + _TEXT_HEADS[data[at]]
        if end - start <= nodes.WHOLE_BYTES:
            return data[at:end]
        size = nodes.PIECE_BYTES
        pieces = (data[one : min(one + size, end)] for one in range(start, end, size))
        return self._root([self._node(kind, piece, len(piece)) for piece in pieces]).packed()

    def _typed(self, data: bytes, at: int, end: int) -> bytes:
        before = self._holds_bytes
        held = msgspec.msgpack.decode(data[at:end], type=msgspec.msgpack.Ext)
        if held.code == nodes.OPEN:
            return data[at:end]
        name, parts = map(bytes, RAW_LIST.decode(held.data))
        cut = self._value(parts, 0, len(parts))
        self._holds_bytes = before  # typed values were packed exactly
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

    def _joined(self, kind: int, entries: list[bytes]) -> bytes:
        """Return a container of cut entries."""
        joined = b"".join(entries)
        size = len(joined)
        if size - self._open_bytes(joined, 0, size) <= nodes.INLINE_BYTES:
            return head(kind, len(entries)) + joined
        if size <= nodes.WHOLE_BYTES:
            return self._node(kind, head(kind, len(entries)) + joined, len(entries)).packed()
        ends = [*accumulate(map(len, entries), initial=0)]
        places = [EntryPlace(start, end, end) for start, end in pairwise(ends)]
        return self._tree_of(kind, PackedEntries(joined, places))

    def _cut_entry(self, entries: Entries, at: int, packed: bytes = b"") -> bytes:
        packed = packed or entries.packed(at)
        key = entries.key_bytes(at)
        value = self._value(packed, key, len(packed))
        return packed[:key] + value if key else value
