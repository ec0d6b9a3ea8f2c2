"""Whose thread one is: of the program, of playhead, or of what exports telemetry.

Only threads of the program have turns, are waited for, and have the ends of their waits on the tape. A
thread is told by its name and by what it runs; what is found out about the own one is kept.
"""

from __future__ import annotations

import threading
from typing import Final

from playhead_instrumentation.patching import lanes

THREADS: Final[dict[int, threading.Thread]] = vars(threading)["_active"]
"""By identity, as `threading.current_thread` looks them up; that makes one where there is none."""

POLLER: Final = "PollerCompletionQueue._poll_wrapper"
"""What a thread of `grpc.aio` runs that only tells an event loop that something came."""

_here = threading.local()


def in_program() -> bool:
    """Whether the code that asks runs in a thread of the program. Takes no lock, never raises."""
    # No `except AttributeError`: the traceback of ^C within its block would show this file.
    known: bool | None = getattr(_here, "is_program", None)
    if known is None:
        thread = THREADS.get(threading.get_ident())
        known = _here.is_program = thread is not None and is_of_program(thread)
    return known


def is_of_program(thread: threading.Thread) -> bool:
    """Not playhead's own threads, and not those that export telemetry.

    ``thread`` need not have been started yet.
    """
    if thread.name.startswith(lanes.OWN_THREADS):
        return False
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__
    return not module.startswith("opentelemetry.") and getattr(target, "__qualname__", "") != POLLER
