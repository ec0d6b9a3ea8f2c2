"""What the clock and the entropy of a replay gave the program.

The hooks of clocks and entropy tell each value; looking up is for who compares. A note is an append to a
list, with no lock: it may come from any thread, a signal handler or a finalizer. What is kept is
bounded: of times the stretches in which they were read (`stretches`) and the last 512 one by one; of
random values the last 100,000 and at most 16 MiB. A value that was forgotten is not known any more: a
request that holds it for the first time is another one. Values of requests that were accepted are kept
elsewhere (`volatile`), so what goes on in a conversation is not forgotten.
"""

from __future__ import annotations

import datetime as dt
import math
import threading
from bisect import bisect_left
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Final, cast

from playhead_instrumentation.determinism.volatile.stretches import Stretches
from playhead_instrumentation.runtime import at_fork
from playhead_semconv.volatile.forms import SHORTEST
from playhead_semconv.volatile.heads import Heads
from playhead_semconv.volatile.instants import SECOND_NS

MOST_VALUES: Final = 100_000
"""Random values that are kept; of numbers and of texts as many again."""

MOST_BYTES: Final = 16 << 20
"""All random values together."""

SHORTEST_BYTES: Final = 4
"""A shorter draw says too little to be recognised: it could be there by chance."""

LONGEST_BYTES: Final = 4096
"""A longer draw is no id."""

RECENT: Final = 512
"""Times that are kept one by one, for durations."""

_FRESH: Final = 4096
"""Notes that are put in order at once."""

_ALIKE: Final = 64
"""Values with the same beginning that are looked at, the latest ones."""


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
        """By their first four bytes."""
        self._tails: dict[bytes, list[bytes]] = {}
        """By their last four bytes."""
        self._floats: OrderedDict[float, None] = OrderedDict()
        self._texts: OrderedDict[str, None] = OrderedDict()
        self._text_heads: Heads[str, None] = Heads()
        at_fork.in_child(self._forked)

    def _forked(self) -> None:
        # The thread that held the lock is not in this process.
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
        """The program has got something random: bytes, a number, a text, or a list that begins so."""
        if isinstance(value, list | tuple) and value:
            value = cast("Sequence[object]", value)[0]
        if isinstance(value, bytes | bytearray):
            self.note_bytes(bytes(value))
        elif isinstance(value, str):
            self.note_text(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            self.note_number(value)

    def note_time(self, time_ns: int, offset_s: int | None = None) -> None:
        """The program has read a clock, whichever, at ``time_ns`` since the epoch, in virtual time.

        Of clocks with an arbitrary zero too: durations are differences of these. ``offset_s``: seconds
        east of UTC, where the program asked for the time in a zone. UTC and the local zone are known.
        """
        self._fresh_times.append(time_ns)
        if offset_s:
            self._offsets_s[offset_s] = None
        if len(self._fresh_times) >= _FRESH:
            self._fold(wait=False)

    def note_count(self, count_ns: int) -> None:
        """What a clock with an arbitrary zero said; after `note_time` for the same read."""
        self._fresh_counts.append(count_ns)
        if len(self._fresh_counts) >= _FRESH:
            self._fold(wait=False)

    def note_bytes(self, data: bytes) -> None:
        """The program has drawn bytes: of the system, or the 16 of a UUID.

        Recognised are all of them, their beginning and their end: in hex, as UUID of version 4 or as it
        is, in base64 and base64url, and as a whole number. Kept are draws of 4 to 4,096 bytes.
        """
        if SHORTEST_BYTES <= len(data) <= LONGEST_BYTES:
            self._note(bytes(data))

    def note_number(self, number: float, bits: int | None = None) -> None:
        """The program has drawn a number. ``bits``: how many random bits it has, by default its own.

        A whole number of fewer than 32 random bits is not kept: it could stand in a request by chance,
        as an index or a count does. Of floats those are recognised that have eight digits or more.
        """
        if isinstance(number, float):
            if math.isfinite(number):
                self._note(number)
            return
        size = max(number.bit_length(), bits or 0)
        if number >= 0 and size >= SHORTEST_BYTES * 8:
            self.note_bytes(number.to_bytes((size + 7) // 8, "big"))

    def note_text(self, text: str) -> None:
        """The program has got a random text, as `tempfile` makes names. Kept are those of letters,
        digits, ``_`` and ``-`` with eight characters or more; it is recognised whole."""
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
        """Whether just this number was drawn."""
        return number in self._floats

    def text_at(self, text: str, at: int) -> int | None:
        """Where a random text ends that stands in ``text`` at ``at``."""
        with self._lock:
            found = self._text_heads.at(text, at)
        return found[0][0] if found else None

    def has_time(self, first_ns: int, past_ns: int) -> bool:
        """Whether a clock was read from ``first_ns`` until before ``past_ns``, since the epoch."""
        with self._lock:
            return self._times.holds(first_ns, past_ns)

    def has_time_of_day(self, first_ns: int, past_ns: int) -> bool:
        """The same for times since midnight in UTC."""
        with self._lock:
            return self._times.holds_of_day(first_ns, past_ns)

    def has_count(self, first_ns: int, past_ns: int) -> bool:
        """Whether a clock with an arbitrary zero said something in between."""
        with self._lock:
            return self._counts.holds(first_ns, past_ns)

    def has_duration(self, duration_ns: float, around_ns: float) -> bool:
        """Whether two of the last reads are so far apart, ``around_ns`` more or less."""
        with self._lock:
            times = sorted(self._recent)
        # Whole numbers: a float of so many nanoseconds is exact to a quarter of a microsecond.
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
        """Zones in which times may be written that do not say their own: seconds east of UTC."""
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
        """Put in order what was noted until now, so that it is found."""
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
            pass  # a finalizer of this thread took the last one
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
