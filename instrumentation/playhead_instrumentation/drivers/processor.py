"""What a thread had of the processor: whether it blocks, or only does not get to run."""

from __future__ import annotations

import threading
import time
from typing import Any


def used_ns(place: int) -> int:
    """Processor time that a thread (its `threading.get_ident`) has used so far."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    try:
        return time.process_time_ns() if clock is None else time.clock_gettime_ns(clock(place))
    except OSError:
        return 0


def missed_ns(place: int) -> int:
    """Time that it could have run and was not let by the system; 0 where the system does not say."""
    words = _told(place, "schedstat").split()
    return int(words[1]) if len(words) > 1 else 0


def could_run(place: int) -> bool:
    """Whether it would run now if the system let it, or gave it the memory that it asks for."""
    # The name of the thread, in brackets, may hold anything.
    return _told(place, "stat").rpartition(") ")[2].startswith(("R", "D"))


def _told(place: int, name: str) -> str:
    active: dict[int, Any] = getattr(threading, "_active", {})
    try:
        with open(f"/proc/self/task/{active[place].native_id}/{name}") as file:
            return file.read()
    except (OSError, KeyError, AttributeError):
        return ""
