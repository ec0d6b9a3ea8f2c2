"""Scrubs Amazon's event streams as they arrive: a message from which something is taken keeps its form.

`wire.event_stream` says what a message consists of. Lengths do not change, so its head stays; its
checksum comes last, and is made anew. What a payload carries in base64 (``{"bytes": …}``, as models are
invoked on Bedrock) is scrubbed as what it stands for.
"""

from __future__ import annotations

import base64
import binascii
import struct
import sys
from collections.abc import Callable
from typing import Final

from playhead_semconv.secrets.scrubbing import Scrubber

_HEAD: Final = struct.Struct(">III")
_CHECKSUM: Final = struct.Struct(">I")
_OPENING: Final = b'{"bytes":"'


class FrameScrubber:
    """Scrubs an uncompressed event stream. What is no message, and all after it, is scrubbed as text."""

    unpacked = ""

    def __init__(self, texts: Scrubber, carried: Scrubber) -> None:
        """``texts``: for headers and payloads. ``carried``: for what payloads carry in base64."""
        self.count = 0
        self._texts = texts
        self._carried = carried
        self._due = _HEAD.size
        """Bytes of the current field that have not come."""
        self._scrub: Callable[[bytes], bytes] = self._of_head
        """Scrubs a piece of the current field."""
        self._over: Callable[[], None] = self._after_head
        """Called when the current field is over."""
        self._head = b""
        self._payload = 0
        """Size of the payload of the current message."""
        self._came = self._kept = 0
        """CRC-32 of the current message as it came, and as it is on the tape."""
        self._opening: bytes | None = b""
        """The beginning of the payload, without spaces; None: what it carries is known."""
        self._group: bytes | None = None
        """Up to three last characters of base64, which wait for a fourth; None: outside of base64."""

    def chunk(self, data: bytes) -> bytes:
        """See `Scrubber.chunk`."""
        kept = bytearray()
        while len(kept) < len(data):
            piece = data[len(kept) : len(kept) + self._due]
            new = self._scrub(piece)
            if self._scrub != self._of_checksum:
                self._came = binascii.crc32(piece, self._came)
                self._kept = binascii.crc32(new, self._kept)
            kept += new
            self._due -= len(piece)
            while not self._due:
                self._over()
        self.count = self._texts.count + self._carried.count
        return bytes(kept)

    def _of_head(self, data: bytes) -> bytes:
        self._head += data
        return data

    def _after_head(self) -> None:
        total, headers, checksum = _HEAD.unpack(self._head)
        payload = total - headers - _HEAD.size - _CHECKSUM.size
        if payload < 0 or checksum != binascii.crc32(self._head[:8]):
            self._due, self._scrub = sys.maxsize, self._texts.chunk
            return
        self._head = b""
        self._payload = payload
        self._next(headers, self._texts.chunk, self._after_headers)

    def _after_headers(self) -> None:
        self._opening, self._group = b"", None
        self._next(self._payload, self._of_payload, self._after_payload)

    def _after_payload(self) -> None:
        self._next(_CHECKSUM.size, self._of_checksum, self._after_message)

    def _next(self, due: int, scrub: Callable[[bytes], bytes], over: Callable[[], None]) -> None:
        self._due, self._scrub, self._over = due, scrub, over

    def _of_checksum(self, data: bytes) -> bytes:
        # The difference of the checksums, so that a wrong one stays wrong.
        made = _CHECKSUM.pack(self._came ^ self._kept)[_CHECKSUM.size - self._due :]
        return bytes(one ^ other for one, other in zip(data, made, strict=False))

    def _after_message(self) -> None:
        self._came = self._kept = 0
        self._next(_HEAD.size, self._of_head, self._after_head)

    def _of_payload(self, data: bytes) -> bytes:
        begun = 0 if self._opening is None else self._opened(data)
        if self._opening:
            return data
        if self._group is None:
            return self._texts.chunk(data)
        end = data.find(b'"', begun)
        coded = data[begun:] if end < 0 else data[begun:end]
        kept = data[:begun] + self._of_base64(self._group, coded)
        if end >= 0:
            self._group = None
            kept += self._texts.chunk(data[end:])
        return kept

    def _opened(self, data: bytes) -> int:
        """See what the payload carries. Returns how many bytes of ``data`` stand before base64."""
        for at, character in enumerate(data):
            if character in b" \t\r\n":
                continue
            self._opening = opening = (self._opening or b"") + data[at : at + 1]
            if opening == _OPENING:
                self._opening, self._group = None, b""
                return at + 1
            if not _OPENING.startswith(opening):
                self._opening = None
                return 0
        return 0

    def _of_base64(self, group: bytes, coded: bytes) -> bytes:
        """Scrub ``coded``. ``group``: the characters before it, which are on the tape already.

        Of a byte that they are part of, nothing can be hidden any more.
        """
        whole = group + coded
        size = len(whole) // 4 * 4
        self._group = whole[size:]
        try:
            text = base64.b64decode(whole[:size], validate=True)
        except ValueError:
            return self._texts.chunk(coded)
        kept = self._carried.chunk(text)
        if kept == text:
            return coded
        on_tape = -(-len(group) * 3 // 4)
        new = base64.b64encode(text[:on_tape] + kept[on_tape:]) + self._group
        return new[len(group) :]
