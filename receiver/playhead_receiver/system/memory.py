"""Settings of the memory allocator for a process that handles large requests."""

from __future__ import annotations

import ctypes

LARGE_BYTES = 1024 * 1024

HEAPS = 4
"""Most heaps (arenas) of all threads together, because each heap keeps fragmented memory."""

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8


def return_large_blocks() -> None:
    """Have glibc return large blocks to the system when they are freed.

    By default it adapts to the first of them, and keeps such blocks, in a heap per thread. No-op with
    other C libraries.
    """
    tune = getattr(ctypes.CDLL(None), "mallopt", None)
    if tune is not None:
        tune(_M_MMAP_THRESHOLD, LARGE_BYTES)
        tune(_M_TRIM_THRESHOLD, LARGE_BYTES)
        tune(_M_ARENA_MAX, HEAPS)
