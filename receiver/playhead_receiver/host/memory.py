"""What a process that takes large requests asks of its allocator."""

from __future__ import annotations

import ctypes

LARGE_BYTES = 1024 * 1024

HEAPS = 4
"""Of all threads together; each keeps what its small blocks leave holes in."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def return_large_blocks() -> None:
    """Have glibc give large blocks back to the system when they are freed.

    Left alone it learns from the first of them to keep such blocks, in a heap per thread. Nothing
    happens where the C library is another.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_MMAP_THRESHOLD, LARGE_BYTES)
        tune(_M_TRIM_THRESHOLD, LARGE_BYTES)
        tune(_M_ARENA_MAX, HEAPS)
