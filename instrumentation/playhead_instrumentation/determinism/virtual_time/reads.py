"""Ambient reads of a replay whose tape holds no clock: virtual time, and entropy that is remembered.

What the program is given is noted: a request may differ from the recorded one in such values, and in
nothing else. What the tape does hold, because its boundary was chosen, it answers as in any replay.
Nothing of this is put on the tape of the replay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

from playhead_instrumentation.determinism.virtual_time.clocks import maker
from playhead_instrumentation.determinism.virtual_time.time import READ_NS, VirtualTime
from playhead_instrumentation.driver.reads import Reads
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.runtime.real_clock import REAL
from playhead_semconv.tape.protocols import Sink

if TYPE_CHECKING:
    from playhead_instrumentation.determinism.volatile import HandedOut
    from playhead_semconv.tape.indexed_tapes import IndexedTape


T = TypeVar("T")


class VirtualReads(Reads):
    """Safe from any thread and in a finalizer."""

    def __init__(
        self,
        sink: Sink,
        declare: Callable[[lanes.Lane], None],
        tape: IndexedTape,
        time: VirtualTime,
        handed: HandedOut,
        recorded: Collection[str],
    ) -> None:
        """``time``: now. ``handed``: told what the program gets. ``recorded``: names of boundaries."""
        super().__init__(sink, declare, tape)
        self._time = time
        self._handed = handed
        self._boundaries = frozenset(recorded)
        self._kinds = {kind for _, kind in self._recorded}
        self._over = False

    def forget(self) -> None:
        """From now on the world answers; what counts from an arbitrary zero goes on."""
        super().forget()
        self._over = True

    def drew(self, value: T) -> T:
        """The program has drawn ``value`` of the shared generator: threads may have drawn otherwise."""
        self._handed.note(value)
        return value

    def ahead(self, kind: str) -> Any:
        """How far the clock of the replay is ahead of the real one, in seconds."""
        if self._is_held(kind):
            return super().ahead(kind)
        return self._time.moment().counted_ns / 1e9 - REAL.monotonic()

    def _unrecorded(self, lane: lanes.Lane, kind: str, live: Callable[[], Any], since: bool) -> Any:
        if self._is_held(kind):
            return super()._unrecorded(lane, kind, live, since)
        made = maker(kind)
        if made is None:
            value = live()
            if kind.startswith("entropy/"):
                self._handed.note(value)
            return value
        if self._over and not since:
            return live()
        at = self._time.moment(READ_NS)
        self._handed.note_time(at.now_ns)
        self._handed.note_count(at.counted_ns)
        return made(at)

    def _is_held(self, kind: str) -> bool:
        """Whether the tape has what is read of this kind."""
        return kind.partition("/")[0] in self._boundaries or kind in self._kinds
