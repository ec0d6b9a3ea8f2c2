"""Single zstd frames, which declare how many bytes they hold.

The library is that of Python, or its backport. It is imported at the first use: agents import this
module at start.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from typing import Any


class DamagedFrame(ValueError):
    """Bytes that are not one whole frame, or that hold too much."""


@cache
def library() -> Any:
    """Return the module `compression.zstd` of Python 3.14, or its backport."""
    if sys.version_info >= (3, 14):
        import compression.zstd as zstd
    else:
        import backports.zstd as zstd
    return zstd


def compressor(level: int, *, checksum: bool = False) -> Callable[[bytes], bytes]:
    """Return a function that makes a frame of its argument; for one thread at a time.

    It keeps the memory of the library, so that the next frame takes half of the time.
    """
    zstd = library()
    parameter = zstd.CompressionParameter
    options = {parameter.compression_level: level, parameter.checksum_flag: int(checksum)}
    packer = zstd.ZstdCompressor(options=options)
    return lambda data: packer.compress(data, packer.FLUSH_FRAME)


def compress(data: bytes, level: int) -> bytes:
    """Return a frame of ``data``."""
    return library().compress(data, level)


def decompress(data: bytes, most_bytes: int) -> bytes:
    """Return what a frame holds.

    `DamagedFrame` if it is damaged, does not declare its size, declares more than ``most_bytes``, or is
    followed by other bytes.
    """
    zstd = library()
    try:
        size = zstd.get_frame_info(data).decompressed_size
        if size is None:
            raise DamagedFrame("it does not declare its size")
        if size > most_bytes:
            raise DamagedFrame(f"it holds {size} bytes; {most_bytes} are the most")
        unpacker = zstd.ZstdDecompressor()
        found = unpacker.decompress(data, size + 1)
    except zstd.ZstdError as problem:
        raise DamagedFrame(str(problem)) from None
    if not unpacker.eof or unpacker.unused_data or len(found) != size:
        raise DamagedFrame("it is cut off, or other bytes follow it")
    return found
