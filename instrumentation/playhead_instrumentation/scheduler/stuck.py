"""Detects that the running thread is stuck and holds up the others, by its processor time.

A blocked thread uses no processor time. A thread that waits for the GIL wakes up every few milliseconds,
and a thread that the system does not schedule is runnable: neither is stuck, however long it takes. Nor
is a thread that waits for another runnable thread. C code that polls *rests*: it uses almost no
processor time over a long period. A thread that *computes* is stuck once it has used a given amount.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from playhead_instrumentation.scheduler import threads

How: TypeAlias = Literal["blocks", "rests", "computes"]

IMPATIENCE = 2
"""How many times the wait for a blocked thread is halved when it blocks again.

The wait never gets as short as the time that the system needs to wake a thread.
"""

LOOKS = 8
"""How many more checks are made while another thread of the process is runnable."""

REST = 8
"""A resting thread is waited for this many times as long as a blocked one."""

REST_NS = 1_000_000
"""Processor time up to which a thread counts as resting."""


class Watched:
    """State of a busy thread that holds up others."""

    __slots__ = ("_began_ns", "_looks", "_rest_ns", "_rest_s", "_times", "_used_ns", "since_s")

    def __init__(self) -> None:
        self.since_s: float | None = None
        """Time since which it has used no processor time; None: it is not watched."""
        self._rest_s = 0.0
        self._began_ns = self._rest_ns = self._used_ns = 0
        self._looks = 0
        self._times = 0
        """How often it has blocked too long so far, at most `IMPATIENCE`."""

    def stuck(
        self,
        place: int,
        now: float,
        hold_s: float,
        computing_hold_s: float,
        known: Collection[int] = (),
    ) -> How | None:
        """How the thread is stuck, or None. ``now``: clock of the waiters (`ThreadLedger.patience_s`).

        ``hold_s``: how long it may block; ``computing_hold_s``: processor time it may use. ``known``:
        threads that are known to be stuck.
        """
        used_ns = threads.processor_time_ns(place)
        if self.since_s is None:
            self.since_s = self._rest_s = now
            self._began_ns = self._rest_ns = self._used_ns = used_ns
            self._looks = 0
            return None
        if used_ns != self._used_ns:
            self._used_ns, self.since_s = used_ns, now
        if used_ns - self._began_ns >= computing_hold_s * 1e9:
            self.since_s = None
            return "computes"
        how: How | None = None
        if now - self.since_s >= hold_s / 2**self._times:
            how = "blocks"
        elif now - self._rest_s >= REST * hold_s:
            if used_ns - self._rest_ns <= REST_NS:
                how = "rests"
            else:
                self._rest_s, self._rest_ns = now, used_ns
        if how is None:
            return None
        if threads.could_run(place):
            self.since_s = self._rest_s = now
            return None
        if self._looks < LOOKS and threads.others_could_run({place, *known}):
            self._looks += 1
            self.since_s = now - hold_s / 2 ** (self._times + 1)
            return None
        self.since_s = None
        if how == "blocks":
            self._times = min(self._times + 1, IMPATIENCE)
        return how
