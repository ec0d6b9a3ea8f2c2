"""Ambient reads of a replay whose tape holds no clock: virtual time, and entropy that is remembered.

Each value that the program gets is noted: a request may differ from the recorded one in such values and
in nothing else. Kinds that the tape does hold, because their boundary was chosen, it answers as in any
replay. None of these reads is put on the tape of the replay.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeVar

from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.replayer.virtual_time.clocks import maker
from playhead_instrumentation.replayer.virtual_time.time import READ_NS, VirtualTime

if TYPE_CHECKING:
    from playhead_core.tape.indexed_tapes import IndexedTape
    from playhead_instrumentation.replayer.volatile import HandedOut


T = TypeVar("T")


class VirtualReads(Reads):
    """Answers reads in virtual time. Safe from any thread and in a finalizer."""

    def __init__(
        self,
        sink: Sink,
        declare: Callable[[lanes.Lane], None],
        tape: IndexedTape,
        time: VirtualTime,
        handed: HandedOut,
        recorded: Collection[str],
    ) -> None:
        """``time``: the virtual clock. ``handed``: told each value that the program gets.

        ``recorded``: names of the recorded boundaries.
        """
        super().__init__(sink, declare, tape)
        self._time = time
        self._handed = handed
        self._boundaries = frozenset(recorded)
        self._kinds = {kind for _, kind in self._recorded}
        self._over = False

    def forget(self) -> None:
        """From now on the world answers. Clocks with an arbitrary zero continue in virtual time."""
        super().forget()
        self._over = True

    def drew(self, value: T) -> T:
        """Note a ``value`` drawn from the shared generator: the order of threads may have changed."""
        self._handed.note(value)
        return value

    def ahead(self, kind: str) -> Any:
        """How far the clock of the replay is ahead of the real clock, in seconds."""
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
        """Whether the tape holds reads of this kind."""
        return kind.partition("/")[0] in self._boundaries or kind in self._kinds
