"""A gate that holds things back until all is quiet: what a strict recording and a replay share.

Who wants to enter waits in a line; whenever everybody else waits too, the line says who goes next.
"""

from __future__ import annotations

import _thread
import asyncio
import threading
import time
from abc import abstractmethod
from collections.abc import Generator, Iterable
from typing import Any

from playhead_instrumentation.drivers import quiet_hooks
from playhead_instrumentation.drivers.gate import Turn, running_loop
from playhead_instrumentation.drivers.quiet import Quiet
from playhead_semconv.errors import ExchangeExhausted
from playhead_semconv.facts import Delivery

SPIN_TICKS = 256
"""A loop that has not been idle for so many ticks is taken to spin, and to be quiet in that tick."""


class HeldGate:
    """Safe from any thread."""

    level: str

    def __init__(
        self,
        *,
        live: bool,
        poll_s: float,
        hold_s: float,
        computing_hold_s: float = float("inf"),
    ) -> None:
        """``poll_s``: how often somebody who waits looks whether those who seem to run are stuck.

        ``live``: the world outside answers, not a tape. ``hold_s``, ``computing_hold_s``: see `Quiet`.
        """
        self._lock = threading.RLock()
        self._poll_s = poll_s
        self._closed = False
        self._quiet = Quiet(
            self._lock,
            self.advance,
            self._forked,
            hold_s=hold_s,
            computing_hold_s=computing_hold_s,
        )
        quiet_hooks.keep(self._quiet, live=live)
        quiet_hooks.hook_loop(self._watch)

    @abstractmethod
    def arrive(self, due: Delivery | None) -> Turn:
        """Something has come."""

    @abstractmethod
    def never(self) -> Turn:
        """Something will not come."""

    @abstractmethod
    def skip(self, dues: Iterable[Delivery]) -> None:
        """Nobody will come for these."""

    @abstractmethod
    def close(self) -> None:
        """Let everybody through."""

    @abstractmethod
    def unwatched(self, waiter: Waiting) -> None:
        """``waiter`` is about to wait in an event loop that cannot be looked at."""

    @abstractmethod
    def _anybody(self) -> bool:
        """Whether somebody waits."""

    @abstractmethod
    def _next(self) -> Waiting | None:
        """All is quiet: who goes."""

    @abstractmethod
    def _joins(self, waiter: Waiting) -> bool:
        """Somebody begins to wait; True if it need not."""

    @abstractmethod
    def _passed(self, waiter: Waiting) -> Waiting | None:
        """Somebody who was let through goes on; who follows without waiting for quiet."""

    @abstractmethod
    def _left(self, waiter: Waiting) -> None:
        """Somebody waits no longer."""

    @abstractmethod
    def _forked(self) -> None:
        """This is the child of a fork: nobody waits. Called with the lock."""

    def advance(self) -> None:
        """Let the next one through, if it is time."""
        with self._lock:
            if self._closed or not self._anybody():
                return
            if not (self._quiet.quiet() or self._quiet.overdue()):
                return
            waiter = self._next()
            if waiter is not None:
                self._let_through(waiter)

    def enter(self, waiter: Waiting) -> bool:
        """``waiter`` begins to wait; True if it need not."""
        with self._lock:
            if not self._joins(waiter):
                return False
            if waiter.blocks:
                # It comes from outside, and has its turn from now on: nobody else is let through.
                self._quiet.wake(waiter.place)
            return True

    def goes_on(self) -> None:
        """Somebody who need not wait runs on in this thread."""
        self._quiet.goes_on()

    def went_on(self, waiter: Waiting) -> None:
        """``waiter`` goes on."""
        with self._lock:
            follower = self._passed(waiter)
            if follower is not None:
                self._let_through(follower)

    def leave(self, waiter: Waiting) -> None:
        """``waiter`` was cancelled."""
        with self._lock:
            self._left(waiter)
        self.went_on(waiter)

    def block(self, waiter: Waiting) -> None:
        """Wait in this thread."""
        self._quiet.waits()
        try:
            while not waiter.opened.acquire(timeout=self._poll_s):
                self.advance()
        except BaseException:
            self.leave(waiter)
            raise
        finally:
            self._quiet.goes_on()

    def _let_through(self, waiter: Waiting) -> None:
        if waiter.blocks or self._quiet.selects(waiter.place):
            self._quiet.wake(waiter.place)
        if not waiter.let_through():
            self.went_on(waiter)

    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Look at an event loop whenever it would wait."""
        selector: Any = getattr(loop, "_selector", None)
        if selector is None or not hasattr(loop, "_ready"):
            return
        self._quiet.runs_loop(loop)
        if hasattr(selector.select, "__playhead__"):
            return
        original = selector.select
        ticks = 0

        def select(timeout: float | None = None) -> Any:
            nonlocal ticks
            if self._closed:
                return original(timeout)
            if timeout is not None and timeout <= 0:
                ticks += 1
                if ticks >= SPIN_TICKS:
                    ticks = 0
                    self._quiet.selecting(None, spins=True)
                    self._quiet.goes_on()
                return original(timeout)
            ticks = 0
            until = None if timeout is None else time.monotonic() + timeout
            self._quiet.selecting(until)
            try:
                while True:
                    if loop._ready:  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
                        return original(0)
                    left = None if until is None else max(0.0, until - time.monotonic())
                    if self._anybody():
                        left = self._poll_s if left is None else min(self._poll_s, left)
                    events = original(left)
                    if events or left is None or (until is not None and time.monotonic() >= until):
                        return events
                    self.advance()
            finally:
                self._quiet.goes_on()

        select.__dict__["__playhead__"] = True
        selector.select = select


class Waiting:
    """A turn that may have to be waited for."""

    __slots__ = ("_future", "_gate", "_loop", "due", "moved", "opened", "place", "refused")

    def __init__(self, gate: HeldGate, due: Delivery | None) -> None:
        self.due = due
        """Its delivery: on the tape that is played, or, once it was let through, of the recording."""
        self.moved = False
        self.refused = False
        self.place = threading.get_ident()
        self.opened = _thread.allocate_lock()
        self._gate = gate
        self._loop: asyncio.AbstractEventLoop | None = None
        self._future: asyncio.Future[None] | None = None

    @property
    def blocks(self) -> bool:
        """Whether a thread waits here, not a task."""
        return self._future is None

    def wait(self) -> Delivery | None:
        """Block until it is this one's turn."""
        self.opened.acquire()
        if self._gate.enter(self):
            self._gate.goes_on()
        else:
            self._gate.block(self)
            self._gate.went_on(self)
        return self._delivery()

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        self._loop = running_loop()
        if self._loop is None:  # another runtime than asyncio
            self._gate.unwatched(self)
            return self.wait()
        self._future = self._loop.create_future()
        if not hasattr(self._loop, "_selector"):
            self._gate.unwatched(self)
        if self._gate.enter(self):
            return self._delivery()
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

    def let_through(self) -> bool:
        """It is its turn; False if nobody waits there. Called under the gate's lock, from any thread."""
        future, loop = self._future, self._loop
        if future is None or loop is None:
            if self.opened.locked():
                self.opened.release()
        elif running_loop() is loop:
            _settle(future)
        else:
            try:
                loop.call_soon_threadsafe(_settle, future)
            except RuntimeError:
                return False  # the loop is closed
        return True


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
