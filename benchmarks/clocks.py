"""Clocks that no tool patches, so that reading them is not part of the measurement."""

from __future__ import annotations

import importlib.util
import os

_spec = importlib.util.find_spec("time")
assert _spec is not None and _spec.loader is not None
_time = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(_time)
_read = _time.clock_gettime_ns


def now_ns() -> int:
    """Wall time in ns since an arbitrary zero."""
    return _read(_time.CLOCK_MONOTONIC)


def used_ns() -> int:
    """Processor time of the whole process in ns."""
    return _read(_time.CLOCK_PROCESS_CPUTIME_ID)


def thread_ns() -> int:
    """Processor time of this thread in ns."""
    return _read(_time.CLOCK_THREAD_CPUTIME_ID)


call_ns = thread_ns if os.environ.get("BENCH_CLOCK") == "thread" else now_ns
"""The clock by which calls are timed."""
