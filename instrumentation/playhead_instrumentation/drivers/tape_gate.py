"""The gate of a replay: lets in what was recorded, batch by batch, each when all is quiet.

Nothing waits for real time to pass. When nobody can proceed, the waiter with the oldest delivery goes,
out of order; the gate counts that.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Generator, Iterable
from typing import Any

from playhead_instrumentation.drivers import quiet
from playhead_instrumentation.drivers.gate import Turn, running_loop
from playhead_instrumentation.drivers.quiet import Quiet
from playhead_instrumentation.drivers.schedule import Schedule
from playhead_semconv.errors import ExchangeExhausted
from playhead_semconv.facts import Delivery

POLL_S = 0.02
"""How often somebody who waits looks whether all are stuck."""

SPIN_S = 0.05
"""A loop that has not come to rest for so long is taken to spin until somebody is let through."""

PATIENCE_S = 5.0
"""Without any progress for so long, while somebody sleeps, the order of the tape is given up."""

LONGEST_SLEEP_S = 60.0
"""Who sleeps longer is not waited for."""


class TapeGate:
    """The gate of a replay. Safe from any thread."""

    def __init__(self, order: Iterable[Delivery], *, patience_s: float = PATIENCE_S) -> None:
        self.moved = 0
        """How many went out of order, because nobody else could proceed."""
        self._lock = threading.RLock()
        self._patience_s = patience_s
        self._schedule: Schedule[_Waiting] = Schedule(order)
        self._never: list[_Waiting] = []
        self._progress_s = time.monotonic()
        self._closed = False
        self._quiet = Quiet(self._lock, self.advance)
        quiet.keep(self._quiet)
        quiet.hook_loop(self._watch)

    def arrive(self, due: Delivery | None) -> Turn:
        """Something has come, which came at ``due`` on the tape; None: at once."""
        return _AtOnce() if due is None or self._closed else _Waiting(self, due)

    def never(self) -> Turn:
        """A turn that comes only when the program cancels it."""
        return _Waiting(self, None)

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Nobody will come for these."""
        with self._lock:
            self._schedule.skip(dues)
        self.advance()

    def close(self) -> None:
        """Let everybody through."""
        with self._lock:
            self._closed = True
            quiet.keep(None)
            while (waiter := self._schedule.force()) is not None:
                waiter.let_through()
                if waiter.due is not None:
                    self._schedule.went_on(waiter.due)
            for waiter in self._never:
                waiter.let_through()

    def advance(self, presumed: bool = False) -> None:
        """Let the next one through, if it is time. ``presumed``: all is quiet as far as can be told."""
        with self._lock:
            if self._closed or not (len(self._schedule) or self._never):
                return
            if not (presumed or self._quiet.quiet() or self._quiet.presumed()):
                return
            waiter = self._schedule.release() or self._forced()
            if waiter is not None:
                self._let_through(waiter)

    def enter(self, waiter: _Waiting) -> bool:
        """``waiter`` begins to wait; True if it need not."""
        with self._lock:
            self._progress_s = time.monotonic()
            if waiter.due is None:
                self._never.append(waiter)
                return False
            return self._closed or self._schedule.arrive(waiter, waiter.due)

    def went_on(self, waiter: _Waiting) -> None:
        """``waiter`` goes on."""
        with self._lock:
            follower = None if waiter.due is None else self._schedule.went_on(waiter.due)
            if follower is not None:
                self._let_through(follower)

    def leave(self, waiter: _Waiting) -> None:
        """``waiter`` was cancelled."""
        with self._lock:
            self._schedule.leave(waiter)
            if waiter in self._never:
                self._never.remove(waiter)
        self.went_on(waiter)

    def block(self, waiter: _Waiting) -> None:
        """Wait in this thread."""
        self._quiet.waits()
        try:
            while not waiter.opened.acquire(timeout=POLL_S):
                self.advance()
        finally:
            self._quiet.goes_on()

    def _let_through(self, waiter: _Waiting) -> None:
        self._progress_s = time.monotonic()
        self._quiet.goes_on(waiter.place)
        waiter.let_through()

    def _forced(self) -> _Waiting | None:
        """Who goes although it is not its turn, because otherwise nobody does."""
        if not self._quiet.for_good():
            now = time.monotonic()
            horizon = min(self._quiet.latest_alarm(), self._progress_s + LONGEST_SLEEP_S)
            if now < max(self._progress_s + self._patience_s, horizon):
                return None
        waiter = self._schedule.force()
        if waiter is not None:
            waiter.moved = True
            self.moved += 1
            return waiter
        if self._never and self._quiet.for_good():
            waiter = self._never.pop(0)
            waiter.refused = True
            return waiter
        return None

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at an event loop whenever it would wait."""
        self._quiet.runs_loop(loop)
        selector: Any = getattr(loop, "_selector", None)
        if selector is None or hasattr(selector.select, "__playhead__"):
            return
        original = selector.select

        def select(timeout: float | None = None) -> Any:
            if self._closed:
                return original(timeout)
            if timeout is not None and timeout <= 0:
                if len(self._schedule) and time.monotonic() - self._progress_s > SPIN_S:
                    self.advance(presumed=True)
                return original(timeout)
            until = None if timeout is None else time.monotonic() + timeout
            self._quiet.waits(until)
            try:
                while True:
                    self.advance()
                    if loop._ready:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
                        return original(0)
                    left = POLL_S if until is None else min(POLL_S, until - time.monotonic())
                    events = original(max(0.0, left))
                    if events or (until is not None and time.monotonic() >= until):
                        return events
            finally:
                self._quiet.goes_on()

        select.__dict__["__playhead__"] = True
        selector.select = select

    def poll(self, waiter: _Waiting) -> None:
        """For loops that cannot be looked at: take it to wait whenever this is called."""
        if waiter.done():
            return
        self._quiet.waits()
        self._quiet.goes_on()
        loop = running_loop()
        if loop is not None:
            loop.call_later(POLL_S / 10, self.poll, waiter)


class _AtOnce:
    """A turn that is there."""

    def wait(self) -> Delivery | None:
        return None

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        return None
        yield


class _Waiting:
    """A turn that may have to be waited for."""

    __slots__ = ("_future", "_gate", "_loop", "due", "moved", "opened", "place", "refused")

    def __init__(self, gate: TapeGate, due: Delivery | None) -> None:
        self.due = due
        self.moved = False
        self.refused = False
        self.place = threading.get_ident()
        self.opened = threading.Lock()
        self._gate = gate
        self._loop: asyncio.AbstractEventLoop | None = None
        self._future: asyncio.Future[None] | None = None

    def wait(self) -> Delivery | None:
        """Block until it is this one's turn."""
        self.opened.acquire()
        if not self._gate.enter(self):
            self._gate.block(self)
            self._gate.went_on(self)
        return self._delivery()

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        self._loop = running_loop()
        if self._loop is None:  # another runtime than asyncio
            return self.wait()
        self._future = self._loop.create_future()
        if self._gate.enter(self):
            return self._delivery()
        if not hasattr(self._loop, "_selector"):
            self._loop.call_soon(self._gate.poll, self)
        try:
            yield from self._future
        except BaseException:
            self._gate.leave(self)
            raise
        self._gate.went_on(self)
        return self._delivery()

    def _delivery(self) -> Delivery | None:
        if self.refused:
            raise ExchangeExhausted(
                "the tape ends before this was answered", hint="what happened after it was not recorded"
            )
        return self.due

    def done(self) -> bool:
        """Whether an async waiter waits no longer."""
        return self._future is None or self._future.done()

    def let_through(self) -> None:
        """It is its turn. Called under the gate's lock, from any thread."""
        future, loop = self._future, self._loop
        if future is None or loop is None:
            if self.opened.locked():
                self.opened.release()
        elif running_loop() is loop or threading.get_ident() == self.place:
            _settle(future)
        else:
            try:
                loop.call_soon_threadsafe(_settle, future)
            except RuntimeError:
                return  # the loop is closed, and nobody waits there any more


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
