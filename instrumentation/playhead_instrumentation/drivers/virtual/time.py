"""Virtual time: it stands still unless the tape, a timer or a read of the program moves it."""

from __future__ import annotations

import itertools
import threading

from playhead_instrumentation.drivers.real_time import REAL

READ_NS = 1_000
"""A clock that stood still would keep a program forever that waits for a deadline by reading it."""

POLL_NS = 100_000
"""Each look whether something has happened yet takes so long."""


class VirtualTime:
    """The clock of a replay. Safe from any thread."""

    def __init__(self, start_ns: int) -> None:
        """``start_ns``: when the recorded process started, since the epoch."""
        self._lock = threading.Lock()
        self._start_ns = self._now_ns = start_ns
        self._count_ns = int(REAL.monotonic() * 1e9)
        """What a clock with an arbitrary zero said at the start."""
        self._reads = itertools.count(1)

    @property
    def now_ns(self) -> int:
        """Since the epoch."""
        return self._now_ns

    def to(self, time_ns: int) -> None:
        """Go to ``time_ns``; never back."""
        with self._lock:
            self._now_ns = max(self._now_ns, time_ns)

    def passes(self, step_ns: int) -> int:
        """Let some time pass; the time then."""
        with self._lock:
            self._now_ns += step_ns
            return self._now_ns

    def counted(self, now_ns: int) -> int:
        """The same moment on a clock with an arbitrary zero."""
        return now_ns - self._start_ns + self._count_ns
