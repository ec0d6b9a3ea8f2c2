"""Which waiter goes next where the tape holds only exchanges. Pure: knows no threads and no loops.

When everything is idle, the next recorded delivery whose waiter has arrived enters, unless a timer is
due earlier. Virtual time does not pass while the program computes, so a timer may be due earlier than it
was in the recording. If that matters, the tape decides:

* A timer that *cancels* a wait (`asyncio.timeout`) does not go before a recorded delivery in its own
  lane or below: no timeout ends an exchange that the tape completes.
* A timer that ends a *wait* (`Event.wait(1)`, `asyncio.wait(timeout=1)`) goes before such a delivery
  only where the tape has a request that was made before the delivery and that the program has not made
  yet.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeAlias, TypeVar

from playhead_core.facts import Delivery
from playhead_instrumentation.replayer.virtual_time.time import VirtualTime

W = TypeVar("W")

Ends: TypeAlias = Literal["itself", "wait", "exchange"]
"""What a timer ends. A sleep ends only itself."""

MOST_TIMERS = 10_000
"""Timers that fire without an exchange between them before this counts as a standstill."""


class VirtualSchedule(Generic[W]):
    """Waiters for recorded deliveries, and timers. A waiter may be any object of the owner."""

    def __init__(
        self,
        time: VirtualTime,
        times_ns: dict[Delivery, int],
        within: Callable[[W, W], bool],
        unasked_ns: Callable[[], int | None] = lambda: None,
    ) -> None:
        """``times_ns``: when each delivery of the tape was made, in nanoseconds since the epoch.

        ``unasked_ns``: when the first recorded request that the program has not made yet was made.
        ``within``: whether what the first waiter waits for is in the lane of the second, or below it.
        """
        self._time = time
        self._times_ns = times_ns
        self._within = within
        self._unasked_ns = unasked_ns
        self._count = itertools.count()
        self._due: list[tuple[int, int, int, W]] = []
        self._timers: list[tuple[int, int, W, Ends]] = []
        self._entered: set[Delivery] = set()
        self._order: list[Delivery] | None = None
        """Deliveries that may not have entered yet, the next one last; made when it is first needed."""
        self.fired = 0
        """Timers that fired since the last recorded delivery."""

    def waiting(self) -> list[W]:
        """All waiters."""
        return [*(one[3] for one in self._due), *(one[2] for one in self._timers)]

    def arrive(self, waiter: W, due: Delivery) -> None:
        """Add a waiter for a recorded delivery."""
        heapq.heappush(self._due, (due.batch, due.order, next(self._count), waiter))

    def timer(self, waiter: W, after_ns: int, ends: Ends) -> None:
        """Add a waiter that waits for ``after_ns`` nanoseconds to pass."""
        due_ns = self._time.now_ns + max(0, after_ns)
        heapq.heappush(self._timers, (due_ns, next(self._count), waiter, ends))

    def leave(self, waiter: W) -> None:
        """Remove a waiter."""
        due = [one for one in self._due if one[3] is not waiter]
        if len(due) != len(self._due):
            heapq.heapify(due)
            self._due = due
            return
        timers = [one for one in self._timers if one[2] is not waiter]
        if len(timers) != len(self._timers):
            heapq.heapify(timers)
            self._timers = timers

    def expects(self) -> bool:
        """Whether something on the tape has not entered yet."""
        return len(self._entered) < len(self._times_ns)

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries: no waiter will claim them."""
        self._entered.update(due for due in dues if due in self._times_ns)

    def stands(self) -> bool:
        """Whether only timers have fired for so long that nothing else will happen."""
        return self.fired >= MOST_TIMERS

    def following(self) -> Delivery | None:
        """The first delivery on the tape that has not entered; None: all have."""
        if self._order is None:
            self._order = sorted(self._times_ns, key=lambda due: (-due.batch, -due.order))
        while self._order and self._order[-1] in self._entered:
            self._order.pop()
        return self._order[-1] if self._order else None

    def holds(self, early: Callable[[W], bool]) -> bool:
        """Whether the first waiter for a recorded delivery has to wait although everything is idle."""
        return bool(self._due) and early(self._due[0][3])

    def release(self, early: Callable[[W], bool] = lambda _: False) -> W | None:
        """When everything is idle: release the next waiter and move the time to it. None: none can go.

        ``early``: whether a waiter for a recorded delivery has to wait although everything is idle.
        """
        timer = self._next_timer()
        if self._due:
            due, waiter = self._due_first(), self._due[0][3]
            due_ns = self._times_ns.get(due, 0)
            if timer is None or due_ns <= timer[0]:
                if early(waiter):
                    return None
                heapq.heappop(self._due)
                self._entered.add(due)
                self._time.to(due_ns)
                self.fired = 0
                return waiter
        if timer is None:
            return None
        self._timers.remove(timer)
        heapq.heapify(self._timers)
        self._time.to(timer[0])
        self.fired += 1
        return timer[2]

    def is_due(self, due: Delivery) -> bool:
        """Whether the time of a delivery has come."""
        return self._times_ns.get(due, 0) <= self._time.now_ns

    def _next_timer(self) -> tuple[int, int, W, Ends] | None:
        """The first timer that may fire."""
        if not self._due:
            return self._timers[0] if self._timers else None
        unasked_ns = self._unasked_ns()
        asked_before = unasked_ns is not None and unasked_ns < self._times_ns.get(self._due_first(), 0)
        for timer in sorted(self._timers, key=lambda one: one[:2]):
            ends = timer[3]
            if ends == "itself" or (ends == "wait" and asked_before):
                return timer
            if not any(self._within(one[3], timer[2]) for one in self._due):
                return timer
        return None

    def _due_first(self) -> Delivery:
        batch, order, *_ = self._due[0]
        return Delivery(batch, order)
