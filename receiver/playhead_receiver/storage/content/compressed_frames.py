"""Compressed frames, and blocks of several frames, in which repetitions are stored once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

import msgspec

from playhead_core import zstd_frames
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
        _local.compressors = dict[int, Callable[[bytes], bytes]]()
    known: dict[int, Callable[[bytes], bytes]] = _local.compressors
    if level not in known:
        known[level] = zstd_frames.compressor(level, checksum=True)
    return known[level](data)


def decompress(data: bytes) -> bytes:
    """The inverse of `compress`. `CorruptTape` if the frame is damaged or too long."""
    try:
        return zstd_frames.decompress(data, MOST_BYTES)
    except zstd_frames.DamagedFrame as problem:
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
