"""Checkpoints every so many seconds or steps: made by the program's threads, where something goes out.

There is no timer. The exchange that goes out when it is time says on the tape that a checkpoint was made
there, so a replay makes it at the same place.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Callable, Collection
from typing import Any, Final

from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.call import Call, RequestControl
from playhead_instrumentation.recorder.decision import Live
from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.gate import Permit, Release
from playhead_instrumentation.tracing.attempts import CallObserver, current_call


class RegularCheckpoints:
    """The departures of a driver, before which checkpoints are made when it is time."""

    def __init__(
        self, behind: RequestControl | None, kinds: Collection[str], mark: Callable[[Call, str], object]
    ) -> None:
        """``behind``: says which of them wait; None: none does. Others: as of `make_every`."""
        self.every_s = 0.0
        self.every_steps = 0
        self._kinds: Final = kinds
        self._mark: Final = mark
        self.behind = behind
        self._last_s = REAL.now_s()
        self._steps: Final = itertools.count(1)
        self._under_way: Final[weakref.WeakSet[CallObserver]] = weakref.WeakSet()
        """Calls of models that have sent an attempt: further attempts are no steps."""

    def pending_release(self, call: Call, key: str, body: bytes | None) -> Release | None:
        """See `RequestControl.pending_release`."""
        if isinstance(call.decision, Live) and call.id.kind in self._kinds:
            why = self._why()
            if why:
                self._mark(call, why)
        return None if self.behind is None else self.behind.pending_release(call, key, body)

    def _why(self) -> str:
        """``time`` or ``steps``: it is time for a checkpoint; empty: it is not."""
        step, now_s = self._step(), REAL.now_s()
        if self.every_s and now_s - self._last_s >= self.every_s:
            self._last_s = now_s
            return "time"
        return "steps" if step and self.every_steps and step % self.every_steps == 0 else ""

    def _step(self) -> int:
        """Number of the step, from 1; 0: it is another attempt of a call."""
        under_way = current_call.get()
        if under_way is not None:
            if under_way in self._under_way:
                return 0
            self._under_way.add(under_way)
        return next(self._steps)

    def arrival(self, call: Call, permit: Permit) -> Permit:
        """See `RequestControl.arrival`."""
        return permit if self.behind is None else self.behind.arrival(call, permit)

    def answered(self, call: Call, values: dict[str, Any]) -> None:
        """See `RequestControl.answered`."""
        if self.behind is not None:
            self.behind.answered(call, values)

    def ended(self, call: Call) -> None:
        """See `RequestControl.ended`."""
        if self.behind is not None:
            self.behind.ended(call)


def make_every(
    driver: Driver,
    kinds: Collection[str],
    mark: Callable[[Call, str], object],
    *,
    every_s: float,
    every_steps: int,
) -> None:
    """Make checkpoints regularly from now on; for each of both, the last that was said counts.

    ``kinds``: of the exchanges before which they are made. ``mark``: makes one, for a reason. 0: as it
    is.
    """
    if not isinstance(driver.control, RegularCheckpoints):
        driver.control = RegularCheckpoints(driver.control, kinds, mark)
    driver.control.every_s = every_s or driver.control.every_s
    driver.control.every_steps = every_steps or driver.control.every_steps
