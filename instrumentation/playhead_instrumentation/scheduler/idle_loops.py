"""Detects idle event loops: asyncio's by its selector, uvloop's by the callbacks scheduled on it.

A loop that has not been idle for `SPIN_TICKS` ticks is spinning. It counts as idle in every tick whose
number is a multiple of `SPIN_TICKS`, so whatever enters a spinning loop enters after a number of ticks
that the tape can record.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from types import ModuleType
from typing import Any, Protocol

from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.gate import nothing
from playhead_instrumentation.scheduler.ledger import ThreadLedger

SPIN_TICKS = 256
"""Ticks without idling after which a loop counts as idle once."""


class Watching(Protocol):
    """A gate that is told when loops become idle."""

    poll_s: float
    """Seconds between checks whether a waiter may proceed."""
    ledger: ThreadLedger

    def closed(self) -> bool:
        """Whether the gate no longer holds anything back."""
        ...

    def loosen(self) -> None:
        """A loop cannot be watched: stop holding arrivals back."""
        ...

    def anybody(self) -> bool:
        """Whether there are waiters."""
        ...

    def advance(self) -> None:
        """Let the next waiter through if everything is idle."""
        ...

    def spins(self, ticks: int) -> bool:
        """This thread's loop has spun for ``ticks``. Returns whether a waiter was let through."""
        ...


_watching: Watching | None = None


def watch(gate: Watching) -> None:
    """Watch every event loop that is run from now on, for ``gate``."""
    global _watching
    _watching = gate
    if not _hook():
        gate.loosen()


def watching() -> Watching | None:
    """The gate that is told when loops become idle; None: there is none."""
    return _watching


@functools.cache
def _hook() -> bool:
    PATCHES.when_imported("uvloop", "uvloop.run_forever", _hook_uvloop)
    return PATCHES.attempt("asyncio.run_forever", lambda: _hook_run(asyncio.BaseEventLoop))


def _hook_run(owner: Any) -> None:
    PATCHES.around(owner, "run_forever", _run_forever, lapse=_lapse)


def _lapse() -> None:
    if _watching is not None:
        _watching.loosen()


def _run_forever(run_forever: Any, loop: Any) -> None:
    gate = _watching
    if gate is None or gate.closed():
        return run_forever(loop)
    if not isinstance(loop, asyncio.BaseEventLoop):
        _uvloops[loop] = _Uvloop(loop, gate)
    else:
        _look_at(loop, gate)
    try:
        run_forever(loop)
    finally:
        watched = _uvloops.pop(loop, None)
        if watched is not None:
            watched.stops()
        gate.ledger.stops_loop()


def can_be_watched(loop: Any) -> bool:
    """Whether idleness of ``loop`` can be detected."""
    return loop in _uvloops or hasattr(loop, "_selector") or hasattr(loop, "parked")


def stir(loop: Any) -> None:
    """Check a loop again: something arrived in its thread that the loop had not scheduled."""
    if loop in _uvloops:
        loop.call_soon(nothing)


def _look_at(loop: Any, gate: Watching) -> None:
    selector: Any = getattr(loop, "_selector", None)
    if selector is None or not hasattr(loop, "_ready"):
        return
    gate.ledger.runs_loop(loop, lambda: bool(loop._ready))
    original = getattr(selector.select, "__wrapped__", selector.select)
    ticks = 0

    @functools.wraps(original)
    def select(timeout: float | None = None) -> Any:
        nonlocal ticks
        if gate.closed():
            return original(timeout)
        if timeout is not None and timeout <= 0:
            ticks += 1
            if not ticks % SPIN_TICKS and gate.spins(ticks):
                ticks = 0
            return original(timeout)
        ticks = 0
        until = None if timeout is None else REAL.now_s() + timeout
        gate.ledger.selecting(until)
        try:
            while True:
                if loop._ready:
                    return original(0)
                left = None if until is None else max(0.0, until - REAL.now_s())
                if gate.anybody():
                    left = gate.poll_s if left is None else min(gate.poll_s, left)
                events = original(left)
                if events or left is None or (until is not None and REAL.now_s() >= until):
                    return events
                gate.advance()
        finally:
            gate.ledger.goes_on()

    selector.select = select


_uvloops: dict[Any, _Uvloop] = {}
"""Running uvloop loops."""


class _Uvloop:
    """Detects whether a loop is idle from what is scheduled on it.

    Callbacks run in the order in which they were scheduled. If a callback of ours runs, and nothing was
    scheduled since our previous callback ran, then everything has run and the loop is idle.
    """

    def __init__(self, loop: Any, gate: Watching) -> None:
        self._loop = loop
        self._gate = gate
        self._call_soon: Callable[..., Any] = functools.partial(_original["call_soon"], loop)
        self._call_later: Callable[..., Any] = functools.partial(_original["call_later"], loop)
        self._stirred = True
        self._armed = True
        self._idle = False
        self._ticks = 0
        self._alarm: Any = None
        gate.ledger.runs_loop(loop, lambda: not self._idle)
        self._call_soon(self._look)

    def stirs(self) -> None:
        """A callback is about to be scheduled by the loop's own thread."""
        if self._idle:
            self._call_soon(self._goes_on)
        self._stirs()

    def stirred_from_outside(self) -> None:
        """Another thread has scheduled a callback, which runs next."""
        if self._idle:
            self._goes_on()
        self._stirs()

    def _stirs(self) -> None:
        self._stirred, self._idle = True, False
        if not self._armed:
            self._armed = True
            self._call_soon(self._look)

    def stops(self) -> None:
        """The loop has stopped. Its stop callback bypasses our hooks and runs behind a last `_look`."""
        self._goes_on()

    def wakes(self) -> None:
        """Another thread has scheduled work on the loop."""
        self._gate.ledger.wakes_loop(self._loop)

    def _goes_on(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        self._gate.ledger.goes_on()

    def _look(self) -> None:
        gate = self._gate
        if gate.closed() or _uvloops.get(self._loop) is not self:
            return
        if self._stirred:
            self._stirred = False
            self._ticks += 1
            if not self._ticks % SPIN_TICKS and gate.spins(self._ticks):
                self._ticks = 0
            self._call_soon(self._look)
            return
        self._armed = False
        self._idle = True
        self._ticks = 0
        gate.ledger.selecting(None)
        self._wait()

    def _wait(self) -> None:
        """Poll the gate while the loop is idle and there are waiters."""
        gate = self._gate
        if self._idle and gate.anybody():
            self._alarm = self._call_later(gate.poll_s, self._polls)

    def _polls(self) -> None:
        self._alarm = None
        self._gate.advance()
        self._wait()


_original: dict[str, Any] = {}


def _hook_uvloop(uvloop: ModuleType) -> None:
    owner = required(uvloop, "Loop")
    base = required(owner, "__base__")
    for name in ("call_soon", "call_later"):
        _original[name] = required(base, name)
    call_soon, call_soon_threadsafe = _original["call_soon"], required(owner, "call_soon_threadsafe")

    @functools.wraps(call_soon)
    def call_and_stir(self: Any, *args: Any, **kwargs: Any) -> Any:
        watched = _uvloops.get(self)
        if watched is not None:
            watched.stirs()
        return call_soon(self, *args, **kwargs)

    @functools.wraps(call_soon_threadsafe)
    def call_from_anywhere(self: Any, *args: Any, **kwargs: Any) -> Any:
        watched = _uvloops.get(self)
        if watched is not None:
            call_soon_threadsafe(self, watched.stirred_from_outside)
            watched.wakes()
        return call_soon_threadsafe(self, *args, **kwargs)

    owner.call_soon, owner.call_soon_threadsafe = call_and_stir, call_from_anywhere
    _hook_run(owner)
