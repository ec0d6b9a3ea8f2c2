"""Scrubs Amazon's event streams as they arrive: a message that had a credential keeps its form.

`playhead_genai.providers.event_stream` describes a message. Lengths do not change, so its head stays;
its checksum comes last and is computed again. Base64 in a payload (``{"bytes": …}``, for models on
Bedrock) is decoded, scrubbed and encoded.
"""

from __future__ import annotations

import base64
import binascii
import re
import struct
import sys
from collections.abc import Iterator
from enum import Enum
from typing import Final

from playhead_core.credentials.scrubbing import Scrubber
from playhead_core.lazy_patterns import lazy

_HEAD: Final = struct.Struct(">III")
_CHECKSUM: Final = struct.Struct(">I")
_OPENING: Final = b'{"bytes":"'
_OPENS: Final = lazy(b"".join(rb"\s*%b" % re.escape(_OPENING[i : i + 1]) for i in range(len(_OPENING))))
"""`_OPENING` at the beginning of a payload, wherever spaces are in it."""


class _Field(Enum):
    """Part of a message."""

    HEAD = 0
    TEXT = 1
    """Headers, and what of a payload is not base64."""
    BASE64 = 2
    CHECKSUM = 3


class FrameScrubber:
    """Scrubs an uncompressed event stream. What is no message, and all after it, is scrubbed as text."""

    unpacked = ""

    def __init__(self, texts: Scrubber, carried: Scrubber) -> None:
        """``texts``: for headers and payloads. ``carried``: for what payloads carry in base64."""
        self.count = 0
        self._texts = texts
        self._carried = carried
        self._walk = _Walk()
        self._group = b""
        """Up to three last characters of base64, which wait for a fourth."""
        self._sums: tuple[int, int] | None = None
        """CRC-32 of the current message as it came and as it is on the tape, from the first change on,
        which is enough to compute their difference; None: nothing was changed."""
        self._summed = 0
        """Bytes of the checksum that are on the tape."""

    def chunk(self, data: bytes) -> bytes:
        """See `Scrubber.chunk`."""
        said = _texts_of(data) if self._walk.between and self._sums is None else None
        kept = self._texts.chunk(said) if said else said
        if said is None or kept != said:
            data = self._walked(data, kept)
        elif data:
            self._group = b""
        self.count = self._texts.count + self._carried.count
        return data

    def _walked(self, data: bytes, kept: bytes | None) -> bytes:
        """Return ``data`` as it may go on the tape.

        ``kept``: its texts as they may; None: they were not searched yet.
        """
        fields = list(self._walk.fields(data))
        said = b"".join([data[begin:end] for field, begin, end in fields if field is _Field.TEXT])
        if kept is None:
            kept = self._texts.chunk(said) if said else b""
        plain = self._sums is None and all(field is not _Field.BASE64 for field, _, _ in fields)
        if not (plain and kept == said):
            return b"".join(self._rewritten(data, fields, kept))
        if fields:
            self._group = b""
        return data

    def _rewritten(
        self, data: bytes, fields: list[tuple[_Field, int, int]], texts: bytes
    ) -> Iterator[bytes]:
        """Yield the fields as they may go on the tape. ``texts``: those of text, one after the other."""
        at = 0
        for field, begin, end in fields:
            piece = new = data[begin:end]
            if field is _Field.BASE64:
                new = self._of_base64(piece)
            else:
                self._group = b""
            if field is _Field.TEXT:
                new = texts[at : at + len(piece)]
                at += len(piece)
            elif field is _Field.HEAD:
                self._sums = None
            elif field is _Field.CHECKSUM:
                yield self._of_checksum(piece)
                continue
            if self._sums is None and new != piece:
                self._sums, self._summed = (0, 0), 0
            if self._sums is not None:
                came, on_tape = self._sums
                self._sums = binascii.crc32(piece, came), binascii.crc32(new, on_tape)
            yield new

    def _of_checksum(self, data: bytes) -> bytes:
        if self._sums is None:
            return data
        came, on_tape = self._sums
        # By their difference, so that a wrong one stays wrong.
        changed = _CHECKSUM.pack(came ^ on_tape)[self._summed :]
        self._summed += len(data)
        return bytes(one ^ other for one, other in zip(data, changed, strict=False))

    def _of_base64(self, coded: bytes) -> bytes:
        """Scrub characters of base64.

        Of a byte to which characters belong that are on the tape already, nothing can be hidden.
        """
        before = len(self._group)
        whole = self._group + coded
        size = len(whole) // 4 * 4
        self._group = whole[size:]
        try:
            text = base64.b64decode(whole[:size], validate=True)
        except ValueError:
            return self._texts.chunk(coded)
        kept = self._carried.chunk(text)
        if kept == text:
            return coded
        on_tape = -(-before * 3 // 4)
        return (base64.b64encode(text[:on_tape] + kept[on_tape:]) + self._group)[before:]


class _Walk:
    """Classifies each byte of an event stream, however the stream is cut."""

    def __init__(self) -> None:
        self._head = b""
        self._headers = self._payload = 0
        """Bytes of headers and payload that have not come."""
        self._checksum = 0
        """Bytes of the checksum that have not come."""
        self._opening: bytes | None = b""
        """The beginning of the payload, without spaces; None: what it carries is known."""
        self._coded = False
        """Whether base64 continues."""

    @property
    def between(self) -> bool:
        """Whether the next byte begins a message."""
        return not (self._head or self._headers or self._payload or self._checksum)

    def fields(self, data: bytes) -> Iterator[tuple[_Field, int, int]]:
        """Yield what the bytes of ``data`` are, from the first to the last: field, begin, end."""
        at = 0
        while at < len(data):
            begin = at
            if self._headers:
                at = min(len(data), begin + self._headers)
                self._headers -= at - begin
                yield _Field.TEXT, begin, at
            elif self._payload:
                at = min(len(data), begin + self._payload)
                self._payload -= at - begin
                yield from self._in_payload(data, begin, at)
            elif self._checksum:
                at = min(len(data), begin + self._checksum)
                self._checksum -= at - begin
                yield _Field.CHECKSUM, begin, at
            else:
                at = min(len(data), begin + _HEAD.size - len(self._head))
                self._head += data[begin:at]
                yield _Field.HEAD, begin, at
                if len(self._head) == _HEAD.size:
                    self._begin()

    def _begin(self) -> None:
        """A head is complete."""
        head, self._head = self._head, b""
        total, headers, checksum = _HEAD.unpack(head)
        payload = total - headers - _HEAD.size - _CHECKSUM.size
        if payload < 0 or checksum != binascii.crc32(head[:8]):
            self._headers = sys.maxsize
            return
        self._headers, self._payload, self._checksum = headers, payload, _CHECKSUM.size
        self._opening, self._coded = b"", False

    def _in_payload(self, data: bytes, begin: int, end: int) -> Iterator[tuple[_Field, int, int]]:
        at = begin
        while self._opening is not None and at < end:
            at += 1
            self._open(data[at - 1 : at])
        if self._coded:
            quote = data.find(b'"', at, end)
            if at > begin:
                yield _Field.TEXT, begin, at
            begin = end if quote < 0 else quote
            self._coded = quote < 0
            if at < begin:
                yield _Field.BASE64, at, begin
        if begin < end:
            yield _Field.TEXT, begin, end

    def _open(self, character: bytes) -> None:
        """Use one more character to determine what the payload carries."""
        if character.isspace():
            return
        opening = (self._opening or b"") + character
        self._coded = opening == _OPENING
        self._opening = opening if opening != _OPENING and _OPENING.startswith(opening) else None


def _texts_of(data: bytes) -> bytes | None:
    """Return the headers and payloads of the messages in ``data``.

    None if it does not consist of whole messages, or where one carries base64.
    """
    texts: list[bytes] = []
    at, size = 0, len(data)
    while at < size:
        if size - at < _HEAD.size:
            return None
        total, headers, checksum = _HEAD.unpack_from(data, at)
        begin, end = at + _HEAD.size, at + total - _CHECKSUM.size
        payload, behind = begin + headers, at + total
        if payload > end or behind > size or checksum != binascii.crc32(data[at : at + 8]):
            return None
        if _OPENS.match(data, payload, end):
            return None
        texts.append(data[begin:end])
        at = behind
    return b"".join(texts)
