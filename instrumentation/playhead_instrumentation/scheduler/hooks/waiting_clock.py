"""The clock from which the standard library computes how much of a timeout is left.

`threading`, `queue` and `concurrent.futures` read it while they wait. Each value is a recorded read, so
a replay, in which no time passes, gives the same values.
"""

from __future__ import annotations

import functools
import importlib
import queue
import sys
import threading
from types import SimpleNamespace
from typing import Any

from playhead_instrumentation.patching.patches import Patches, required
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.scheduler import timer_ends
from playhead_instrumentation.scheduler.program_threads import in_program


def watch(patches: Patches, session: object = None) -> None:
    """Make the standard library read `waited_s` while it waits."""
    for module, name in ((threading, "_time"), (queue, "time")):
        patches.attempt(
            f"{module.__name__}.{name}", functools.partial(_put_clock, patches, module, name)
        )
    patches.attempt("concurrent.futures.time", functools.partial(_hook_futures, patches))


def waited_s() -> float:
    """The time in seconds, as of `time.monotonic`, answered by the driver."""
    wakes, caller = timer_ends.kept, sys._getframe(1).f_back  # pyright: ignore[reportPrivateUsage]
    if wakes is None or not in_program():
        return REAL.monotonic()
    if caller is not None and caller.f_code.co_name == "_adjust_thread_count":
        return REAL.monotonic()  # an executor; it does not wait here, and asks twice per job
    return wakes.reads.read("clock/waited", _monotonic, since=True)


def _monotonic() -> float:
    return REAL.monotonic() + timer_ends.AHEAD.s


def _put_clock(patches: Patches, module: Any, name: str) -> None:
    if required(module, name) is not waited_s:
        patches.put(module, name, waited_s)


def _hook_futures(patches: Patches) -> None:
    futures: Any = importlib.import_module("concurrent.futures._base")
    if required(required(futures, "time"), "monotonic") is not waited_s:
        patches.put(futures, "time", SimpleNamespace(monotonic=waited_s))
