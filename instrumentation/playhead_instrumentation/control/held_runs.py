"""The runs that operators hold: until when, whether they are paused, with which rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from playhead_core.control.messages import ControlOrder, Hold
from playhead_core.control.rules import ControlRule
from playhead_core.facts import ExchangeId
from playhead_instrumentation.patching.unpatched import REAL


class HeldRun:
    """A run that an operator holds."""

    def __init__(self, holder: str) -> None:
        self.holder = holder
        self.until_s = 0.0
        """When it goes on by itself, by `REAL.now_s`."""
        self.paused = False
        self.steps = False
        """Whether it is paused again after a step."""
        self.ahead = 0
        """Steps that were let go before there was one."""
        self.rules: list[ControlRule] = []
        self.passing: set[ExchangeId] = set()
        """Exchanges that were let out while it is paused: what comes of them arrives."""

    def pauses(self) -> None:
        """Pause it: what is under way does not arrive any more."""
        self.paused, self.steps, self.ahead = True, False, 0
        self.passing.clear()

    def steps_once(self) -> None:
        """A step is about to be let go; it stays paused."""
        self.paused = self.steps = True

    def goes_on(self) -> None:
        """Let it go on."""
        self.paused = self.steps = False


class HeldRuns:
    """Held runs by trace id. The caller keeps threads apart."""

    def __init__(self, own_trace: Callable[[], str]) -> None:
        """``own_trace``: of the process's own run; who holds it holds all that the process does."""
        self.own_trace: Final = own_trace
        self._runs: dict[str, HeldRun] = {}

    @property
    def pausing(self) -> bool:
        """Whether any is paused."""
        return any(run.paused for run in self._runs.values())

    @property
    def ruling(self) -> bool:
        """Whether any has rules."""
        return any(run.rules for run in self._runs.values())

    def has(self, trace: str, asked: str) -> bool:
        """Whether what asks in the run ``trace`` belongs to the run ``asked``."""
        return trace == asked or asked == self.own_trace()

    def of(self, trace: str) -> HeldRun | None:
        """The held run to which an ask in the run ``trace`` belongs."""
        if not self._runs:
            return None
        return self._runs.get(trace) or self._runs.get(self.own_trace())

    def named(self, trace: str) -> HeldRun | None:
        """The run with this id, if it is held."""
        return self._runs.get(trace)

    def lease(self, order: ControlOrder) -> HeldRun | None:
        """Hold a run from now on, as an order says; None: there is nothing to be renewed."""
        run = self._runs.get(order.trace_id)
        if run is None and order.what != "renew":
            run = self._runs[order.trace_id] = HeldRun(order.by)
        if run is not None:
            run.holder = order.by
            run.until_s = REAL.now_s() + order.lease_s
        return run

    def drop(self, trace: str) -> None:
        """The run is held no longer."""
        self._runs.pop(trace, None)

    def clear(self) -> None:
        """No run is held any longer."""
        self._runs.clear()

    def traces(self) -> list[str]:
        """Trace ids of all held runs."""
        return list(self._runs)

    def times(self) -> list[float]:
        """When each of them goes on by itself."""
        return [run.until_s for run in self._runs.values()]

    def over(self) -> list[tuple[str, HeldRun]]:
        """Those whose time is over."""
        now_s = REAL.now_s()
        return [(trace, run) for trace, run in self._runs.items() if run.until_s <= now_s]

    def told(self) -> Iterator[Hold]:
        """What a report says of them."""
        now_s = REAL.now_s()
        for trace, run in self._runs.items():
            left_s = max(0.0, run.until_s - now_s)
            yield Hold(trace, run.holder, left_s, run.paused, [str(rule) for rule in run.rules])
