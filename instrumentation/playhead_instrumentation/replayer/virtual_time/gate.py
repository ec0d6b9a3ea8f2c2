"""The gate of a replay in virtual time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Final

from playhead_core.facts import Delivery, ExchangeId
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_instrumentation.patching.lanes import Lane
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.replayer.virtual_time.schedule import Ends, VirtualSchedule
from playhead_instrumentation.replayer.virtual_time.time import POLL_NS, VirtualTime
from playhead_instrumentation.scheduler.gates.tape import AtOnce, TapeGate
from playhead_instrumentation.scheduler.permit_waits import Waiting

WAITS = ("wait", "join", "lock", "get")
"""Kinds of thread waits that a timeout may end."""

CANCELS = (
    "timer.Timeout.",
    "timer.CancelScope.",
    "timer.TimerContext.",
    "timer._timeout",
    "timer.timeout",
)
"""Prefixes of the names of timers that cancel a task: asyncio, anyio, aiohttp, async_timeout."""

RELEASES = "timer._release_waiter"
"""Name of the timer of `asyncio.wait`, and of `asyncio.wait_for` until Python 3.11."""


class VirtualGate(TapeGate):
    """Admits recorded deliveries in their order, and timers when they are due. Safe from any thread."""

    def __init__(self, time: VirtualTime, times_ns: dict[Delivery, int], *, level: str) -> None:
        """``times_ns``: when each delivery of the tape was made, in nanoseconds since the epoch."""
        self.time: Final = time
        self._above: dict[int, int] = {}
        """Hash of the parent lane, by hash of the lane."""
        self.unasked_ns: Callable[[], int | None] = lambda: None
        """See `VirtualSchedule`."""
        self._times: VirtualSchedule[Waiting] = VirtualSchedule(
            time, times_ns, self._is_within, lambda: self.unasked_ns()
        )
        self.on_standstill: Callable[[], None] | None = None
        """Called where timers fire for ever and nothing else happens. It does not return."""
        super().__init__((), level=level)

    def declared(self, lane: Lane) -> None:
        """Something was asked in ``lane`` or in a lane below it."""
        if lane.parent is not None:
            self._above[lane.hash] = lane.parent.hash

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Permit:
        """The permit of something that has arrived and was delivered at ``due`` on the tape.

        None: it enters at once.
        """
        return AtOnce() if due is None or self._closed else Waiting(self, due, who)

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries: no waiter will claim them."""
        with self._lock:
            self._times.skip(dues)
        self.advance()

    def expects(self) -> bool:
        """Whether something on the tape has not entered yet."""
        with self._lock:
            return self._times.expects()

    def is_due(self, due: Delivery | None) -> bool:
        """Whether the time of a delivery has come. For polls; each moves the time by `POLL_NS`."""
        with self._lock:
            self.time.passes(POLL_NS)
            return due is not None and self._times.is_due(due)

    def close(self) -> None:
        """Let all waiters through."""
        with self._lock:
            left = self._times.waiting()
            for waiter in left:
                self._times.leave(waiter)
                if waiter.due is None:
                    waiter.left_alone = True
                if waiter.due is not None or waiter.blocks:
                    waiter.let_through()
        super().close()

    def _is_within(self, waiter: Waiting, timer: Waiting) -> bool:
        if waiter.who is None or timer.who is None:
            return True
        lane: int | None = waiter.who.lane
        while lane is not None:
            if lane == timer.who.lane:
                return True
            lane = self._above.get(lane)
        return False

    def _next(self) -> Waiting | None:
        if self._times.stands() and self.on_standstill is not None:
            self.on_standstill()
        found = self._times.release(self._is_early)
        if found is not None or self._times.holds(self._is_early):
            return found
        if self.on_killed is not None and not self._times.expects() and self._refuses():
            self.on_killed()
        waiter = self._in_vain()
        if waiter is not None:
            self._never.remove(waiter)
            waiter.refused = True
        return waiter

    def _is_early(self, waiter: Waiting) -> bool:
        """Whether a signal has to wait for an earlier delivery, which may still arrive."""
        if not waiter.sudden or waiter.due is None or self._idled_s() > self._patience_s:
            return False
        following = self._times.following()
        return following is not None and following.batch < waiter.due.batch

    def _owes(self, ticks: int) -> bool:
        return False

    def _joins(self, waiter: Waiting) -> bool:
        if self._closed:
            return True
        self._progress_s = self.ledger.patience_s()
        if waiter.due is not None:
            self._times.arrive(waiter, waiter.due)
        elif waiter.after_s is None:
            self._never.append(waiter)
        else:
            self._times.timer(waiter, int(waiter.after_s * 1e9), _ends(waiter.who))
        return False

    def _passed(self, waiter: Waiting) -> Waiting | None:
        return None

    def _left(self, waiter: Waiting) -> None:
        self._times.leave(waiter)
        if waiter in self._never:
            self._never.remove(waiter)


def started_ns(tape: IndexedTape) -> int:
    """When the process on ``tape`` started, in nanoseconds since the epoch."""
    return next((fact.time_ns for fact in tape.facts()), 0)


def times_of(tape: IndexedTape) -> dict[Delivery, int]:
    """When each delivery of ``tape`` was made, in nanoseconds since the epoch."""
    return {fact.delivery: fact.time_ns for fact in tape.facts() if fact.delivery is not None}


def _ends(who: ExchangeId | None) -> Ends:
    kind = "" if who is None else who.kind
    if kind.startswith(CANCELS) or (kind.startswith(RELEASES) and sys.version_info < (3, 12)):
        return "exchange"
    return "wait" if kind in WAITS or kind.startswith(RELEASES) else "itself"
