"""Sleeps and timers: `time.sleep`, and `call_at` of event loops, which sleeps and timeouts use.

A timer is named by its lane and by the function that it calls. In a replay no time passes: the recorded
delivery, not the loop, decides when a timer is due. Code that compares deadlines (`asyncio.timeout`,
anyio, the program) gets its times from the tape.

`threading`, `queue` and `concurrent.futures` compute what is left of a timeout from a clock that they
read while they wait. Each of these values is a recorded read too (`waited_s`); with the real clock a
replay would compute other timeouts than the recording.
"""

from __future__ import annotations

import asyncio
import functools
import importlib
import queue
import sys
import threading
import time
from asyncio import TimerHandle
from collections.abc import Callable
from contextvars import Context, copy_context
from types import FrameType, ModuleType, SimpleNamespace
from typing import Any, Final, NamedTuple

from playhead_core.facts import Delivery
from playhead_instrumentation.libraries.ambient.stand_ins import Ambient
from playhead_instrumentation.patching import lane_hooks, lanes
from playhead_instrumentation.patching.attribution.readers import MACHINERY, PLACES, by_agent
from playhead_instrumentation.patching.builtins import genuine
from playhead_instrumentation.patching.layers import stands_for
from playhead_instrumentation.patching.patches import PATCHES, Patches, required
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.scheduler import timer_ends
from playhead_instrumentation.scheduler.threads import in_program
from playhead_instrumentation.scheduler.timer_ends import Wake, opened
from playhead_instrumentation.session.session import current

KIND: Final = "clock/loop.time"

DEADLINES: Final = {
    "asyncio.timeouts": ("timeout", "reschedule"),
    "anyio._backends._asyncio": ("_timeout", "current_time"),
}
"""Functions that compare deadlines with the time of the loop, by module."""

OPENERS: Final = frozenset(("asyncpg.connection",))
"""Modules whose deadlines are those of their connections: what they read depends on which are open."""


def watch(patches: Patches, session: object = None) -> None:
    """Patch `time.sleep` and event loops."""
    patches.attempt("time.sleep", _hook_sleep)
    patches.attempt("asyncio.call_at", _hook_asyncio)


class _Sleep(Ambient):
    """Stands in for `time.sleep`."""

    def __init__(self, original: Callable[..., None]) -> None:
        super().__init__("", original)
        self._sleep = original

    @stands_for
    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Sleep. Replay: wait for the delivery of the sleep's end."""
        return PATCHES.call(_slept, self._sleep, *args, **kwargs)


def _slept(sleep: Any, *args: Any) -> None:
    try:
        (seconds,) = args
        wake = opened("sleep", float(seconds)) if seconds >= 0 else None
    except (TypeError, ValueError):
        wake = None  # the original raises the error
    if wake is None:
        return sleep(*args)
    if wake.live:
        try:
            with lanes.Outside():
                sleep(*args)
        except BaseException:
            wake.permit().wait()
            raise
    if not wake.passed():
        sleep(*args)


def _hook_sleep() -> None:
    sleep = required(time, "sleep")
    if not isinstance(sleep, _Sleep):
        PATCHES.put(time, "sleep", genuine(sleep, _Sleep(sleep)))


def _hook_asyncio() -> None:
    _hook_loop(asyncio.BaseEventLoop)


def patch_uvloop(uvloop: ModuleType) -> None:
    """Patch the timers of uvloop."""
    _hook_loop(required(uvloop, "Loop"))


def _hook_loop(owner: Any) -> None:
    time_of = required(owner, "time")
    if PATCHES.covers(owner, "call_at"):
        return

    def call_at_its_turn(
        call_at: Any, loop: Any, when: Any, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        # `call_later` of asyncio calls this too.
        if type(callback) is _Fires or when is None or (wake := _opened(callback)) is None:
            return call_at(loop, when, callback, *args, context=context)
        # A deadline is on the clock of the tape, even after the end of the tape.
        live = functools.partial(call_at, loop, when - _ahead())
        if not wake.live:
            wake.after_s = when - time_of(loop) - _ahead()
        return _scheduled(wake, _Timer(loop, when, callback, args, context), live)

    def call_later_at_its_turn(
        call_later: Any, loop: Any, delay: Any, callback: Any, *args: Any, context: Context | None = None
    ) -> Any:
        if type(callback) is _Fires or delay is None or (wake := _opened(callback)) is None:
            return call_later(loop, delay, callback, *args, context=context)
        live = functools.partial(call_later, loop, delay)
        when = 0.0
        if not wake.live:
            wake.after_s, when = delay, time_of(loop) + delay
        return _scheduled(wake, _Timer(loop, when, callback, args, context), live)

    PATCHES.around_all(owner, {"call_at": call_at_its_turn, "call_later": call_later_at_its_turn})
    PATCHES.put(owner, "time", _time_of_loop(time_of))


def _opened(callback: Any) -> Wake | None:
    return opened(f"timer.{lane_hooks.name_of(callback)}")


def _ahead() -> float:
    """How far the clock of the tape is ahead of the clock of the loops, in seconds."""
    session = current()
    return 0.0 if session is None else session.driver.reads.ahead(KIND)


class _Timer(NamedTuple):
    """What the program has asked a loop for."""

    loop: Any
    when: float
    """On the clock of the loop, in seconds; of no use for a timer that waits in real time."""
    callback: Any
    args: tuple[Any, ...]
    context: Context | None


def _scheduled(wake: Wake, timer: _Timer, live: Callable[..., Any]) -> Any:
    """The handle of a timer. ``live``: schedules it for real."""
    context = copy_context() if timer.context is None else timer.context
    if not wake.live:
        check = getattr(timer.loop, "_check_closed", None)
        if check is not None:
            check()
        return _TapeTimer(wake, timer, context)
    fires = _Fires(wake, timer.loop, timer.callback, context)
    fires.handle = handle = live(fires, *timer.args, context=context)
    return handle


class _Fires:
    """The callback that a loop gets for a timer. It calls the program's callback at its permit."""

    __slots__ = ("__wrapped__", "_context", "_loop", "_wake", "handle")

    def __init__(self, wake: Wake, loop: Any, callback: Any, context: Context) -> None:
        self.__wrapped__ = callback
        self.handle: Any = None
        self._wake = wake
        self._loop = loop
        self._context = context

    def __call__(self, *args: Any) -> None:
        def called(at: Delivery | None) -> None:
            if not handle.cancelled():
                self._wake.over(at)
                self.__wrapped__(*args)

        handle, self.handle = self.handle, None
        self._wake.permit().call(self._loop, called, self._context)

    def __repr__(self) -> str:
        return repr(self.__wrapped__)


class _TapeTimer(TimerHandle):
    """A timer that fires at its delivery on the tape."""

    __slots__ = ("_gives_up", "_wake")

    def __init__(self, wake: Wake, timer: _Timer, context: Context) -> None:
        super().__init__(timer.when, timer.callback, timer.args, timer.loop, context)
        self._wake = wake
        self._gives_up = wake.permit().call(timer.loop, self._called)

    def _called(self, at: Delivery | None) -> None:
        if not self._cancelled:
            self._wake.over(at)
            self._run()

    def cancel(self) -> None:
        """Cancel the timer: it will not fire."""
        if not self._cancelled:
            self._wake.called_off()
            self._gives_up()
        asyncio.Handle.cancel(self)


_compares: dict[str, tuple[str, ...] | None] = {}
"""By file name: the functions whose reads of a loop's time are recorded. None: all code in that file
that reads for the program."""


def _time_of_loop(original: Callable[[Any], float]) -> Callable[[Any], float]:
    @functools.wraps(original)
    def time_of_loop(self: Any) -> float:
        frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
        name = frame.f_code.co_filename
        if _compares.get(name) == ():
            return original(self)
        try:
            reads = _reads(frame, name)
            if reads is not None:
                return reads.read(KIND, functools.partial(original, self), since=True)
        except Exception:
            if not PATCHES.forgiving:
                raise
        return original(self)

    return time_of_loop


def _reads(frame: FrameType, name: str) -> Reads | None:
    """What answers a read of a loop's time by this frame. None: the loop answers, unrecorded."""
    if name not in _compares:
        functions = DEADLINES.get(str(frame.f_globals.get("__name__", "")))
        program = by_agent(frame)
        if functions is None and not program and PLACES.get(name) == MACHINERY:
            functions = ()
        _compares[name] = functions
    functions = _compares[name]
    session = current()
    if session is None or not (by_agent(frame) if functions is None else _compare(frame, functions)):
        return None
    return session.driver.reads


def _compare(frame: FrameType, functions: tuple[str, ...]) -> bool:
    code, caller = frame.f_code, frame.f_back
    if code.co_name != "current_time":
        while caller is not None and caller.f_code.co_filename == code.co_filename:
            caller = caller.f_back
        opens = caller is not None and caller.f_globals.get("__name__") in OPENERS
        return code.co_name in functions and not opens
    # Called by code that sets a deadline, not by the backend's own threads.
    return caller is not None and caller.f_code.co_filename != code.co_filename


def watch_clock(patches: Patches, session: object = None) -> None:
    """Make the standard library read `waited_s` while it waits."""
    for module, name in ((threading, "_time"), (queue, "time")):
        patches.attempt(
            f"{module.__name__}.{name}", functools.partial(_put_clock, patches, module, name)
        )
    patches.attempt("concurrent.futures.time", functools.partial(_hook_futures, patches))


def waited_s() -> float:
    """Return `time.monotonic` as the driver answers it, in seconds."""
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
