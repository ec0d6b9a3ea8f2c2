"""Frames: the bytes of a tape file and of a spool segment. Pure; who reads and writes is elsewhere.

A file is `MAGIC`, then frames: length (u32), CRC-32 of the payload (u32), payload (MessagePack of one
`Record`), little-endian. The first record is a `Header`. A file that a process was still writing when
it died ends in zeros or in half a frame; `scan` stops there and says so.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from playhead_semconv.errors import CorruptTape
from playhead_semconv.facts import SCHEMA_VERSION, Fact

MAGIC = b"playhead-tape\x001\n"
HEAD = struct.Struct("<II")
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024


class Header(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """First record of a file: whose facts these are."""

    instance: bytes
    created_ns: int
    schema: int = SCHEMA_VERSION
    resource: dict[str, str | int | float | bool | list[str]] = {}
    """Attributes of the process's OTel resource."""


class SpanRecord(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A finished span on its way: OTLP `ResourceSpans` bytes that hold exactly one span."""

    otlp: bytes


Record: TypeAlias = Fact | SpanRecord | Header

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """One frame."""
    payload = _encoder.encode(record)
    return HEAD.pack(len(payload), zlib.crc32(payload)) + payload


class Scan:
    """Iterates over the whole frames of ``data`` from ``offset``, as ``(offset, record)``.

    ``end`` is where the next frame would begin: everything before it has been read. When the
    iteration is over, ``torn`` says whether something other than zeros stands behind ``end`` (half a
    frame, or damage), and ``problem`` what it is. A frame that is whole but holds no record of ours
    (a later version's, say) is passed over and counted in ``skipped``.
    """

    def __init__(self, data: bytes | memoryview, offset: int = 0) -> None:
        self._data = memoryview(data)
        self.end = offset
        self.torn = False
        self.skipped = 0
        self.problem = ""

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        data, size = self._data, len(self._data)
        if self.end == 0:
            if size < len(MAGIC) or bytes(data[: len(MAGIC)]) != MAGIC:
                self._stop("not a playhead tape (wrong first bytes)", any(data[: len(MAGIC)]))
                return
            self.end = len(MAGIC)
        while self.end + HEAD.size <= size:
            length, crc = HEAD.unpack_from(data, self.end)
            if length == 0:
                self._stop("zeros", any(data[self.end : self.end + 4096]))
                return
            start = self.end + HEAD.size
            if length > MAX_PAYLOAD_BYTES or start + length > size:
                self._stop(f"half a frame: {length} bytes announced, {size - start} there")
                return
            payload = data[start : start + length]
            if zlib.crc32(payload) != crc:
                self._stop("checksum differs")
                return
            try:
                record = _decoder.decode(payload)
            except msgspec.DecodeError as problem:
                self.skipped += 1
                self.problem = f"not a record: {problem}"
                self.end = start + length
                continue
            at, self.end = self.end, start + length
            yield at, record
        if self.end < size:
            self._stop("half a frame", any(data[self.end :]))

    def _stop(self, problem: str, torn: bool = True) -> None:
        self.torn, self.problem = torn, problem


def read_whole(data: bytes | memoryview, name: str = "tape") -> Iterator[Record]:
    """All records of a file that must be whole. `CorruptTape` names the position where it is not."""
    scan = Scan(data)
    for _, record in scan:
        yield record
    if scan.torn or scan.skipped or scan.end == 0:
        raise CorruptTape(
            f"{name} is damaged at byte {scan.end}: {scan.problem}",
            hint="take the copy from the store: playhead export RUN",
        )
