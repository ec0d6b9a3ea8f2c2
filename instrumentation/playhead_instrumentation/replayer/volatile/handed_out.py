"""Values that the clock and the entropy of a replay gave the program.

The hooks of clocks and entropy note each value; the comparison of requests looks them up. A note is an
append to a list without a lock, so it may come from any thread, a signal handler or a finalizer. Memory
is bounded. Of times, the stretches in which they were read (`stretches`) and the last 512 single times
are kept; of random values, the last 100,000, at most 16 MiB. A value that was dropped is no longer
known: a request that contains it for the first time counts as different. Values of accepted requests are
kept elsewhere (`volatile`), so values that recur in a conversation are not lost.
"""

from __future__ import annotations

import datetime as dt
import math
import threading
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, cast

from playhead_core.normalize.forms import SHORTEST
from playhead_core.normalize.heads import Heads
from playhead_core.normalize.instants import SECOND_NS
from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.replayer.volatile.ranges import Stretches

MOST_VALUES: Final = 100_000
"""Draws of bytes that are kept; the same limit holds for numbers and again for texts."""

MOST_BYTES: Final = 16 << 20
"""Bytes of all kept draws together."""

SHORTEST_BYTES: Final = 4
"""Shortest draw that is kept: a shorter one could stand in a request by chance."""

LONGEST_BYTES: Final = 4096
"""Longest draw that is kept: a longer one is no id."""

RECENT: Final = 512
"""Single times that are kept, for durations."""

_FRESH: Final = 4096
"""Notes after which they are sorted in."""

_ALIKE: Final = 64
"""Values with the same first or last bytes that are looked at: the latest ones."""


class HandedOut:
    """The values that a replay's clock and entropy gave the program. Safe from any thread."""

    def __init__(self, most_values: int = MOST_VALUES, most_bytes: int = MOST_BYTES) -> None:
        self._lock = threading.RLock()
        self._most_values, self._most_bytes = most_values, most_bytes
        self._fresh_times: deque[int] = deque()
        self._fresh_counts: deque[int] = deque()
        self._fresh_values: deque[bytes | float | str] = deque()
        self._times = Stretches()
        self._counts = Stretches()
        self._recent: deque[int] = deque(maxlen=RECENT)
        self._offsets_s: dict[int, None] = {0: None}
        self._values: OrderedDict[bytes, None] = OrderedDict()
        self._bytes = 0
        self._heads: dict[bytes, list[bytes]] = {}
        """Draws by their first four bytes."""
        self._tails: dict[bytes, list[bytes]] = {}
        """Draws by their last four bytes."""
        self._floats: OrderedDict[float, None] = OrderedDict()
        self._texts: OrderedDict[str, None] = OrderedDict()
        self._text_heads: Heads[str, None] = Heads()
        at_fork.in_child(self._forked)

    def _forked(self) -> None:
        # The thread that held the lock does not exist in this process.
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        """Whether anything was handed out."""
        return bool(
            self._fresh_times
            or self._fresh_values
            or self._times.whole
            or self._values
            or self._floats
            or self._texts
        )

    def note(self, value: object) -> None:
        """Note a random value: bytes, a number, a text, or a list that begins with one of these."""
        if isinstance(value, list | tuple) and value:
            value = cast("Sequence[object]", value)[0]
        if isinstance(value, bytes | bytearray):
            self.note_bytes(bytes(value))
        elif isinstance(value, str):
            self.note_text(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.note_number(value)

    def note_time(self, time_ns: int, offset_s: int | None = None) -> None:
        """Note a read of any clock at ``time_ns``: nanoseconds since the epoch in virtual time.

        Reads of clocks with an arbitrary zero count too: durations are differences of these.
        ``offset_s``: seconds east of UTC, where the program asked for the time in a zone. UTC and the
        local zone are known.
        """
        self._fresh_times.append(time_ns)
        if offset_s:
            self._offsets_s[offset_s] = None
        if len(self._fresh_times) >= _FRESH:
            self._fold(wait=False)

    def note_count(self, count_ns: int) -> None:
        """Note the value of a clock with an arbitrary zero; call after `note_time` for the same read."""
        self._fresh_counts.append(count_ns)
        if len(self._fresh_counts) >= _FRESH:
            self._fold(wait=False)

    def note_bytes(self, data: bytes) -> None:
        """Note bytes that the program has drawn: from the system, or the 16 bytes of a UUID.

        The whole draw, its beginning and its end are recognised: in hex, as a UUID of version 4 or of
        the bytes themselves, in base64 and base64url, and as a whole number. Draws of 4 to 4,096 bytes
        are kept.
        """
        if SHORTEST_BYTES <= len(data) <= LONGEST_BYTES:
            self._note(bytes(data))

    def note_number(self, number: float, bits: int | None = None) -> None:
        """Note a number that the program has drawn.

        ``bits``: its random bits, by default its bit length. A whole number of fewer than 32 random bits
        is not kept: it could stand in a request by chance, like an index or a count. Floats with eight
        digits or more are recognised.
        """
        if isinstance(number, float):
            if math.isfinite(number):
                self._note(number)
            return
        size = max(number.bit_length(), bits or 0)
        if number >= 0 and size >= SHORTEST_BYTES * 8:
            self.note_bytes(number.to_bytes((size + 7) // 8, "big"))

    def note_text(self, text: str) -> None:
        """Note a random text, such as a name that `tempfile` makes.

        Texts of letters, digits, ``_`` and ``-`` with eight characters or more are kept. A text is
        recognised only as a whole.
        """
        if SHORTEST <= len(text) <= LONGEST_BYTES:
            self._note(text)

    def _note(self, value: bytes | float | str) -> None:
        self._fresh_values.append(value)
        if len(self._fresh_values) >= _FRESH:
            self._fold(wait=False)

    def beginning_with(self, head: bytes) -> list[bytes]:
        """Draws by their first four bytes, the latest first."""
        with self._lock:
            return self._heads.get(head, [])[: -_ALIKE - 1 : -1]

    def ending_with(self, tail: bytes) -> list[bytes]:
        """Draws by their last four bytes, the latest first."""
        with self._lock:
            return self._tails.get(tail, [])[: -_ALIKE - 1 : -1]

    def has_float(self, number: float) -> bool:
        """Whether exactly this number was drawn."""
        return number in self._floats

    def text_at(self, text: str, at: int) -> int | None:
        """The end of the random text that begins at ``at`` in ``text``; None where there is none."""
        with self._lock:
            found = self._text_heads.at(text, at)
        return found[0][0] if found else None

    def has_time(self, first_ns: int, past_ns: int) -> bool:
        """Whether a clock was read in [``first_ns``, ``past_ns``), in nanoseconds since the epoch."""
        with self._lock:
            return self._times.holds(first_ns, past_ns)

    def has_time_of_day(self, first_ns: int, past_ns: int) -> bool:
        """Like `has_time`, for nanoseconds since midnight in UTC."""
        with self._lock:
            return self._times.holds_of_day(first_ns, past_ns)

    def has_count(self, first_ns: int, past_ns: int) -> bool:
        """Whether a clock with an arbitrary zero gave a value in [``first_ns``, ``past_ns``)."""
        with self._lock:
            return self._counts.holds(first_ns, past_ns)

    def has_duration(self, duration_ns: float, around_ns: float) -> bool:
        """Whether two of the last reads are ``duration_ns`` apart, give or take ``around_ns``."""
        with self._lock:
            times = sorted(self._recent)
        # Whole numbers: a float of nanoseconds since the epoch is exact only to 0.25 microseconds.
        least, most = math.floor(duration_ns - around_ns), math.ceil(duration_ns + around_ns)
        later = 0
        for time_ns in times:
            later = bisect_left(times, time_ns + least, later)
            if later == len(times):
                return False
            if times[later] <= time_ns + most:
                return True
        return False

    def offsets_s(self) -> list[int]:
        """Zones in which times without a zone may be written, in seconds east of UTC."""
        with self._lock:
            whole, found = self._times.whole, dict(self._offsets_s)
        for time_ns in whole or ():
            try:
                utc = dt.datetime.fromtimestamp(time_ns // SECOND_NS, dt.UTC)
                offset = utc.astimezone().utcoffset()
            except (ValueError, OverflowError, OSError):
                continue
            if offset is not None:
                found[round(offset.total_seconds())] = None
        return list(found)

    def settle(self) -> None:
        """Sort in all notes so far, so that lookups find them."""
        self._fold(wait=True)

    def _fold(self, *, wait: bool) -> None:
        if not self._lock.acquire(blocking=wait):
            return
        try:
            for fresh, stretches in (
                (self._fresh_times, self._times),
                (self._fresh_counts, self._counts),
            ):
                for _ in range(len(fresh)):
                    time_ns = fresh.popleft()
                    stretches.note(time_ns)
                    if stretches is self._times:
                        self._recent.append(time_ns)
            for _ in range(len(self._fresh_values)):
                self._keep(self._fresh_values.popleft())
            self._forget()
        except IndexError:
            pass  # a finalizer in this thread took the last note
        finally:
            self._lock.release()

    def _keep(self, value: bytes | float | str) -> None:
        if isinstance(value, (float, int)):
            self._floats[value] = None
            self._floats.move_to_end(value)
        elif isinstance(value, str):
            self._texts[value] = None
            self._texts.move_to_end(value)
            self._text_heads.put(value, None)
        elif value in self._values:
            self._values.move_to_end(value)
        else:
            self._values[value] = None
            self._bytes += len(value)
            self._heads.setdefault(value[:4], []).append(value)
            self._tails.setdefault(value[-4:], []).append(value)

    def _forget(self) -> None:
        while len(self._values) > self._most_values or self._bytes > self._most_bytes:
            value, _ = self._values.popitem(last=False)
            self._bytes -= len(value)
            for found, key in ((self._heads, value[:4]), (self._tails, value[-4:])):
                alike = found[key]
                alike.remove(value)
                if not alike:
                    del found[key]
        while len(self._floats) > self._most_values:
            self._floats.popitem(last=False)
        while len(self._texts) > self._most_values:
            text, _ = self._texts.popitem(last=False)
            self._text_heads.drop(text)
