"""Compressed frames."""

from __future__ import annotations

import threading
from typing import TypeVar

import msgspec
import zstandard

from playhead_core.errors import CorruptTape

LEVEL = 3

MOST_BYTES = 1 << 30
"""Longest plain frame, in bytes: a frame holds at most what one request brought."""
T = TypeVar("T")

_local = threading.local()


def compress(data: bytes, level: int = LEVEL) -> bytes:
    """One zstd frame, with a checksum."""
    if not hasattr(_local, "compressors"):
        _local.compressors = dict[int, zstandard.ZstdCompressor]()
    known: dict[int, zstandard.ZstdCompressor] = _local.compressors
    if level not in known:
        known[level] = zstandard.ZstdCompressor(level=level, write_checksum=True)
    return known[level].compress(data)


def decompress(data: bytes) -> bytes:
    """The inverse of `compress`. `CorruptTape` if the frame is damaged or too long."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    try:
        size = zstandard.frame_content_size(data)
        if size > MOST_BYTES:
            raise zstandard.ZstdError(f"it says that it holds {size} bytes")
        return _local.decompressor.decompress(data)
    except zstandard.ZstdError as problem:
        raise damaged(problem) from problem


def decoded(decoder: msgspec.msgpack.Decoder[T], plain: bytes) -> T:
    """Decode a plain frame. `CorruptTape` if it cannot be decoded."""
    try:
        return decoder.decode(plain)
    except (msgspec.DecodeError, UnicodeDecodeError) as problem:
        raise damaged(problem) from problem


def damaged(problem: Exception) -> CorruptTape:
    """The error for a frame that differs from what was written."""
    return CorruptTape(f"a frame is damaged: {problem}", hint="playhead verify")
