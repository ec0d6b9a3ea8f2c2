"""Compressed frames, and blocks of several frames, in which repetitions are stored once."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TypeVar

import msgspec
import zstandard

from playhead_core.errors import CorruptTape

LEVEL = 3

MOST_BYTES = 1 << 30
"""Longest plain frame, in bytes: a frame holds at most what one request brought."""
BLOCK_BYTES = 1024 * 1024
"""Plain bytes of frames after which a block is full."""
BLOCK_LEVEL = 9
"""zstd level. Blocks are written once, off the acknowledgement path."""

T = TypeVar("T")

_encode = msgspec.msgpack.Encoder().encode
_decode: msgspec.msgpack.Decoder[dict[int, msgspec.Raw]] = msgspec.msgpack.Decoder(
    dict[int, msgspec.Raw]
)
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
            raise zstandard.ZstdError(f"it declares {size} bytes")
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


def pack_block(frames: Mapping[int, bytes]) -> bytes:
    """Make a block of plain frames, given by number."""
    return compress(_encode({id: msgspec.Raw(plain) for id, plain in frames.items()}), BLOCK_LEVEL)


def open_block(data: bytes) -> dict[int, bytes]:
    """The inverse of `pack_block`. `CorruptTape` if the block is damaged."""
    return {id: bytes(plain) for id, plain in decoded(_decode, decompress(data)).items()}
