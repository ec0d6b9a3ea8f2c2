"""The gate of a strict recording: one delivery at a time, the next after all its consequences.

So a replay needs only the order of deliveries. The gate must not slow the recorded program down: it
waits only a limited time for a thread that blocks in something unknown, a thread that computes, or an
event loop that is never idle. What happens then is left to chance, and the tape says so.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from playhead_core.facts import Delivery, ExchangeId
from playhead_instrumentation.recorder.gate import OpenGate, Permit
from playhead_instrumentation.scheduler.gates.held import HeldGate
from playhead_instrumentation.scheduler.hooks import waits
from playhead_instrumentation.scheduler.ledger import GRANTED_HOLD_S
from playhead_instrumentation.scheduler.permit_waits import Waiting

POLL_S = 0.005
"""Seconds between checks of a waiter whether the running threads are stuck."""

HOLD_S = 0.05
"""Seconds for which a busy thread that uses no processor time is waited for."""

COMPUTING_HOLD_S = 0.25
"""Processor time that a computing thread may use."""


class StrictGate(HeldGate):
    """Holds arrivals back until everything is idle, and numbers them. Usable from any thread."""

    def __init__(self) -> None:
        self.level = "strict"
        self._arrived: deque[Waiting] = deque()
        self._out: Waiting | None = None
        """The waiter that was let through and has not continued yet."""
        self._out_since_s = 0.0
        self._open = OpenGate()
        super().__init__(live=True, poll_s=POLL_S, hold_s=HOLD_S, computing_hold_s=COMPUTING_HOLD_S)

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Permit:
        """The permit of something that has arrived; it enters when everything is idle."""
        return self._open if self._closed else Waiting(self, None, who)

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Permit:
        """Live: it comes when it comes."""
        return self.arrive(None, who)

    def alone(self) -> Delivery:
        """A delivery that is a batch of its own."""
        return self._open.alone()

    def skip(self, dues: Iterable[Delivery]) -> None:
        """No-op: there is no tape."""

    def close(self) -> None:
        """Let all waiters through, and hold nothing back from now on."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            waits.keep(None)
            while self._arrived:
                waiter = self._arrived.popleft()
                waiter.due = self._open.wait()
                waiter.let_through()

    def unwatched(self, waiter: Waiting) -> None:
        """The idleness of an event loop cannot be detected: this recording is causal from now on."""
        self.loosen()

    def loosen(self) -> None:
        """This recording is causal from now on."""
        with self._lock:
            self.level = "causal"
            self.close()

    def step_down(self) -> bool:
        """This recording is causal from now on. Whether it was strict until now."""
        with self._lock:
            was_strict = self.level == "strict"
            self.loosen()
        return was_strict

    def _next(self) -> Waiting | None:
        if self._out is not None:
            hold_s = GRANTED_HOLD_S if self.ledger.comes(self._out.place) else HOLD_S
            if self.ledger.patience_s() - self._out_since_s < hold_s:
                return None
        self._out, self._out_since_s = self._arrived.popleft(), self.ledger.patience_s()
        self._out.due = self._open.alone()
        self._says_how_long_it_spun(self._out.due)
        return self._out

    def _says_how_long_it_spun(self, at: Delivery) -> None:
        if self._spun:
            self.on_spun(at, self._spun)

    def _joins(self, waiter: Waiting) -> bool:
        if self._closed:
            waiter.due = self._open.wait()
            return True
        if waiter.blocks and not self._arrived and self._out is None and self.ledger.alone():
            waiter.due = self._open.alone()
            self._says_how_long_it_spun(waiter.due)
            return True
        self._arrived.append(waiter)
        return False

    def _passed(self, waiter: Waiting) -> Waiting | None:
        if self._out is waiter:
            self._out = None
        return None

    def _left(self, waiter: Waiting) -> None:
        if waiter in self._arrived:
            self._arrived.remove(waiter)

    def _forked(self) -> None:
        super()._forked()
        self._out = None
