"""Whether who runs, and holds up the others, is stuck: told by the processor time of its thread.

Who blocks uses none: the clock of its thread stands still. Who waits for the interpreter looks every few
milliseconds whether it is free, and whom the system does not let run could run: neither is stuck,
however long that takes. Nor is who waits for another thread that could run. C code that looks every now
and then whether it may go on rests: it uses next to none for long. Who computes is stuck when it has
used so much.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, TypeAlias

from playhead_instrumentation.determinism.scheduler import processor_time

How: TypeAlias = Literal["blocks", "rests", "computes"]

IMPATIENCE = 2
"""How often the time is halved for which who blocks is waited for.

It may be about to go on: it is never waited for only as long as the system takes to wake it.
"""

LOOKS = 8
"""So often it is looked again where another thread of the process could run."""

REST = 8
"""Who rests is waited for so many times as long as who blocks."""

REST_NS = 1_000_000
"""So much processor time is next to none."""


class Watched:
    """A busy place that holds up others."""

    __slots__ = ("_began_ns", "_looks", "_rest_ns", "_rest_s", "_times", "_used_ns", "since_s")

    def __init__(self) -> None:
        self.since_s: float | None = None
        """Since when its clock has stood still; None: it is not watched."""
        self._rest_s = 0.0
        self._began_ns = self._rest_ns = self._used_ns = 0
        self._looks = 0
        self._times = 0
        """How often it has blocked for too long."""

    def stuck(
        self,
        place: int,
        now: float,
        hold_s: float,
        computing_hold_s: float,
        known: Collection[int] = (),
    ) -> How | None:
        """How it is stuck. ``now``: time (s) as those who wait have spent it.

        ``hold_s``: how long it may block, ``computing_hold_s``: how much processor time it may use.
        ``known``: who is stuck already.
        """
        used_ns = processor_time.used_ns(place)
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
        if processor_time.could_run(place):
            self.since_s = self._rest_s = now
            return None
        if self._looks < LOOKS and processor_time.others_could_run({place, *known}):
            self._looks += 1
            self.since_s = now - hold_s / 2 ** (self._times + 1)
            return None
        self.since_s = None
        if how == "blocks":
            self._times = min(self._times + 1, IMPATIENCE)
        return how
