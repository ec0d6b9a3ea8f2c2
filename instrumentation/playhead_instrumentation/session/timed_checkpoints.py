"""Checkpoints every so many seconds: made by the program's own threads, where something goes out.

There is no timer. The exchange that goes out first when the time has come says on the tape that a
checkpoint was made there, so a replay makes it at the same place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from playhead_instrumentation.driver.call import Call, Departures
from playhead_instrumentation.driver.driver import Driver
from playhead_instrumentation.driver.gate import Departure, Turn
from playhead_instrumentation.driver.verdict import Live
from playhead_instrumentation.runtime.real_clock import REAL


class TimedCheckpoints:
    """The departures of a driver, before which checkpoints are made when it is time."""

    def __init__(self, behind: Departures | None, every_s: float, mark: Callable[[Call], bool]) -> None:
        """``behind``: says which of them wait; None: none does. ``mark``: as of `make_every`."""
        self.every_s = every_s
        self._mark: Final = mark
        self._behind: Final = behind
        self._last_s = REAL.now_s()

    def departure(self, call: Call, key: str, body: bytes | None) -> Departure | None:
        """See `Departures.departure`."""
        if isinstance(call.verdict, Live):
            now_s = REAL.now_s()
            if now_s - self._last_s >= self.every_s and self._mark(call):
                self._last_s = now_s
        return None if self._behind is None else self._behind.departure(call, key, body)

    def arrival(self, call: Call, turn: Turn) -> Turn:
        """See `Departures.arrival`."""
        return turn if self._behind is None else self._behind.arrival(call, turn)

    def answered(self, call: Call, values: dict[str, Any]) -> None:
        """See `Departures.answered`."""
        if self._behind is not None:
            self._behind.answered(call, values)

    def ended(self, call: Call) -> None:
        """See `Departures.ended`."""
        if self._behind is not None:
            self._behind.ended(call)


def make_every(driver: Driver, every_s: float, mark: Callable[[Call], bool]) -> None:
    """Make a checkpoint every so many seconds from now on; the last that was said counts.

    ``mark``: makes one before an exchange goes out; False for an exchange of which it does not.
    """
    if isinstance(driver.control, TimedCheckpoints):
        driver.control.every_s = every_s
    else:
        driver.control = TimedCheckpoints(driver.control, every_s, mark)
