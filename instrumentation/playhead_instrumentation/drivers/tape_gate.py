"""The gate of a replay: lets in what was recorded, batch by batch, each when all is quiet.

Nothing waits for real time to pass. When nobody can proceed, the waiter with the oldest delivery goes,
out of order; the gate counts that.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Iterable
from typing import Any

from playhead_instrumentation.drivers import quiet_hooks
from playhead_instrumentation.drivers.gate import Turn, running_loop
from playhead_instrumentation.drivers.held_gate import HeldGate, Waiting
from playhead_instrumentation.drivers.schedule import Schedule
from playhead_semconv.facts import Delivery

POLL_S = 0.02
"""How often somebody who waits looks whether all are stuck."""

HOLD_S = 0.1
"""So long a thread that runs without using processor time is waited for."""

PATIENCE_S = 5.0
"""Without any progress for so long, while somebody sleeps, the order of the tape is given up."""

LONGEST_SLEEP_S = 60.0
"""Who sleeps longer is not waited for."""


class TapeGate(HeldGate):
    """The gate of a replay. Safe from any thread."""

    def __init__(
        self, order: Iterable[Delivery], *, level: str = "causal", patience_s: float = PATIENCE_S
    ) -> None:
        """``order``: what was delivered on the tape that is played; ``level``: of that tape."""
        self.level = level
        self.moved = 0
        """How many went out of order, because nobody else could proceed."""
        self._patience_s = patience_s
        self._schedule: Schedule[Waiting] = Schedule(order)
        self._never: list[Waiting] = []
        self._progress_s = time.monotonic()
        super().__init__(live=False, poll_s=POLL_S, hold_s=HOLD_S)

    def arrive(self, due: Delivery | None) -> Turn:
        """Something has come, which came at ``due`` on the tape; None: at once."""
        return _AtOnce() if due is None or self._closed else Waiting(self, due)

    def never(self) -> Turn:
        """A turn that comes only when the program cancels it."""
        return Waiting(self, None)

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Nobody will come for these."""
        with self._lock:
            self._schedule.skip(dues)
        self.advance()

    def close(self) -> None:
        """Let everybody through."""
        with self._lock:
            self._closed = True
            quiet_hooks.keep(None)
            while (waiter := self._schedule.force()) is not None:
                waiter.let_through()
                if waiter.due is not None:
                    self._schedule.went_on(waiter.due)
            for waiter in self._never:
                waiter.let_through()

    def unwatched(self, waiter: Waiting) -> None:
        """Take its loop to wait whenever it comes by."""
        loop = running_loop()
        if loop is not None:
            loop.call_soon(self._poll, waiter)

    def _poll(self, waiter: Waiting) -> None:
        if waiter.done():
            return
        self._quiet.waits()
        self._quiet.goes_on()
        loop = running_loop()
        if loop is not None:
            loop.call_later(POLL_S / 10, self._poll, waiter)

    def _anybody(self) -> bool:
        return bool(len(self._schedule) or self._never)

    def _next(self) -> Waiting | None:
        return self._schedule.release() or self._forced()

    def _joins(self, waiter: Waiting) -> bool:
        if self._closed:
            return True
        self._progress_s = time.monotonic()
        if waiter.due is None:
            self._never.append(waiter)
            return False
        return self._schedule.arrive(waiter, waiter.due)

    def _passed(self, waiter: Waiting) -> Waiting | None:
        return None if waiter.due is None else self._schedule.went_on(waiter.due)

    def _left(self, waiter: Waiting) -> None:
        self._schedule.leave(waiter)
        if waiter in self._never:
            self._never.remove(waiter)

    def _forked(self) -> None:
        for waiter in (*self._schedule.waiting(), *self._never):
            self._left(waiter)

    def _let_through(self, waiter: Waiting) -> None:
        self._progress_s = time.monotonic()
        super()._let_through(waiter)

    def _forced(self) -> Waiting | None:
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
        sure = not self._quiet.guesses() or time.monotonic() > self._progress_s + self._patience_s
        if self._never and sure and self._quiet.for_good():
            waiter = self._never.pop(0)
            waiter.refused = True
            return waiter
        return None


class _AtOnce:
    """A turn that is there."""

    def wait(self) -> Delivery | None:
        return None

    def give_up(self) -> None:
        """Nobody waits."""

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        return None
        yield
