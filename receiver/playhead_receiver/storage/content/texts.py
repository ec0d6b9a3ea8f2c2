"""Spans and texts in frames.

A *frame* is a list of *items*, compressed. An item is one of

* bytes: a *text* as it is, or a span (without its resource) as it is;
* a span whose large values are texts: ``[0, rest, check, offset, address, offset, address, …]``, with
  ascending offsets and the first bytes of the digest of the whole;
* a text that extends another: ``[1, address or nil, part, part, …]``, a part being bytes or the
  address of a text.

An *address* is the number of the frame and the index in it. Within one frame it is the complement of
the index alone, hence negative. A text never changes, and refers only to what was stored before it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from playhead_core.errors import CorruptTape, StoreError
from playhead_receiver.storage.content.compressed_frames import decoded
from playhead_receiver.storage.content.cutting import check_of, together

PLACE_BITS = 24
SPAN, TEXT = 0, 1

FRAMES_KEPT_BYTES = 16 * 1024 * 1024
TEXTS_KEPT_BYTES = 16 * 1024 * 1024

_decode: msgspec.msgpack.Decoder[list[Any]] = msgspec.msgpack.Decoder(list[Any])


def address_of(frame: int, place: int) -> int:
    """The address of the item at ``place`` of ``frame``."""
    return frame << PLACE_BITS | place


def last_address(frame: int) -> int:
    """The highest address of a frame. In lists of deleted texts it means all texts of the frame."""
    return address_of(frame + 1, 0) - 1


def frame_of(address: int) -> int:
    """The number of the frame that an address is in."""
    return address >> PLACE_BITS


def relative(address: int, frame: int) -> int:
    """An address in the form that items of ``frame`` use."""
    return ~(address & (1 << PLACE_BITS) - 1) if frame_of(address) == frame else address


def absolute(address: int, frame: int) -> int:
    """The inverse of `relative`."""
    return address_of(frame, ~address) if address < 0 else address


def items_of(plain: bytes) -> list[Any]:
    """The items of a plain frame; None in place of a deleted one. `CorruptTape` if it is damaged."""
    return decoded(_decode, plain)


def addresses_in(item: Any, frame: int) -> list[int]:
    """The absolute addresses that an item of ``frame`` refers to."""
    if isinstance(item, bytes) or item is None:
        return []
    found = item[4::2] if item[0] == SPAN else item[1:]
    return [absolute(one, frame) for one in found if isinstance(one, int)]


class Texts:
    """Reads spans and texts back from frames. Used by one thread.

    ``fetch`` returns the plain frame with a number, and others that were read with it, by number; an
    empty mapping if the store does not hold it.

    Caches frames and long texts, which consecutive spans share, up to a number of bytes.
    """

    def __init__(self, fetch: Callable[[int], Mapping[int, bytes]]) -> None:
        self._fetch = fetch
        self._frames: OrderedDict[int, tuple[list[Any], int]] = OrderedDict()
        self._frames_bytes = 0
        self._texts: OrderedDict[int, bytes] = OrderedDict()
        self._texts_bytes = 0

    def span(self, frame: int, place: int) -> bytes:
        """A span's bytes, without its resource.

        `StoreError` if part of it is missing, `CorruptTape` if it differs from what came in.
        """
        item = self._item(frame, place)
        if isinstance(item, bytes):
            return item
        texts = zip(item[3::2], item[4::2], strict=True)
        whole = together(item[1], [(offset, self.text(absolute(one, frame))) for offset, one in texts])
        if check_of(whole) != item[2]:
            raise CorruptTape(f"item {place} of frame {frame} differs from its digest")
        return whole

    def head(self, frame: int, place: int) -> bytes:
        """The beginning of a span's bytes, up to its first separately stored value. `StoreError`."""
        item = self._item(frame, place)
        return item if isinstance(item, bytes) else item[1][: item[3]]

    def text(self, address: int) -> bytes:
        """The bytes of a text. `StoreError` if part of it is missing."""
        later: list[tuple[int, list[Any]]] = []
        before: int | None = address
        begin = b""
        while before is not None:
            kept = self._texts.get(before)
            if kept is not None:
                self._texts.move_to_end(before)
                begin = kept
                break
            frame = frame_of(before)
            item = self._item(frame, before & (1 << PLACE_BITS) - 1)
            if isinstance(item, bytes):
                begin = item
                break
            later.append((before, item))
            before = None if item[1] is None else absolute(item[1], frame)
        if not later:
            return begin
        parts = [begin]
        for place, item in reversed(later):
            for part in item[2:]:
                parts.append(part if isinstance(part, bytes) else self._leaf(part, frame_of(place)))
        whole = b"".join(parts)
        self._texts[address] = whole
        self._texts_bytes += len(whole)
        while self._texts_bytes > TEXTS_KEPT_BYTES:
            self._texts_bytes -= len(self._texts.popitem(last=False)[1])
        return whole

    def _leaf(self, address: int, frame: int) -> bytes:
        found = absolute(address, frame)
        item = self._item(frame_of(found), found & (1 << PLACE_BITS) - 1)
        return item if isinstance(item, bytes) else self.text(found)

    def items(self, frame: int) -> list[Any]:
        """The items of a frame; None in place of a deleted one. `StoreError` if the frame is missing."""
        kept = self._frames.get(frame)
        if kept is not None:
            self._frames.move_to_end(frame)
            return kept[0]
        found = self._fetch(frame)
        if frame not in found:
            raise StoreError(f"frame {frame} is not in the store", hint="playhead verify")
        return self._open(frame, found)

    def _item(self, frame: int, place: int) -> Any:
        items = self.items(frame)
        item = items[place] if place < len(items) else None
        if item is None:
            raise StoreError(
                f"item {place} of frame {frame} is not in the store", hint="playhead verify"
            )
        return item

    def _open(self, frame: int, found: Mapping[int, bytes]) -> list[Any]:
        for other, plain in found.items():
            if other not in self._frames:
                self._frames[other] = (items_of(plain), len(plain))
                self._frames_bytes += len(plain)
        self._frames.move_to_end(frame)
        items = self._frames[frame][0]
        while self._frames_bytes > FRAMES_KEPT_BYTES and len(self._frames) > 1:
            self._frames_bytes -= self._frames.popitem(last=False)[1][1]
        return items
