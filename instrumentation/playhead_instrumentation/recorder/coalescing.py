"""A sink that joins repeated reads and wake-ups, as of a polling loop, into one fact.

Reads of clocks and timer ends are held until another fact is appended, and are written before it: no
effect or answer is on the tape before the values that the program had read. The number of held items
and their age are bounded.
"""

from __future__ import annotations

import _thread
import operator
import time
from collections import deque
from typing import Any, Final, cast

from playhead_core.facts import Delivery, ExchangeId, Fact
from playhead_core.tape import coalesced
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import at_fork

MOST: Final = 1_000
"""Maximum number of held reads and timer ends."""

LONGEST_NS: Final = 1_000_000_000
"""Maximum age of the first held item; an item that comes later flushes first."""

WAKE: Final = "wake/"
"""Prefix of the kinds of timer ends; kinds of reads begin with their boundary."""

_now_ns: Final = time.time_ns


class Coalescing:
    """A `Sink` in front of another: many equal items in a row become one fact."""

    # Not a Python function: each exchange reads it several times.
    instance: bytes = cast(Any, property(operator.attrgetter("_sink.instance")))
    """See `Sink.instance`."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._renew()
        at_fork.in_child(self._renew)

    def _renew(self) -> None:
        # A native lock: the scheduler does not see it. Reentrant: a finalizer may append.
        self._lock = _thread.RLock()
        self._held: deque[tuple[tuple[int, str], int, Any]] = deque()
        self._since_ns = 0

    def append(self, fact: Fact) -> int:
        """See `Sink.append`. Held items are written first."""
        self.flush()
        return self._sink.append(fact)

    def read(self, lane: int, kind: str, value: bytes) -> None:
        """Hold a read of a clock. The lane is already declared. ``value``: MessagePack."""
        self._hold((lane, kind), value)

    def wake(self, id: ExchangeId, at: Delivery) -> None:
        """Hold a wait that ended because its time was over. The lane is already declared."""
        self._hold((id.lane, WAKE + id.kind), (id, at))

    def flush(self) -> None:
        """Write the held items to the tape."""
        with self._lock:
            if not self._held:
                return
            runs: dict[tuple[int, str], tuple[list[int], list[Any]]] = {}
            while self._held:
                key, now_ns, said = self._held.popleft()
                times_ns, all_said = runs.setdefault(key, ([], []))
                times_ns.append(now_ns)
                all_said.append(said)
            for (lane, kind), (times_ns, all_said) in runs.items():
                if kind.startswith(WAKE):
                    self._sink.append(coalesced.wakes(times_ns, all_said))
                else:
                    self._sink.append(coalesced.reads(lane, kind, times_ns, all_said))

    def _hold(self, key: tuple[int, str], said: Any) -> None:
        now_ns = _now_ns()
        held = key, now_ns, said
        if not self._held:
            self._since_ns = now_ns
        elif len(self._held) >= MOST or not 0 <= now_ns - self._since_ns < LONGEST_NS:
            self.flush()
            self._since_ns = now_ns
        self._held.append(held)
