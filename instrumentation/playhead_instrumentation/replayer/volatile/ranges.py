"""The times that were handed out, kept as few stretches for many reads."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

from playhead_core.normalize.instants import DAY_NS, Stretch

JOINED_NS: Final = 1_000_000
"""Reads that are at most this far apart form one stretch."""

MOST: Final = 4096
"""Stretches that are kept. Where there are more, those nearest to each other are joined."""

MOST_DAYS: Final = 400
"""Days on which a time of day is looked up: the latest ones."""


class Stretches:
    """Times that were read. Not safe from several threads."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        """The last read of each stretch."""
        self._joined_ns = JOINED_NS

    @property
    def whole(self) -> Stretch | None:
        """From the first read to the last; None where there are no reads."""
        return (self._starts[0], self._ends[-1]) if self._starts else None

    def note(self, time_ns: int) -> None:
        """Note one read. Reads come in order of time, except those of other threads."""
        starts, ends = self._starts, self._ends
        if not starts or time_ns > ends[-1] + self._joined_ns:
            starts.append(time_ns)
            ends.append(time_ns)
            if len(starts) > MOST:
                self._join()
        elif time_ns >= starts[-1]:
            ends[-1] = max(ends[-1], time_ns)
        elif not self.holds(time_ns, time_ns + 1):
            self._between(time_ns)

    def holds(self, first_ns: int, past_ns: int) -> bool:
        """Whether a time in [``first_ns``, ``past_ns``) was read. Joined stretches may add times."""
        at = bisect_right(self._starts, past_ns - 1) - 1
        return at >= 0 and self._ends[at] >= first_ns

    def holds_of_day(self, first_ns: int, past_ns: int) -> bool:
        """Like `holds`, for times since midnight of any day."""
        if not self._starts:
            return False
        last = self._ends[-1] // DAY_NS + 1
        days = range(last, max(self._starts[0] // DAY_NS - 1, last - MOST_DAYS) - 1, -1)
        return any(self.holds(day * DAY_NS + first_ns, day * DAY_NS + past_ns) for day in days)

    def _between(self, time_ns: int) -> None:
        at = bisect_right(self._starts, time_ns)
        if at and time_ns - self._ends[at - 1] <= self._joined_ns:
            self._ends[at - 1] = time_ns
        elif self._starts[at] - time_ns <= self._joined_ns:
            self._starts[at] = time_ns
        else:
            self._starts.insert(at, time_ns)
            self._ends.insert(at, time_ns)
            if len(self._starts) > MOST:
                self._join()

    def _join(self) -> None:
        while len(self._starts) > MOST // 2:
            self._joined_ns *= 2
            starts, ends = self._starts[:1], self._ends[:1]
            for start, end in zip(self._starts[1:], self._ends[1:], strict=True):
                if start - ends[-1] <= self._joined_ns:
                    ends[-1] = end
                else:
                    starts.append(start)
                    ends.append(end)
            self._starts, self._ends = starts, ends
