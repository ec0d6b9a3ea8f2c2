"""Which waiter goes next where nothing but exchanges is on the tape. Pure: knows no thread and no loop.

When all is quiet, the next recorded delivery whose waiter has come enters, unless a timer is due
earlier. Virtual time does not pass while the program computes, so a timer may be due earlier than it
was. Where that matters, the tape decides:

* What would *cancel* a wait (`asyncio.timeout`) does not go before a recorded delivery in its own lane
  or below: no timeout ends an exchange that the tape completes.
* What would end a *wait* (`Event.wait(1)`, `asyncio.wait(timeout=1)`) goes before such a delivery only
  where the tape has something asked before that delivery which nobody has asked for yet.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterable
from typing import Generic, Literal, TypeAlias, TypeVar

from playhead_instrumentation.determinism.virtual_time.time import VirtualTime
from playhead_semconv.facts import Delivery

W = TypeVar("W")

Ends: TypeAlias = Literal["itself", "wait", "exchange"]
"""What a timer ends: a sleep ends itself."""

MOST_TIMERS = 10_000
"""So many timers that go off without an exchange between them are a standstill."""


class VirtualSchedule(Generic[W]):
    """Waiters for recorded deliveries, and timers. A waiter is whatever its owner calls one."""

    def __init__(
        self,
        time: VirtualTime,
        times_ns: dict[Delivery, int],
        within: Callable[[W, W], bool],
        unasked_ns: Callable[[], int | None] = lambda: None,
    ) -> None:
        """``times_ns``: when each delivery of the tape was made.

        ``unasked_ns``: when the first of those recorded requests was made that nobody has made yet.
        ``within``: whether what the first waits for is in the lane of the second, or below it.
        """
        self._time = time
        self._times_ns = times_ns
        self._within = within
        self._unasked_ns = unasked_ns
        self._count = itertools.count()
        self._due: list[tuple[int, int, int, W]] = []
        self._timers: list[tuple[int, int, W, Ends]] = []
        self._entered: set[Delivery] = set()
        self.fired = 0
        """Timers that went off since the last recorded delivery."""

    def __len__(self) -> int:
        return len(self._due) + len(self._timers)

    def waiting(self) -> list[W]:
        """Who waits."""
        return [*(one[3] for one in self._due), *(one[2] for one in self._timers)]

    def arrive(self, waiter: W, due: Delivery) -> None:
        """Somebody waits for a recorded delivery."""
        heapq.heappush(self._due, (due.batch, due.order, next(self._count), waiter))

    def timer(self, waiter: W, after_ns: int, ends: Ends) -> None:
        """Somebody waits for so much time to pass."""
        due_ns = self._time.now_ns + max(0, after_ns)
        heapq.heappush(self._timers, (due_ns, next(self._count), waiter, ends))

    def leave(self, waiter: W) -> None:
        """A waiter waits no longer."""
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
        """Whether nothing but timers has gone on for so long that nothing else will."""
        return self.fired >= MOST_TIMERS

    def release(self) -> W | None:
        """All is quiet: the waiter that goes next, and the time moves to it. None: none can go."""
        timer = self._next_timer()
        if self._due:
            due, waiter = self._due_first(), self._due[0][3]
            due_ns = self._times_ns.get(due, 0)
            if timer is None or due_ns <= timer[0]:
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

    def ripe(self, due: Delivery) -> bool:
        """Whether the time of a delivery has come."""
        return self._times_ns.get(due, 0) <= self._time.now_ns

    def _next_timer(self) -> tuple[int, int, W, Ends] | None:
        """The first timer that may go off."""
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
