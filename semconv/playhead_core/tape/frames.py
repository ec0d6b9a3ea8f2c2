"""Frames: the format of tape files and spool segments. Pure functions; I/O is elsewhere.

A file is a magic line that ends in its version, then frames: length (u32), CRC-32 of the payload (u32),
payload (MessagePack of one `Record`), little-endian. The first record is a `Header`.

* Version 1 (`MAGIC`) is written during execution: segments of a spool, the tape of a replay. It may
  end anywhere; where its writer died it ends in zeros or in half a frame.
* Version 2 (`WHOLE`) is a file that was written in one go: each process of a run begins with its
  `Header`, and a `Footer` says that nothing is missing.
* Version 3 (`CHAINED`) is such a file with the chains of its processes, and optionally a signature.
* Version 4 (`LOGGED`) is such a file with log records.

`Scan` stops at what it cannot read and reports where and why. docs/tape-format.md is for other readers.
"""

from __future__ import annotations

import re
import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar, overload

import msgspec

from playhead_core.errors import CorruptTape, TapeTooNew
from playhead_core.facts import SCHEMA_VERSION, Fact
from playhead_core.integrity import ChainMapping, Link, Signature

NAME = b"playhead-tape\x00"
MAGIC = NAME + b"1\n"
WHOLE = NAME + b"2\n"
CHAINED = NAME + b"3\n"
LOGGED = NAME + b"4\n"
VERSION = 4
"""The highest version of files that this code reads."""

HEAD = struct.Struct("<II")
MAX_PAYLOAD_BYTES = 64 * 1024 * 1024


class Header(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """First record of a file: the process instance that the facts belong to."""

    instance: bytes
    created_ns: int
    schema: int = SCHEMA_VERSION
    resource: dict[str, str | int | float | bool | list[str]] = {}
    """Attributes of the process's OTel resource."""


class SpanRecord(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """A finished span as it is spooled: OTLP `ResourceSpans` bytes that hold exactly one span."""

    otlp: bytes


class Footer(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Last record of a file of version 2 or 3: the number of records of each kind."""

    facts: int
    spans: int
    links: int = 0
    """Links of chains and other records of custody, and log records."""


class LogEntry(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """A log record of any sender: OTLP `ResourceLogs` bytes that hold exactly one record."""

    otlp: bytes


_BEGINNINGS = re.compile(rb"[\x90-\x9f][\x00-\x07]", re.DOTALL)
"""First bytes of a record's payload: an array, and its tag."""

FACT, SPAN, LOG = 0, 1, 7
"""Tags of the records that a segment of a spool consists of, beside its header."""

CHECKED_TIMES = 16

Plain: TypeAlias = Fact | SpanRecord | Header | Footer
"""Records that occur in every version."""
Custody: TypeAlias = Link | ChainMapping | Signature
Record: TypeAlias = Plain | Custody | LogEntry
T = TypeVar("T")

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Record] = msgspec.msgpack.Decoder(Record)


def encode(record: Record) -> bytes:
    """Return the record as one frame."""
    payload = _encoder.encode(record)
    return HEAD.pack(len(payload), zlib.crc32(payload)) + payload


class Scan:
    """Iterates over the complete frames of ``data`` from ``offset``, as ``(offset, record)``.

    ``end`` is where the next frame would begin: everything before it has been read. When the iteration
    is over, ``torn`` says whether something other than zeros follows ``end`` (half a frame, or damage)
    or the footer is missing, and ``problem`` says what it is. A complete frame that holds no record
    known here (one of a later version, say) is skipped and counted in ``skipped``. ``too_new`` is the
    version of a file that is later than `VERSION`; nothing of it is read.
    """

    def __init__(self, data: bytes | memoryview, offset: int = 0) -> None:
        self._data = memoryview(data)
        self.end = offset
        self.torn = False
        self.skipped = 0
        self.problem = ""
        self.too_new = 0
        self.facts = 0
        self.spans = 0
        self.links = 0
        self._footer: Footer | None = None

    def __iter__(self) -> Iterator[tuple[int, Record]]:
        for at, payload in self.payloads():
            try:
                record = _decoder.decode(payload)
            except (msgspec.DecodeError, RecursionError) as problem:
                self.skipped += 1
                self.problem = f"not a record: {problem}"
                continue
            self._count(record)
            yield at, record

    def payloads(self) -> Iterator[tuple[int, memoryview]]:
        """Yield the same frames, not decoded: offset and payload.

        Records are not counted: to have the footer checked, iterate over the records.
        """
        data, size = self._data, len(self._data)
        version = 1
        if self.end == 0:
            version = _version(data)
            if version > VERSION:
                self.too_new = version
                self._stop(f"version {version} of the format; version {VERSION} is the latest known")
                return
            if not version:
                self._stop("not a playhead tape (wrong first bytes)", any(data[: len(MAGIC)]))
                return
            self.end = len(MAGIC)
        while self.end + HEAD.size <= size:
            length, crc = HEAD.unpack_from(data, self.end)
            if length == 0:
                self._stop("zeros", version > 1 or any(data[self.end : self.end + 4096]))
                return
            start = self.end + HEAD.size
            if length > MAX_PAYLOAD_BYTES or start + length > size:
                self._stop(f"half a frame: {length} bytes announced, {size - start} there")
                return
            payload = data[start : start + length]
            if zlib.crc32(payload) != crc:
                self._stop("checksum differs")
                return
            at, self.end = self.end, start + length
            yield at, payload
        if self.end < size:
            self._stop("half a frame", version > 1 or any(data[self.end :]))
        elif version > 1:
            self._check_footer()

    def _count(self, record: Record) -> None:
        if isinstance(record, Fact):
            self.facts += 1
        elif isinstance(record, SpanRecord):
            self.spans += 1
        elif isinstance(record, Footer):
            self._footer = record
        elif not isinstance(record, Header):
            self.links += 1

    def _check_footer(self) -> None:
        if self._footer is None:
            self._stop("the file ends before its footer")
        elif self._footer != Footer(self.facts, self.spans, self.links):
            told = self._footer
            self._stop(
                f"the footer counts {told.facts} facts, {told.spans} spans and {told.links} links,"
                f" there are {self.facts}, {self.spans} and {self.links}"
            )

    def _stop(self, problem: str, torn: bool = True) -> None:
        self.torn, self.problem = torn, problem


def tag_of(payload: memoryview) -> int:
    """Return the tag of the record in a payload: `FACT`, `SPAN` or another; -1 if it is no record."""
    first = payload[0] if payload.nbytes > 1 else 0
    return payload[1] if first & 0xF0 == 0x90 else -1


def decoded(payload: memoryview | bytes) -> Record:
    """Return the record of a frame.

    Raises `msgspec.DecodeError` or RecursionError if it holds none.
    """
    return _decoder.decode(payload)


def next_frame(data: bytes | memoryview, after: int) -> int | None:
    """Return where the next complete frame begins after damage at ``after``; None if there is none.

    Compares checksums wherever a record may begin. The number of bytes checked is bounded to a few times
    the length of the data, even for content that is made to look like frames.
    """
    view, size, left = memoryview(data), len(data), CHECKED_TIMES * len(data)
    for found in _BEGINNINGS.finditer(view, min(after + 1 + HEAD.size, size)):
        at = found.start() - HEAD.size
        length, crc = HEAD.unpack_from(view, at)
        if not 0 < length <= min(MAX_PAYLOAD_BYTES, size - found.start()):
            continue
        payload = view[found.start() : found.start() + length]
        left -= length
        if left < 0:
            return None
        if zlib.crc32(payload) != crc:
            continue
        try:
            _decoder.decode(payload)
        except (msgspec.DecodeError, RecursionError):
            continue
        return at
    return None


class Frames(Sequence[T]):
    """Records of a file, addressed by offset; decoded on access and not kept."""

    def __init__(
        self, data: bytes | memoryview, decode: Callable[[memoryview], T], offsets: Iterable[int] = ()
    ) -> None:
        """``data``: a file of complete frames. ``decode``: makes the item of a payload."""
        self._data = memoryview(data)
        self._decode = decode
        self._offsets = array("Q", offsets)

    def append(self, offset: int) -> None:
        """Add the frame that begins at ``offset``."""
        self._offsets.append(offset)

    def pick(self, places: Iterable[int]) -> Frames[T]:
        """Return the frames at ``places``, in this order."""
        return Frames(self._data, self._decode, (self._offsets[place] for place in places))

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, place: int) -> T: ...
    @overload
    def __getitem__(self, place: slice) -> list[T]: ...
    def __getitem__(self, place: int | slice) -> T | list[T]:
        if isinstance(place, slice):
            return [self[one] for one in range(*place.indices(len(self)))]
        offset = self._offsets[place]
        start = offset + HEAD.size
        length, _ = HEAD.unpack_from(self._data, offset)
        return self._decode(self._data[start : start + length])

    def __iter__(self) -> Iterator[T]:
        for place in range(len(self._offsets)):
            yield self[place]


def _version(data: memoryview) -> int:
    """Return the version in the first line; 0 if it is not a first line of this format."""
    line, ends, _ = bytes(data[: len(NAME) + 8]).partition(b"\n")
    digits = line.removeprefix(NAME)
    return int(digits) if ends and line != digits and digits.isdigit() else 0


def read_whole(data: bytes | memoryview, name: str = "tape") -> Iterator[Record]:
    """Yield all records of a file that must be complete; see `scan_whole`."""
    return (record for _, record in scan_whole(data, name))


def scan_whole(data: bytes | memoryview, name: str = "tape") -> Iterator[tuple[int, Record]]:
    """Yield all records of a file that must be complete, with their offsets.

    Raises `CorruptTape` with the position of the damage and what precedes it, or `TapeTooNew`.
    """
    scan = Scan(data)
    for offset, record in scan:
        if isinstance(record, Header) and record.schema > SCHEMA_VERSION:
            scan.too_new = scan.too_new or record.schema
            break
        yield offset, record
    if scan.too_new:
        raise too_new(name, scan.too_new)
    if scan.torn or scan.skipped or scan.end == 0:
        raise CorruptTape(
            f"{name} is damaged at byte {scan.end}: {scan.problem}",
            cause=f"{scan.facts} facts and {scan.spans} spans before it can be read",
            hint=f"keep what can be read: playhead import --partial {name}",
        )


def too_new(name: str, version: int) -> TapeTooNew:
    """Return the error for a file of a later version."""
    return TapeTooNew(
        f"{name} was written by a later version of playhead (format {version})",
        hint="read it with that version, or upgrade: pip install --upgrade playhead",
    )
