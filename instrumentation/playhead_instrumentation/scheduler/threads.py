"""Facts about threads: whether a thread belongs to the program, and how much processor time it used.

The scheduler handles only threads of the program: they get permits, other threads wait for them, and the
ends of their waits are on the tape. Threads of playhead and of telemetry exporters run freely. A thread
is recognised by its name and its target. Its processor time tells a thread that blocks from one that
only waits to be scheduled.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection
from typing import Final

from playhead_instrumentation.patching import lanes

THREADS: Final[dict[int, threading.Thread]] = vars(threading)["_active"]
"""Threads by identity. `threading.current_thread` would create an entry for an unknown thread."""

POLLER: Final = "PollerCompletionQueue._poll_wrapper"
"""Target of a thread of `grpc.aio` that only notifies an event loop."""

_here = threading.local()


def in_program() -> bool:
    """Whether the caller runs in a thread of the program. Takes no lock, never raises."""
    # No `except AttributeError`: the traceback of ^C within its block would show this file.
    known: bool | None = getattr(_here, "is_program", None)
    if known is None:
        thread = THREADS.get(threading.get_ident())
        known = _here.is_program = thread is not None and is_of_program(thread)
    return known


def is_of_program(thread: threading.Thread) -> bool:
    """Whether a thread, started or not, belongs to the program, not to playhead or an exporter."""
    if thread.name.startswith(lanes.OWN_THREADS):
        return False
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__
    return not module.startswith("opentelemetry.") and getattr(target, "__qualname__", "") != POLLER


def processor_time_ns(ident: int) -> int:
    """Processor time in ns that a thread (``ident``: its `threading.get_ident`) has used so far."""
    clock = getattr(time, "pthread_getcpuclockid", None)
    try:
        return time.process_time_ns() if clock is None else time.clock_gettime_ns(clock(ident))
    except OSError:
        return 0


def could_run(ident: int) -> bool:
    """Whether a thread is runnable, or only waits for a page of memory."""
    thread = THREADS.get(ident)
    return thread is not None and _could_run(str(thread.native_id))


def others_could_run(idents: Collection[int]) -> bool:
    """Whether any thread is runnable besides ``idents`` and the calling thread."""
    known = {str(thread.native_id) for ident in idents if (thread := THREADS.get(ident)) is not None}
    known.add(str(threading.get_native_id()))
    try:
        return any(_could_run(task) for task in os.listdir("/proc/self/task") if task not in known)
    except OSError:
        return False


def _could_run(native_id: str) -> bool:
    try:
        with open(f"/proc/self/task/{native_id}/stat") as file:
            status = file.read()
    except OSError:
        return False
    # The thread name, in brackets, may contain any character.
    return status.rpartition(") ")[2].startswith(("R", "D"))
