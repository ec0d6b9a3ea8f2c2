"""The gate of a fork or a resume: first the order of a tape, then that of a recording.

While the tape has deliveries, live responses wait for them. If everything is idle and the next delivery
of the tape has not arrived, it must depend on a live response, which is then let in.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

from playhead_core.facts import Delivery, ExchangeId
from playhead_instrumentation.recorder.gate import OpenGate, Permit
from playhead_instrumentation.scheduler.gates import strict
from playhead_instrumentation.scheduler.gates.tape import TapeGate
from playhead_instrumentation.scheduler.hooks import waits
from playhead_instrumentation.scheduler.ledger import GRANTED_HOLD_S
from playhead_instrumentation.scheduler.permit_waits import Waiting


class Came(Waiting):
    """The permit of something that came from the world."""

    __slots__ = ()


class BranchGate(TapeGate):
    """Usable from any thread."""

    def __init__(
        self,
        order: Iterable[Delivery],
        *,
        level: str = "causal",
        spun: Mapping[int, int] | None = None,
        going: Callable[[], bool] = lambda: False,
    ) -> None:
        """``order``, ``level``, ``spun``: see `TapeGate`. ``going``: whether a live exchange is open."""
        order = list(order)
        self._going = going
        self._came: deque[Came] = deque()
        self._out: Came | None = None
        """The waiter that was let in and has not continued yet."""
        self._out_since_s = 0.0
        self._numbers = OpenGate(max((due.batch for due in order), default=0))
        self.over = False
        """Whether all deliveries of the tape have entered."""
        super().__init__(order, level=level, spun=spun, live=True)
        self._look()

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Permit:
        """The permit of something delivered at ``due`` on the tape, or, without it, by the world now."""
        if due is not None and not self._closed:
            return super().arrive(due, who)
        return self._numbers if self._closed else Came(self, None, who)

    def alone(self) -> Delivery:
        """A delivery that is a batch of its own, behind those of the tape."""
        return self._numbers.alone()

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries; no waiter will claim them."""
        super().skip(dues)
        with self._lock:
            self._look()

    def part(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries, except those whose waiters have already arrived."""
        with self._lock:
            waiting = {waiter.due for waiter in self._schedule.waiting()}
        self.skip([due for due in dues if due not in waiting])

    def close(self) -> None:
        """Let all waiters through."""
        with self._lock:
            super().close()
            self._open()

    def unwatched(self, waiter: Waiting) -> None:
        """See `TapeGate.unwatched`; behind the end of the tape the gate becomes causal."""
        super().unwatched(waiter)
        with self._lock:
            if self.over:
                self.level = "causal"
                self._goes_causal()

    def _look(self) -> None:
        schedule = self._schedule
        if self.over or schedule.following() is not None or len(schedule) or schedule.passing():
            return
        self.over = True
        if self.level == "strict":
            self.ledger.holds(strict.HOLD_S, strict.COMPUTING_HOLD_S)
            self.poll_s = strict.POLL_S
        else:
            self._goes_causal()

    def _goes_causal(self) -> None:
        if not self._closed:
            self._closed = True
            waits.keep(None)
            self._open()

    def _open(self) -> None:
        while self._came:
            waiter = self._came.popleft()
            waiter.due = self._numbers.wait()
            waiter.let_through()

    def _joins(self, waiter: Waiting) -> bool:
        if not isinstance(waiter, Came):
            at_once = super()._joins(waiter)
            self._look()
            return at_once
        if self._closed:
            waiter.due = self._numbers.wait()
            return True
        if self.over and waiter.blocks and not self._came and self._out is None and self.ledger.alone():
            waiter.due = self._numbered()
            return True
        self._came.append(waiter)
        return False

    def _passed(self, waiter: Waiting) -> Waiting | None:
        if isinstance(waiter, Came):
            if self._out is waiter:
                self._out = None
            return None
        follower = super()._passed(waiter)
        self._look()
        return follower

    def _left(self, waiter: Waiting) -> None:
        if isinstance(waiter, Came):
            if waiter in self._came:
                self._came.remove(waiter)
            return
        super()._left(waiter)
        self._look()

    def _forked(self) -> None:
        super()._forked()
        self._out = None

    def _forced(self) -> Waiting | None:
        if self._schedule.passing():
            return None
        if self._came:
            return self._lets_in()
        return None if self._going() else super()._forced()

    def _ends_with_tape(self) -> bool:
        return False  # the program continues live

    def _is_hopeless(self, waiter: Waiting) -> bool:
        return not waiter.for_signal  # a live signal may come

    def _lets_in(self) -> Came | None:
        if self._out is not None:
            hold_s = GRANTED_HOLD_S if self.ledger.comes(self._out.place) else strict.HOLD_S
            if self.ledger.patience_s() - self._out_since_s < hold_s:
                return None
        self._out, self._out_since_s = self._came.popleft(), self.ledger.patience_s()
        self._out.due = self._numbered()
        return self._out

    def _numbered(self) -> Delivery:
        at = self._numbers.alone()
        if self._spun and self.level == "strict":
            self.on_spun(at, self._spun)
        return at
