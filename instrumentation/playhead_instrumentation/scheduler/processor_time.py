"""Processor time of threads: tells whether a thread blocks or is only waiting to be scheduled."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from typing import Any

_threads: dict[int, Any] = vars(threading)["_active"]


def used_ns(place: int) -> int:
    """Processor time in ns that a thread (``place``: its `threading.get_ident`) has used so far."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    try:
        return time.process_time_ns() if clock is None else time.clock_gettime_ns(clock(place))
    except OSError:
        return 0


def could_run(place: int) -> bool:
    """Whether a thread is runnable, or only waits for a page of memory."""
    thread = _threads.get(place)
    return thread is not None and _could_run(str(thread.native_id))


def others_could_run(places: Collection[int]) -> bool:
    """Whether any thread is runnable besides ``places`` and the calling thread."""
    known = {str(thread.native_id) for place in places if (thread := _threads.get(place)) is not None}
    known.add(str(threading.get_native_id()))
    try:
        return any(_could_run(one) for one in os.listdir("/proc/self/task") if one not in known)
    except OSError:
        return False


def _could_run(native_id: str) -> bool:
    try:
        with open(f"/proc/self/task/{native_id}/stat") as file:
            told = file.read()
    except OSError:
        return False
    # The thread name, in brackets, may contain any character.
    return told.rpartition(") ")[2].startswith(("R", "D"))
