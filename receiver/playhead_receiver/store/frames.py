"""Compressed frames."""

from __future__ import annotations

import threading

import zstandard

LEVEL = 3

_local = threading.local()


def compress(data: bytes, level: int = LEVEL) -> bytes:
    """One zstd frame."""
    if not hasattr(_local, "compressors"):
        _local.compressors = dict[int, zstandard.ZstdCompressor]()
    known: dict[int, zstandard.ZstdCompressor] = _local.compressors
    if level not in known:
        known[level] = zstandard.ZstdCompressor(level=level)
    return known[level].compress(data)


def decompress(data: bytes) -> bytes:
    """The inverse of `compress`."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    return _local.decompressor.decompress(data)
