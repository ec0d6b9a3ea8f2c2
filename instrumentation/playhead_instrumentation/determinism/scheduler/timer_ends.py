"""Sleeps, timers and timeouts: what ends because time passes.

The end is a delivery, and a fact: who (lane, kind, how many before it), and when. Only what ended by
time has one; a wait that somebody ended before, or a timer that was cancelled, has none. While recording
time passes in the world. At replay none does: what ended by time ends at its delivery, what did not
waits until somebody ends it.
"""

from __future__ import annotations

import functools
import importlib
import logging
import queue
import sys
import threading
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final

from playhead_instrumentation.determinism.scheduler.turn_waits import Waiting
from playhead_instrumentation.driver.coalescing import Coalescing
from playhead_instrumentation.driver.gate import Gate, Turn
from playhead_instrumentation.driver.reads import Reads
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.runtime.patching import Patches, required
from playhead_instrumentation.runtime.real_clock import REAL
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import Delivery, ExchangeId, Fact
from playhead_semconv.tape.protocols import Sink

log = logging.getLogger(__name__)


class Wakes:
    """Names what ends by time, and puts the end on the tape. Safe from any thread."""

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
        """``dues``: when what ended by time ended, on the tape that is played; None: none is.

        ``goes_on``: what is not on it ends by time in the world. ``kept``: whether the ends are put on
        the tape.
        """
        self.gate: Final = gate
        self.reads: Final = reads
        self._sink = sink
        self._declare = declare
        self._dues = dues
        self._goes_on = goes_on
        self._kept = kept
        self._instance = sink.instance

    def open(self, kind: str, lane: lanes.Lane, after_s: float) -> Wake:
        """The next of its kind in ``lane``, which ends in ``after_s`` if nobody ends it before."""
        id = ExchangeId(lane.hash, kind, lane.next_ordinal(kind))
        # The child of a fork has a tape of its own, which is not this one.
        live = self._dues is None or self._sink.instance != self._instance
        live = live or (self._goes_on and id not in (self._dues or {}))
        return Wake(self, lane, id, live, None if live else (self._dues or {}).get(id), after_s)

    def forget(self) -> None:
        """From now on the tape says nothing."""
        if self._goes_on:
            self._dues = None

    def close(self) -> None:
        """Nothing ends by time through these any more."""
        keep(None)

    def over(self, lane: lanes.Lane, id: ExchangeId, at: Delivery | None) -> None:
        """It ended by time."""
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
        """An event loop had spun for so many ticks when this was let in."""
        attributes = {a.PLAYHEAD_SPIN_BATCH: at.batch, a.PLAYHEAD_SPIN_TICKS: ticks}
        lane = lanes.MAIN.hash
        self._sink.append(Fact(REAL.time_ns(), lane, e.PLAYHEAD_SPIN, attributes=attributes))

    def turn_lost(self, place: int, how: str) -> None:
        """A thread is not waited for any more: from here on it is chance when it does what it does."""
        thread = _threads.get(place)
        name = f"thread {place}" if thread is None else thread.name
        attributes = {a.PLAYHEAD_TURN_THREAD: name, a.PLAYHEAD_TURN_HOW: how}
        lane = lanes.MAIN.hash
        try:
            self._sink.append(Fact(REAL.time_ns(), lane, e.PLAYHEAD_TURN_LOST, attributes=attributes))
        except Exception:
            log.debug("playhead could not record that a turn was lost", exc_info=True)


_threads: dict[int, threading.Thread] = vars(threading)["_active"]


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
        """Whether time passes in the world before it arrives at the gate."""
        self.due = due
        self.after_s = after_s
        self._wakes = wakes
        self._lane = lane

    def waiting(self) -> Waiting | None:
        """Its turn, for `comes_first`; None: nothing is held back, and time passes in the world."""
        turn = self.ahead()
        if turn is not None:
            self.waits(turn, self.after_s)
        return turn

    def ahead(self) -> Waiting | None:
        """The same, where it may yet turn out that nobody waits."""
        turn = self.turn()
        if not isinstance(turn, Waiting):
            return None
        turn.opened.acquire()
        return turn

    def waits(self, turn: Waiting, left_s: float) -> None:
        """It waits, perhaps again, for so long. Before anybody is told that this thread does."""
        if self.live:
            self.after_s = left_s
        else:
            turn.arrives()

    def turn(self) -> Turn:
        """Its turn: where it is live, to be asked for when the time is over."""
        gate = self._wakes.gate
        if self.live or self.due is not None:
            return gate.arrive(self.due, self.id)
        return gate.never(self.id, self.after_s)

    def passed(self) -> bool:
        """The time is over: wait for the turn. False: nothing is recorded any more, and it is not."""
        turn = self.turn()
        at = turn.wait()
        if getattr(turn, "left_alone", False):
            return False
        self.over(at)
        return True

    def comes_first(self, turn: Waiting) -> bool:
        """Block until it ends by time, or somebody releases `Waiting.opened`, which is held.

        Whether it ended by time. The thread has told the books that it waits; the end is to be told by
        `ended`, when it goes on.
        """
        if self.live:
            if turn.opened.acquire(timeout=self.after_s):
                return False
            turn.arrives()
        passed = turn.comes_first()
        if turn.left_alone:  # nothing is recorded any more
            return not turn.opened.acquire(timeout=self.after_s)
        return passed

    def ended(self, turn: Waiting, before: bool) -> None:
        """It ended, by time or ``before``."""
        if before:
            self.called_off()
        elif not turn.left_alone:
            if not self.live:
                skip_time(self.after_s)
            self.over(turn.due)

    def over(self, at: Delivery | None) -> None:
        """It ended by time, at this delivery."""
        self._wakes.over(self._lane, self.id, at)

    def called_off(self) -> None:
        """Somebody ended it before."""
        if self.due is not None:
            self._wakes.gate.skip((self.due,))


def skip_time(after_s: float) -> None:
    """So much time has passed for this thread, at replay, in none; where the tape does not say."""
    _thread.ahead_s = getattr(_thread, "ahead_s", 0.0) + after_s + 1e-6


def waited_s() -> float:
    """The clock by which queues, conditions and futures know how much of a timeout is left."""
    wakes, caller = _kept, sys._getframe(1).f_back  # pyright: ignore[reportPrivateUsage]
    if wakes is None or not _is_program():
        return REAL.monotonic()
    if caller is not None and caller.f_code.co_name == "_adjust_thread_count":
        return REAL.monotonic()  # an executor that does not wait, and asks twice per job
    return wakes.reads.read("clock/waited", _monotonic, since=True)


def _monotonic() -> float:
    return REAL.monotonic() + getattr(_thread, "ahead_s", 0.0)


def watch(patches: Patches, session: object = None) -> None:
    """Have the standard library ask `waited_s` while it waits for others."""
    for module, name in ((threading, "_time"), (queue, "time")):
        patches.attempt(
            f"{module.__name__}.{name}", functools.partial(_put_clock, patches, module, name)
        )
    patches.attempt("concurrent.futures.time", functools.partial(_hook_futures, patches))


def _put_clock(patches: Patches, module: Any, name: str) -> None:
    if required(module, name) is not waited_s:
        patches.put(module, name, waited_s)


def _hook_futures(patches: Patches) -> None:
    futures: Any = importlib.import_module("concurrent.futures._base")
    if required(required(futures, "time"), "monotonic") is not waited_s:
        patches.put(futures, "time", SimpleNamespace(monotonic=waited_s))


IN_ORDER = ("exchanges", "strict")

_kept: Wakes | None = None
_thread = threading.local()
_threads: dict[int, threading.Thread] = vars(threading)["_active"]
"""As `threading.current_thread` looks them up; it makes one where there is none."""


def keep(wakes: Wakes | None) -> None:
    """From now on what ends by time goes through these; None: through none."""
    global _kept
    _kept = wakes


def opened(kind: str, after_s: float = 0.0) -> Wake | None:
    """What ends by time in this lane; None: it is not the program's, or nothing is recorded."""
    wakes = _kept
    if wakes is None or not _is_program():
        return None
    lane = lanes.current()
    return None if lane is lanes.SHADOW or lane is lanes.GC else wakes.open(kind, lane, after_s)


def opened_in_order(kind: str, after_s: float) -> Wake | None:
    """The same of what ends as recorded only where one thread runs at a time, or time is virtual."""
    wakes = _kept
    return opened(kind, after_s) if wakes is not None and wakes.gate.level in IN_ORDER else None


def _is_program() -> bool:
    try:
        return _thread.is_program
    except AttributeError:
        thread = _threads.get(threading.get_ident())
        found = _thread.is_program = thread is not None and is_of_program(thread)
        return found


POLLER = "PollerCompletionQueue._poll_wrapper"
"""What a thread of `grpc.aio` runs that only tells an event loop that something came."""


def is_of_program(thread: threading.Thread) -> bool:
    """Not playhead's own threads, and not those that export telemetry."""
    if thread.name.startswith(lanes.OWN_THREADS):
        return False
    target = getattr(thread, "_target", None)
    module = getattr(target, "__module__", None) or type(thread).__module__
    return not module.startswith("opentelemetry.") and getattr(target, "__qualname__", "") != POLLER
