"""Entries of a container, one by one: of a list of the program, or of one that is packed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from playhead_checkpoint.tree import nodes
from playhead_checkpoint.tree.encoding import ValueEncoder
from playhead_checkpoint.tree.nodes import LIST, pack, type_of
from playhead_checkpoint.tree.ranges import Part

RAW_LIST: Final = msgspec.msgpack.Decoder(list[msgspec.Raw])
RAW_DICT: Final = msgspec.msgpack.Decoder(dict[str, msgspec.Raw])
_PLAIN: Final = frozenset({dict, list, str, int, float, bool, type(None)})
_AT_ONCE: Final = 512
"""Entries up to which a list is packed whole to be compared."""


class Entries(Protocol):
    """Entries of a container; those of a dict are key and value."""

    def __len__(self) -> int: ...

    def packed(self, at: int) -> bytes:
        """The entry, packed."""
        ...

    def key_bytes(self, at: int) -> int:
        """How much of it is its key."""
        ...

    def go_on(self, at: int, part: Part) -> bool:
        """Whether the part stands there."""
        ...


class ListEntries:
    """Those of a list that is not packed yet. One whose first entry is plain is packed whole."""

    def __init__(self, values: list[Any], encoder: ValueEncoder) -> None:
        self._values = values
        self._encoder = encoder
        plain = type_of(values[0]) in _PLAIN and len(values) <= _AT_ONCE
        self._whole = encoder.packed(values) if plain else b""
        self._start = 1 if len(values) < 16 else 3

    def __len__(self) -> int:
        return len(self._values)

    def packed(self, at: int) -> bytes:
        """The entry, packed."""
        return self._encoder.packed(self._values[at])

    def beginning(self) -> bytes:
        """What the list begins with, and does when it has grown, if it is long."""
        start = self._start
        return self._whole[start : start + nodes.INLINE_BYTES] if self._whole else self.packed(0)

    def behind(self, entries: int, size: int) -> list[bytes]:
        """The entries behind so many, packed; those before them have so many bytes."""
        if self._whole and entries + 1 == len(self._values):
            return [self._whole[self._start + size :]]
        return [*map(self._encoder.packed, self._values[entries:])]

    def known(self, parts: Sequence[Part]) -> int:
        """How many of the parts it begins with."""
        at = self._start if self._whole else 0
        for number, part in enumerate(parts):
            if not (self._whole.startswith(part.raw, at) if self._whole else self.go_on(at, part)):
                return number
            at += len(part.raw) if self._whole else part.entries
        return len(parts)

    def key_bytes(self, at: int) -> int:
        """It has none."""
        return 0

    def go_on(self, at: int, part: Part) -> bool:
        """Whether the part stands there."""
        some, seen, raw = self._values[at : at + part.entries], part.seen, part.raw
        if seen.row is not None and seen.row.same(some, self._encoder.types):
            return True
        found = self._encoder.packed(some)
        header = 1 if part.entries < 16 else 3 if part.entries < 1 << 16 else 5
        if len(found) != len(raw) + header or not found.endswith(raw):
            return False
        seen.see(some, self._encoder.types)
        return True


class LongKey(Exception):
    """A dict with a key that is too long for a node."""


class EntryPlace(NamedTuple):
    """Where an entry stands, and its value; in a list both begin together."""

    start: int
    value: int
    end: int


class PackedEntries:
    """Those of a packed container, which stand in ``data``."""

    def __init__(self, data: bytes, places: Sequence[EntryPlace]) -> None:
        self._data = data
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def packed(self, at: int) -> bytes:
        """The entry, packed."""
        start, _, end = self.places[at]
        return self._data[start:end]

    def key_bytes(self, at: int) -> int:
        """How much of it is its key."""
        return self.places[at].value - self.places[at].start

    def go_on(self, at: int, part: Part) -> bool:
        """Whether the part stands there."""
        return self._data.startswith(part.raw, self.places[at].start)


def opened(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """How many entries a packed list or dict at ``at`` has, and where they begin."""
    first = data[at]
    if first < 0xA0:
        return first & 0x0F, at + 1
    width = 2 if first in (0xDC, 0xDE) else 4
    return int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width


def packed_entries(kind: int, data: bytes, at: int, end: int) -> PackedEntries:
    """The entries of the container that stands there. `LongKey`."""
    _, start = opened(data, at)
    places: list[EntryPlace] = []
    whole = memoryview(data)[at:end]
    if kind == LIST:
        for one in RAW_LIST.decode(whole):
            places.append(EntryPlace(start, start, start := start + len(memoryview(one))))
        return PackedEntries(data, places)
    for key, value in RAW_DICT.decode(whole).items():
        begin = start
        start += len(pack(key))
        if start - begin > nodes.INLINE_BYTES:
            raise LongKey
        places.append(EntryPlace(begin, start, start := start + len(memoryview(value))))
    return PackedEntries(data, places)
