"""Ends of sleeps, timers and timeouts.

An end by time is a delivery and a fact with an id (lane, kind, number). A wait that was ended earlier,
or a cancelled timer, has none. A recording lets real time pass. A replay does not: a wait that ended by
time on the tape ends at its delivery, any other waits until it is ended.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final

from playhead_core.facts import Delivery, ExchangeId, Fact
from playhead_core.process.own_messages import Log
from playhead_core.tape.protocols import Sink
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.coalescing import Coalescing
from playhead_instrumentation.recorder.gate import Gate, Permit
from playhead_instrumentation.recorder.reads import Reads
from playhead_instrumentation.scheduler.permit_waits import Waiting
from playhead_instrumentation.scheduler.threads import THREADS, in_program, is_of_program
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)


class Wakes:
    """Gives ids to waits with a time limit, and records their ends. Usable from any thread."""

    def __init__(
        self,
        sink: Sink,
        gate: Gate,
        reads: Reads,
        declare: Callable[[lanes.Lane], None],
        dues: Mapping[ExchangeId, Delivery] | None = None,
        *,
        goes_on: bool = False,
        kept: bool = True,
    ) -> None:
        """``dues``: deliveries of the ends on the played tape; None: there is no tape.

        ``goes_on``: a wait that is not on the tape ends in real time (fork). ``kept``: whether ends are
        recorded.
        """
        self.gate: Final = gate
        self.reads: Final = reads
        self._sink = sink
        self._declare = declare
        self._dues = dues
        self._goes_on = goes_on
        self._kept = kept
        self._instance = sink.instance

    @property
    def plays(self) -> bool:
        """Whether there is a tape."""
        return self._dues is not None

    def open(self, kind: str, lane: lanes.Lane, after_s: float) -> Wake:
        """Open the next wait of its kind in ``lane``; it ends after ``after_s`` unless ended before."""
        id = ExchangeId(lane.hash, kind, lane.next_ordinal(kind))
        # The child of a fork has its own tape; ``dues`` is of the parent's.
        live = self._dues is None or self._sink.instance != self._instance
        live = live or (self._goes_on and id not in (self._dues or {}))
        return Wake(self, lane, id, live, None if live else (self._dues or {}).get(id), after_s)

    def forget(self) -> None:
        """Ignore the tape from now on (a fork that has left it)."""
        if self._goes_on:
            self._dues = None

    def close(self) -> None:
        """Stop handling waits: they are real from now on."""
        keep(None)

    def over(self, lane: lanes.Lane, id: ExchangeId, at: Delivery | None) -> None:
        """Record that a wait ended by time."""
        if not self._kept:
            return
        try:
            if lane.declared_on != self._sink.instance:
                self._declare(lane)
            if at is not None and isinstance(self._sink, Coalescing):
                self._sink.wake(id, at)
                return
            self._sink.append(Fact(REAL.time_ns(), id.lane, e.PLAYHEAD_WAKE, exchange=id, delivery=at))
        except Exception:
            log.debug("playhead could not record the end of %s", id, exc_info=True)

    def spun(self, at: Delivery, ticks: int) -> None:
        """Record that an event loop had spun for ``ticks`` when ``at`` was let in."""
        attributes = {a.PLAYHEAD_SPIN_BATCH: at.batch, a.PLAYHEAD_SPIN_TICKS: ticks}
        lane = lanes.MAIN.hash
        self._sink.append(Fact(REAL.time_ns(), lane, e.PLAYHEAD_SPIN, attributes=attributes))

    def permit_lost(self, place: int, how: str) -> None:
        """A thread is not waited for any more: from here on it is chance when it does what it does."""
        thread = THREADS.get(place)
        name = f"thread {place}" if thread is None else thread.name
        attributes = {a.PLAYHEAD_TURN_THREAD: name, a.PLAYHEAD_TURN_HOW: how}
        lane = lanes.MAIN.hash
        try:
            self._sink.append(Fact(REAL.time_ns(), lane, e.PLAYHEAD_TURN_LOST, attributes=attributes))
        except Exception:
            log.debug("playhead could not record that a permit was lost", exc_info=True)


class Wake:
    """One sleep, timer or wait with a timeout."""

    __slots__ = ("_lane", "_wakes", "after_s", "due", "id", "live")

    def __init__(
        self,
        wakes: Wakes,
        lane: lanes.Lane,
        id: ExchangeId,
        live: bool,
        due: Delivery | None,
        after_s: float,
    ) -> None:
        self.id = id
        self.live = live
        """Whether real time passes before it arrives at the gate."""
        self.due = due
        self.after_s = after_s
        self._wakes = wakes
        self._lane = lane

    def waiting(self) -> Waiting | None:
        """The permit for `comes_first`; None: the gate holds nothing back and real time passes."""
        permit = self.ahead()
        if permit is not None:
            self.waits(permit, self.after_s)
        return permit

    def ahead(self) -> Waiting | None:
        """The same, if it is not certain yet that the thread will wait."""
        permit = self.permit()
        if not isinstance(permit, Waiting):
            return None
        permit.opened.acquire()
        return permit

    def waits(self, permit: Waiting, left_s: float) -> None:
        """Start a wait of ``left_s``, perhaps again. Call it before telling the ledger."""
        if self.live:
            self.after_s = left_s
        else:
            permit.arrives()

    @property
    def in_order(self) -> bool:
        """Whether its end has a place in the order: on the tape, or where nothing else keeps one."""
        return self.due is not None or (self.live and self._wakes.gate.level == "causal")

    def permit(self) -> Permit:
        """The permit of its end. If it is live, ask for it when the time is over."""
        gate = self._wakes.gate
        if self.live or self.due is not None:
            return gate.arrive(self.due, self.id)
        return gate.never(self.id, self.after_s)

    def passed(self) -> bool:
        """The time is over: wait for the permit. False if recording has ended and the wait has not."""
        permit = self.permit()
        at = permit.wait()
        if getattr(permit, "left_alone", False):
            return False
        self.over(at)
        return True

    def comes_first(self, permit: Waiting) -> bool:
        """Block until the wait ends by time, or another thread releases `Waiting.opened` (held here).

        Returns whether it ended by time. The thread is already marked as waiting in the ledger; call
        `ended` when it continues.
        """
        if self.live:
            if permit.opened.acquire(timeout=self.after_s):
                return False
            permit.arrives()
        passed = permit.comes_first()
        if permit.left_alone:  # recording has ended
            return not permit.opened.acquire(timeout=self.after_s)
        return passed

    def ended(self, permit: Waiting, before: bool) -> None:
        """The wait ended, by time or ``before`` its time."""
        if before:
            self.called_off()
        elif not permit.left_alone:
            if not self.live:
                skip_time(self.after_s)
            self.over(permit.due)

    def over(self, at: Delivery | None) -> None:
        """Record the end by time, at this delivery."""
        self._wakes.over(self._lane, self.id, at)

    def called_off(self) -> None:
        """The wait was ended before its time: drop its delivery."""
        if self.due is not None:
            self._wakes.gate.skip((self.due,))


def skip_time(after_s: float) -> None:
    """So much time has passed for this thread, at replay, in none; where the tape does not say."""
    AHEAD.s += after_s + 1e-6


IN_ORDER = ("exchanges", "strict")

kept: Wakes | None = None
"""What ends by time goes through these now; None: through none. To be read as ``timer_ends.kept``."""


class _Ahead(threading.local):
    """By how much the clock of a thread is ahead of the world's, at a replay."""

    s = 0.0


AHEAD: Final = _Ahead()
"""Of the thread that asks: what it has not waited for, in seconds."""


def keep(wakes: Wakes | None) -> None:
    """From now on what ends by time goes through these; None: through none."""
    global kept
    kept = wakes


def opened(kind: str, after_s: float = 0.0) -> Wake | None:
    """What ends by time in this lane; None: it is not the program's, or nothing is recorded."""
    if kept is None or RUNTIME.hub is not None or not in_program():
        return None  # among greenlets, the timers of their hub end all waits
    return _opened(kept, kind, after_s)


def opened_in_hub(kind: str, after_s: float) -> Wake | None:
    """The same for a timer of a hub of greenlets."""
    thread = THREADS.get(threading.get_ident())  # of gevent: that of the greenlet, if it is a thread
    if kept is None or not (thread is None or is_of_program(thread)):
        return None
    return _opened(kept, kind, after_s)


def _opened(wakes: Wakes, kind: str, after_s: float) -> Wake | None:
    lane = lanes.current()
    return None if lane is lanes.UNRECORDED or lane is lanes.GC else wakes.open(kind, lane, after_s)


def opened_in_order(kind: str, after_s: float) -> Wake | None:
    """The same of what ends as recorded only where one thread runs at a time, or time is virtual."""
    wakes = kept
    return opened(kind, after_s) if wakes is not None and wakes.gate.level in IN_ORDER else None
