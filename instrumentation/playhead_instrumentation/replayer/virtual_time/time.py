"""Virtual time: it advances only with the tape, a timer or a read by the program."""

from __future__ import annotations

import threading

from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.replayer.virtual_time.clocks import Moment

READ_NS = 1_000
"""What each read of a clock adds, in nanoseconds. A program that polls a clock until a deadline would
otherwise never end."""

POLL_NS = 100_000
"""What each poll adds, in nanoseconds."""


class VirtualTime:
    """The clock of a replay. Safe from any thread."""

    def __init__(self, start_ns: int) -> None:
        """``start_ns``: when the recorded process started, in nanoseconds since the epoch."""
        self._lock = threading.Lock()
        self._start_ns = self._now_ns = start_ns
        self._count_ns = int(REAL.monotonic() * 1e9)
        """Value of the clocks with an arbitrary zero at the start."""

    @property
    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return self._now_ns

    def to(self, time_ns: int) -> None:
        """Advance to ``time_ns``; never go back."""
        with self._lock:
            self._now_ns = max(self._now_ns, time_ns)

    def passes(self, step_ns: int) -> int:
        """Advance by ``step_ns`` and return the new time."""
        with self._lock:
            self._now_ns += step_ns
            return self._now_ns

    def moment(self, step_ns: int = 0) -> Moment:
        """Advance by ``step_ns`` and return the new time on all clocks."""
        now_ns = self.passes(step_ns)
        passed_ns = now_ns - self._start_ns
        return Moment(now_ns, passed_ns + self._count_ns, passed_ns)


class FlowingTime(VirtualTime):
    """Time that also passes with the real clock: for a fork, in which sleeps and timers are real."""

    def __init__(self, start_ns: int) -> None:
        super().__init__(start_ns)
        self._seen_s = REAL.now_s()

    @property
    def now_ns(self) -> int:
        """Nanoseconds since the epoch."""
        return self.passes(0)

    def to(self, time_ns: int) -> None:
        """Advance to ``time_ns``; never go back."""
        self.passes(0)
        super().to(time_ns)

    def passes(self, step_ns: int) -> int:
        """Advance by the real time that has passed plus ``step_ns``; return the new time."""
        with self._lock:
            now_s = REAL.now_s()
            self._now_ns += step_ns + max(0, int((now_s - self._seen_s) * 1e9))
            self._seen_s = now_s
            return self._now_ns
