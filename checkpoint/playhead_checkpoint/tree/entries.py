"""Access to the entries of a container: a list of the program, or a packed container."""

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
"""Largest number of entries of a list that is packed whole for comparison."""


class Entries(Protocol):
    """Entries of a container; an entry of a dict is key and value."""

    def __len__(self) -> int: ...

    def packed(self, at: int) -> bytes:
        """Return the packed entry."""
        ...

    def key_bytes(self, at: int) -> int:
        """Return the size of its key."""
        ...

    def matches(self, at: int, part: Part) -> bool:
        """Whether the entries from ``at`` on equal the part."""
        ...


class ListEntries:
    """Entries of a list that is not packed yet. It is packed whole if its first entry is plain."""

    def __init__(self, values: list[Any], encoder: ValueEncoder) -> None:
        self._values = values
        self._encoder = encoder
        plain = type_of(values[0]) in _PLAIN and len(values) <= _AT_ONCE
        self._whole = encoder.packed(values) if plain else b""
        self._start = 1 if len(values) < 16 else 3

    def __len__(self) -> int:
        return len(self._values)

    def packed(self, at: int) -> bytes:
        """Return the packed entry."""
        return self._encoder.packed(self._values[at])

    def beginning(self) -> bytes:
        """Return the first bytes of the list, which stay the same when a long list grows."""
        start = self._start
        return self._whole[start : start + nodes.INLINE_BYTES] if self._whole else self.packed(0)

    def after(self, entries: int, size: int) -> list[bytes]:
        """Return the packed entries after the first ``entries``, which have ``size`` bytes."""
        if self._whole and entries + 1 == len(self._values):
            return [self._whole[self._start + size :]]
        return [*map(self._encoder.packed, self._values[entries:])]

    def known(self, parts: Sequence[Part]) -> int:
        """Return how many of ``parts`` the list begins with."""
        at = self._start if self._whole else 0
        for number, part in enumerate(parts):
            if not (self._whole.startswith(part.raw, at) if self._whole else self.matches(at, part)):
                return number
            at += len(part.raw) if self._whole else part.entries
        return len(parts)

    def key_bytes(self, at: int) -> int:
        """Return 0: list entries have no key."""
        return 0

    def matches(self, at: int, part: Part) -> bool:
        """Whether the entries from ``at`` on equal the part."""
        some, seen, raw = self._values[at : at + part.entries], part.seen, part.raw
        if seen.row is not None and seen.row.same(some, self._encoder.types):
            return True
        packed = self._encoder.packed(some)
        header = 1 if part.entries < 16 else 3 if part.entries < 1 << 16 else 5
        if len(packed) != len(raw) + header or not packed.endswith(raw):
            return False
        seen.see(some, self._encoder.types)
        return True


class LongKey(Exception):
    """A dict has a key that is too long for a node."""


class EntryPlace(NamedTuple):
    """Offsets of an entry and of its value, which are equal in a list."""

    start: int
    value: int
    end: int


class PackedEntries:
    """Entries of a container that is packed in ``data``."""

    def __init__(self, data: bytes, places: Sequence[EntryPlace]) -> None:
        self._data = data
        self.places = places

    def __len__(self) -> int:
        return len(self.places)

    def packed(self, at: int) -> bytes:
        """Return the packed entry."""
        start, _, end = self.places[at]
        return self._data[start:end]

    def key_bytes(self, at: int) -> int:
        """Return the size of its key."""
        return self.places[at].value - self.places[at].start

    def matches(self, at: int, part: Part) -> bool:
        """Whether the entries from ``at`` on equal the part."""
        return self._data.startswith(part.raw, self.places[at].start)


def opened(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """Return how many entries the packed list or dict at ``at`` has, and the offset of the first."""
    first = data[at]
    if first < 0xA0:
        return first & 0x0F, at + 1
    width = 2 if first in (0xDC, 0xDE) else 4
    return int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width


def packed_entries(kind: int, data: bytes, at: int, end: int) -> PackedEntries:
    """Return the entries of the container at ``at``. `LongKey`."""
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
