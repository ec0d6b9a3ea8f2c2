"""A sink in which a loop that polls writes one fact for many turns.

Reads of clocks and ends by time are held until another fact comes, which is then behind them on the
tape: nothing that the program does to the world, or hears from it, is on the tape before what it had
read. What is held is bounded in number and in time.
"""

from __future__ import annotations

import _thread
import time
from collections import deque
from typing import Any, Final

from playhead_instrumentation.runtime import at_fork
from playhead_semconv.facts import Delivery, ExchangeId, Fact
from playhead_semconv.tape import coalesced
from playhead_semconv.tape.protocols import Sink

MOST: Final = 1_000
"""So many reads and ends are held."""

LONGEST_NS: Final = 1_000_000_000
"""Those that come later than this after the first one are not held with it."""

WAKE: Final = "wake/"
"""What the kinds of ends begin with here; those of reads begin with their boundary."""

_now_ns: Final = time.time_ns


class Coalescing:
    """See `Sink`; before it, what is said many times in a row becomes one fact."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink
        self._renew()
        at_fork.in_child(self._renew)

    def _renew(self) -> None:
        # A lock of C: no thread has a turn while it is held. Reentrant: a finalizer may append.
        self._lock = _thread.RLock()
        self._held: deque[tuple[tuple[int, str], int, Any]] = deque()
        self._since_ns = 0

    @property
    def instance(self) -> bytes:
        """See `Sink.instance`."""
        return self._sink.instance

    def append(self, fact: Fact) -> int:
        """See `Sink.append`. What is held goes before it."""
        self.flush()
        return self._sink.append(fact)

    def read(self, lane: int, kind: str, value: bytes) -> None:
        """A clock was read in a lane that is declared. ``value``: as MessagePack."""
        self._hold((lane, kind), value)

    def wake(self, id: ExchangeId, at: Delivery) -> None:
        """Something ended by time, in a lane that is declared."""
        self._hold((id.lane, WAKE + id.kind), (id, at))

    def flush(self) -> None:
        """Put on the tape what is held."""
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
