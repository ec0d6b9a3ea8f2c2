"""The gate of a replay: lets recorded deliveries in, batch by batch, each when everything is idle.

The tape gives the order, so nothing waits for real time. The order can be wrong for this program (it was
changed, or a thread behaves differently). Then every thread would wait for ever. Therefore, if no thread
can proceed, the waiter with the oldest delivery enters out of order, and the gate reports that
(`on_moved`).
"""

from __future__ import annotations

import threading
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator, Iterable, Mapping
from contextvars import Context
from typing import Any

from playhead_core.facts import Delivery, ExchangeId
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.gate import Called, Permit, nothing, running_loop
from playhead_instrumentation.scheduler.gates.held import HeldGate
from playhead_instrumentation.scheduler.gates.tape_order import Order, Schedule
from playhead_instrumentation.scheduler.hooks import waits
from playhead_instrumentation.scheduler.ledger import Rest
from playhead_instrumentation.scheduler.permit_waits import Waiting

POLL_S = 0.02
"""Seconds between checks of a waiter whether all running threads are stuck."""

HOLD_S = 0.5
"""Seconds for which a busy thread that uses no processor time is waited for."""

COMPUTING_HOLD_S = 5.0
"""Processor time that a computing thread may use: far more than in a recording."""

COMPUTING_PATIENCE_S = 60.0
"""Seconds without progress, while a thread computes, until the order of the tape is given up."""

PATIENCE_S = 5.0
"""Seconds without progress, in other cases, until the order of the tape is given up."""

LEFT_BEHIND_S = 30.0
"""Seconds a thread waits for something that is not on the tape and that only the end of the process
would end."""

LONGEST_SLEEP_S = 60.0
"""Longest sleep of a thread that is waited for."""


class TapeGate(HeldGate):
    """The gate of a replay. Usable from any thread."""

    def __init__(
        self,
        order: Order | Iterable[Delivery],
        *,
        level: str = "causal",
        patience_s: float = PATIENCE_S,
        spun: Mapping[int, int] | None = None,
        live: bool = False,
    ) -> None:
        """``order``: the deliveries of the played tape; ``level``: of that tape.

        ``spun``: ticks that a loop had spun at a delivery, by batch. ``live``: the world answers too.
        """
        self.level = level
        self.moved = 0
        """Number of waiters that entered out of order because no thread could proceed."""
        self.on_moved: Callable[[ExchangeId | None], None] = _ignore
        """Called with each of them."""
        self.on_killed: Callable[[], None] | None = None
        """Called, and does not return, at the end of the tape of a killed process."""
        self.on_asleep: Callable[[], None] | None = None
        """The same, if all remaining threads sleep beyond the end of the tape."""
        self._spun_on_tape = spun or {}
        self._parked: dict[Waiting, float] = {}
        """Waits that did not end by time on the tape → when they would have (`REAL.now_s`)."""
        self._patience_s = patience_s
        self._schedule: Schedule[Waiting] = Schedule(order)
        self._never: list[Waiting] = []
        self._progress_s = 0.0
        """Time of the last progress, on the clock `ThreadLedger.patience_s`."""
        super().__init__(live=live, poll_s=POLL_S, hold_s=HOLD_S, computing_hold_s=COMPUTING_HOLD_S)

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Permit:
        """The permit of something delivered at ``due`` on the tape; None: immediate."""
        return AtOnce() if due is None or self._closed else Waiting(self, due, who)

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Permit:
        """A permit that does not come; the wait ends when the program cancels it."""
        return Waiting(self, None, who, after_s)

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries; no waiter will claim them."""
        with self._lock:
            self._schedule.skip(dues)
        self.advance()

    def expects(self) -> bool:
        """Whether the tape has deliveries that have not entered yet."""
        with self._lock:
            return self._schedule.following() is not None

    def rest(self) -> tuple[Rest | None, float]:
        """How all threads rest while none waits at the gate, and a mark that changes with progress."""
        with self._lock:
            rest = None if self._closed or self._waiters else self.ledger.rest()
            return rest, self._progress_s

    def close(self) -> None:
        """Let all waiters through."""
        with self._lock:
            self._closed = True
            waits.keep(None)
            while (waiter := self._schedule.force()) is not None:
                waiter.let_through()
                if waiter.due is not None:
                    self._schedule.went_on(waiter.due)
            for waiter in self._never:
                waiter.let_through()
            for waiter in self._parked:
                waiter.left_alone = True
                if waiter.blocks:
                    waiter.let_through()

    def unwatched(self, waiter: Waiting) -> None:
        """Treat its loop as waiting whenever it runs our callback."""
        loop = running_loop()
        if loop is not None:
            loop.call_soon(self._poll, waiter)

    def _poll(self, waiter: Waiting) -> None:
        if waiter.done():
            return
        self.ledger.waits()
        self.ledger.goes_on()
        loop = running_loop()
        if loop is not None:
            loop.call_later(POLL_S / 10, self._poll, waiter)

    def _next(self) -> Waiting | None:
        if self._spun is not None:
            following = self._schedule.following()
            ticks = 0 if following is None else self._spun_on_tape.get(following.batch, 0)
            if ticks > self._spun:
                return None
            waiter = self._schedule.release()
            if waiter is not None:
                if waiter.due is not None and self._spun:
                    self.on_spun(waiter.due, self._spun)
                return waiter
        return self._schedule.release() or self._forced()

    def _owes(self, ticks: int) -> bool:
        if self._closed or self._spinner is None:
            return False
        following = self._schedule.following()
        if following is None or self._spun_on_tape.get(following.batch) != ticks:
            return False
        if self._idled_s() > self._patience_s:
            return False
        return bool(self._waiters) or not self.ledger.is_idle() or self.ledger.guesses()

    def _joins(self, waiter: Waiting) -> bool:
        if self._closed:
            return True
        self._progress_s = self.ledger.patience_s()
        if waiter.due is None:
            if waiter.after_s is None:
                self._never.append(waiter)
            else:
                self._parked[waiter] = REAL.now_s() + waiter.after_s
            return False
        return self._schedule.arrive(waiter, waiter.due)

    def _passed(self, waiter: Waiting) -> Waiting | None:
        return None if waiter.due is None else self._schedule.went_on(waiter.due)

    def _left(self, waiter: Waiting) -> None:
        self._schedule.leave(waiter)
        self._parked.pop(waiter, None)
        if waiter in self._never:
            self._never.remove(waiter)

    def _let_through(self, waiter: Waiting) -> None:
        self._progress_s = self.ledger.patience_s()
        super()._let_through(waiter)

    def _idled_s(self) -> float:
        """Seconds since the last progress."""
        return self.ledger.patience_s() - self._progress_s

    def _forced(self) -> Waiting | None:
        """The waiter to let in out of order, because no thread can proceed otherwise.

        If that is uncertain (a blocked or computing thread may continue), only after a while.
        """
        idled_s = self._idled_s()
        if self.ledger.computes() and idled_s < COMPUTING_PATIENCE_S:
            return None
        if not self.ledger.for_good() or self.ledger.guesses():
            sleeps = REAL.now_s() < self.ledger.latest_alarm()
            if idled_s < (LONGEST_SLEEP_S if sleeps else self._patience_s):
                return None
        sudden = [one.sudden for one in self._schedule.waiting()]
        if sudden and all(sudden) and idled_s < self._patience_s:
            return None  # what comes before the signal may still arrive
        waiter = self._schedule.force()
        if waiter is not None:
            return self._moves(waiter)
        if self.on_killed is not None and self._schedule.following() is None and self._ends_with_tape():
            self.on_killed()
        waiter = self._in_vain()
        if waiter is not None:
            self._never.remove(waiter)
            waiter.refused = True
            return waiter
        if self._parked:
            # No other thread proceeds and the tape has no end for this wait: it ends in real time.
            waiter, until_s = min(self._parked.items(), key=lambda item: item[1])
            if self._schedule.following() is not None:
                if idled_s < self._patience_s:
                    return None
            elif self.on_asleep is not None and self._ends_with_tape():
                self.on_asleep()
            if REAL.now_s() >= until_s:
                del self._parked[waiter]
                return self._moves(waiter)
        return None

    def _in_vain(self) -> Waiting | None:
        """A waiter for something that is not on the tape; daemon threads come last."""
        if not self._never or not self._refuses():
            return None
        # A daemon thread may end with the process while other waiters can still proceed.
        others = bool(self._parked or self._schedule.waiting())
        patient = others and self._idled_s() <= LEFT_BEHIND_S
        hopeless = (waiter for waiter in self._never if self._is_hopeless(waiter))
        return next((waiter for waiter in hopeless if not (patient and _is_daemon(waiter.place))), None)

    def _is_hopeless(self, waiter: Waiting) -> bool:
        """Whether nothing but the tape can end this wait."""
        return True

    def _ends_with_tape(self) -> bool:
        """Whether the process ends where the tape of a killed process ends."""
        return self._refuses()

    def _refuses(self) -> bool:
        """Whether waiting for something that is not on the tape is in vain."""
        sure = not self.ledger.guesses() or self._idled_s() > self._patience_s
        return sure and self.ledger.for_good()

    def _moves(self, waiter: Waiting) -> Waiting:
        waiter.moved = True
        self.moved += 1
        self.on_moved(waiter.who)
        return waiter


def _is_daemon(thread: int) -> bool:
    found = _threads.get(thread)
    return found is not None and found.daemon


_threads: dict[int, threading.Thread] = vars(threading)["_active"]


def _ignore(who: ExchangeId | None) -> None:
    """No-op callback."""


class AtOnce:
    """A permit that is immediate."""

    def wait(self) -> Delivery | None:
        """Return immediately."""
        return None

    def give_up(self) -> None:
        """No-op: nothing waits."""

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        return None
        yield

    def call(
        self, loop: AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """Call ``called`` now."""
        called(None)
        return nothing
