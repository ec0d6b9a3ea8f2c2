"""The hub of gevent's greenlets: how greenlets wait at the gate, when all are idle, and their timers.

The idea: greenlets are to their hub what tasks are to an event loop. A greenlet that waits at the gate
switches to the hub, so the others run. The loop of the hub is idle if it is about to wait for the system
and no callback is left, so the ledger knows one place, the thread. What ends by time in gevent (sleeps,
timeouts of any wait) is a timer of that loop, and its end is on the tape.

The invariant: nothing here blocks the thread. A greenlet that blocked it would wait for others that
cannot run.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from contextvars import Context
from typing import Any, Final

from playhead_core.facts import Delivery
from playhead_core.process.interpreter_threads import get_ident
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching import lane_hooks
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.gate import nothing
from playhead_instrumentation.scheduler import idle_loops, timer_ends
from playhead_instrumentation.scheduler.permit_waits import Waiting
from playhead_instrumentation.scheduler.timer_ends import Wake

log = Log(__name__)

LIBEV: Final = "gevent.libev.corecext"
"""Module of the loops that are watched."""


class Hub:
    """The hub of one thread, as the loop of a waiter (`Waiting.call`)."""

    def __init__(self, loop: Any) -> None:
        self._loop = loop
        self._waiting = 0
        self._watchers: list[Any] = []
        self._alarm: Any = None

    def call_soon(self, call: Callable[..., Any], *args: Any, context: Context | None = None) -> None:
        """Call ``call`` in the hub, behind the callbacks that are scheduled."""
        self._loop.run_callback(call, *args)

    def call_soon_threadsafe(
        self, call: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> None:
        """The same from any thread."""
        self._loop.run_callback_threadsafe(call, *args)

    def holds(self) -> None:
        """Something waits at the gate: the loop goes on, and asks the gate again and again."""
        self._waiting += 1
        gate = idle_loops.watching()
        if self._waiting > 1 or gate is None:
            return
        if not self._watchers:
            gate.ledger.runs_loop(self, lambda: bool(self._loop._callbacks))
            idle, busy = self._loop.prepare(False, self._loop.MINPRI), self._loop.check(False)
            idle.start(self._idles)
            busy.start(self._goes_on)
            self._watchers = [idle, busy]
            self._alarm = self._loop.untaped_timer(gate.poll_s, gate.poll_s)
        self._alarm.start(nothing)

    def lets_go(self) -> None:
        """A wait at the gate is over."""
        self._waiting -= 1
        if not self._waiting and self._alarm is not None:
            self._alarm.stop()

    def parked(self) -> Any:
        """What a greenlet waits with: `get` switches to the hub until ``switch`` is called there."""
        return _gevent("gevent.hub").Waiter(_gevent("gevent._hub_local").get_hub_if_exists())

    def _idles(self) -> None:
        """The loop is about to wait for the system."""
        gate = idle_loops.watching()
        if gate is None or gate.closed() or self._loop._callbacks:
            return
        # What else is active, such as the pipe of a child, may go on by itself.
        alone = not self._waiting or self._loop.activecnt <= 1
        gate.ledger.selecting(None if alone else REAL.now_s())

    def _goes_on(self) -> None:
        gate = idle_loops.watching()
        if gate is not None:
            gate.ledger.goes_on()


def _gevent(name: str) -> Any:
    """A module of gevent, which the program has imported."""
    return sys.modules[name]


def adopt() -> bool:
    """Take over the hub that this thread will have. False: it has one, or one of another kind."""
    if RUNTIME.hub is not None:
        return True
    settings = _gevent("gevent").config
    module: str = settings.loop.__module__
    if module != LIBEV or _gevent("gevent._hub_local").get_hub_if_exists() is not None:
        return False
    settings.loop = _loops(_gevent(LIBEV), get_ident())
    RUNTIME.hub = functools.partial(_here, get_ident())
    return True


def _here(thread: int) -> Hub | None:
    """The hub in which the current greenlet may wait; None: it is the hub, or no greenlet."""
    if get_ident() != thread:
        return None
    hub = _gevent("gevent.hub").get_hub()
    return None if _gevent("gevent").getcurrent() is hub else getattr(hub.loop, "playhead_hub", None)


def _loops(libev: Any, thread: int) -> Any:
    """The class of gevent's loops, with timers that are on the tape in the loop of ``thread``."""

    class Timer(libev.timer):
        """A timer that fires at its delivery on the tape."""

        after_s = 0.0
        end: _End | None = None

        def start(self, callback: Callable[..., Any], *args: Any, **options: Any) -> None:
            self.end = end = _end_of(callback, args, self.after_s, self.loop.playhead_hub)
            if end is None:
                super().start(callback, *args, **options)
            elif not end.waits():
                super().start(end.fires, **options)

        def stop(self) -> None:
            end, self.end = self.end, None
            if end is not None:
                end.called_off()
            super().stop()

        def close(self) -> None:
            self.stop()
            super().close()

        @property
        def active(self) -> bool:
            return bool(super().active) or (self.end is not None and self.end.is_pending)  # pyright: ignore[reportUnknownMemberType, reportUnknownArgumentType]

    class TapedLoop(libev.loop):
        """A loop whose timers are on the tape."""

        playhead_hub: Hub | None = None

        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options)
            if get_ident() == thread:
                self.playhead_hub = Hub(self)

        def timer(
            self, after: float, repeat: float = 0.0, ref: bool = True, priority: int | None = None
        ) -> Any:
            if repeat or self.playhead_hub is None:
                untaped: Any = super()
                return untaped.timer(after, repeat, ref, priority)
            timer = Timer(self, after, repeat, ref, priority)
            timer.after_s = max(0.0, after)
            return timer

        def untaped_timer(self, after_s: float, repeat_s: float) -> Any:
            untaped: Any = super()
            return untaped.timer(after_s, repeat_s)

    TapedLoop.__name__, TapedLoop.__qualname__, TapedLoop.__module__ = (
        "loop",
        "loop",
        libev.loop.__module__,
    )
    Timer.__name__, Timer.__qualname__, Timer.__module__ = "timer", "timer", libev.timer.__module__
    return TapedLoop


def _end_of(callback: Any, args: tuple[Any, ...], after_s: float, hub: Hub) -> _End | None:
    """The end of a timer that starts; None: it is not recorded."""
    try:
        wake = timer_ends.opened_in_hub(_kind(callback, args), after_s)
    except Exception:
        log.debug("playhead could not record a timer of gevent", exc_info=True)
        return None
    return None if wake is None else _End(wake, hub, callback, args)


def _kind(callback: Any, args: tuple[Any, ...]) -> str:
    """What kind of wait ends: any wait by its timeout, a sleep, or what `gevent.Timeout` is around."""
    ended = (getattr(callback, "__self__", None), *args[:1])
    if any(getattr(one, "_one_shot", False) or type(one).__name__ == "_WaitIterator" for one in ended):
        return "wait"
    return f"timer.{lane_hooks.name_of(callback)}"


class _End:
    """The end of a timer that was started."""

    __slots__ = ("_args", "_callback", "_gives_up", "_hub", "_wake", "is_pending")

    def __init__(self, wake: Wake, hub: Hub, callback: Callable[..., Any], args: Any) -> None:
        self._wake = wake
        self._hub = hub
        self._callback = callback
        self._args = args
        self._gives_up: Callable[[], None] | None = None
        self.is_pending = False
        """Whether it waits at the gate."""

    def waits(self) -> bool:
        """Wait for the delivery on the tape. False: real time passes first."""
        permit = None if self._wake.live else self._wake.permit()
        if not isinstance(permit, Waiting):
            return False
        self._arrives(permit)
        return True

    def fires(self) -> None:
        """Real time has passed."""
        if self._wake.live:
            self._arrives(self._wake.permit())
        else:
            self._calls()

    def _arrives(self, permit: Any) -> None:
        self.is_pending = True
        self._hub.holds()
        gives_up = permit.call(self._hub, self._over)
        if self.is_pending:
            self._gives_up = gives_up

    def _over(self, at: Delivery | None) -> None:
        if self._leaves():
            self._wake.over(at)
            self._calls()

    def _calls(self) -> None:
        callback, args = self._callback, self._args
        del self._callback, self._args  # they may refer to the timer
        callback(*args)

    def called_off(self) -> None:
        """The timer was stopped, perhaps after it had fired."""
        gives_up, self._gives_up = self._gives_up, None
        if self._leaves():
            self._wake.called_off()
            if gives_up is not None:
                gives_up()

    def _leaves(self) -> bool:
        pending, self.is_pending = self.is_pending, False
        if pending:
            self._hub.lets_go()
        return pending
