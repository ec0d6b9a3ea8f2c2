"""Compressed frames."""

from __future__ import annotations

import threading

import zstandard

LEVEL = 3

_local = threading.local()


def compress(data: bytes) -> bytes:
    """One zstd frame."""
    if not hasattr(_local, "compressor"):
        _local.compressor = zstandard.ZstdCompressor(level=LEVEL)
    return _local.compressor.compress(data)


def decompress(data: bytes) -> bytes:
    """The inverse of `compress`."""
    if not hasattr(_local, "decompressor"):
        _local.decompressor = zstandard.ZstdDecompressor()
    return _local.decompressor.decompress(data)
