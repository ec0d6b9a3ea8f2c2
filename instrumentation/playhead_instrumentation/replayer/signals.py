"""Delivers the signals of a tape to the main thread of a replay.

A signal that came while the main thread waited enters like any other arrival: in the order of the tape,
when everything is idle. A signal that came while the thread computed comes when it executes the recorded
line again, after the last delivery to it; at the latest when it waits.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, Final, NamedTuple

from playhead_core.facts import Delivery, ExchangeId
from playhead_core.process.interpreter_threads import Bell, Thread, make_lock
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_instrumentation.libraries.signals import is_handled, place_of
from playhead_instrumentation.patching import lanes, unpatched
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.scheduler.gates.tape import TapeGate
from playhead_instrumentation.scheduler.permit_waits import SIGNAL, Waiting
from playhead_semconv import attributes as a
from playhead_semconv import events as e

BEGINS_S: Final = 5.0
"""Seconds within which the main thread begins to run the handler of a signal that was sent."""

AGAIN_S: Final = 0.1
"""Seconds after which a signal whose handler has not begun is sent again.

A signal that arrives just before the main thread blocks does not end the wait: the interpreter only sets
a flag, and runs the handler after the wait. Signals that arrive twice are dropped (`came_again`).
"""

LOOK_S: Final = 0.1
"""Seconds between checks whether the next signal is due."""


class RecordedSignal(NamedTuple):
    """A signal on the tape."""

    number: int
    due: Delivery
    place: str
    """Where the main thread computed; empty: it waited."""
    after: Delivery | None
    """What was delivered last in the interrupted lane; None: nothing."""
    seq: int
    """Number of its fact."""


class PlayedSignals:
    """The signals of one tape. Usable from any thread."""

    def __init__(self, gate: TapeGate, recorded: list[RecordedSignal]) -> None:
        self._gate = gate
        self._pending = deque(recorded)
        self._next: _Interrupt | None = None
        """The waiter of the first pending signal."""
        self._sent: _Interrupt | None = None
        """That of the signal that was sent to the main thread and whose handler has not begun."""
        self._begun: Any = None
        """Released when the handler of a signal begins that another thread has sent."""
        self._number, self._again = 0, 0
        """The last signal that was sent, and how often it was repeated."""
        self._paused: Permit | None = None
        """The wait of a `signal.pause`."""
        if recorded:
            gate.on_entered = self._entered
            self._expect_next()
            Thread(f"{lanes.OWN_THREADS}signals", self._look).start()

    def expects(self, number: int | None = None) -> bool:
        """Whether the tape has further signals, or further ones of this number."""
        return any(number in (None, one.number) for one in self._pending)

    def takes(self, number: int) -> Delivery | None:
        """The handler of a signal begins: its delivery on the tape; None: the tape has not sent it."""
        sent = self._sent
        if sent is None or sent.recorded.number != number:
            return None
        self._sent = None
        begun, self._begun = self._begun, None
        if begun is not None:
            begun.release()
        return sent.due

    def came_again(self, number: int) -> bool:
        """Whether the handler is called for a repeated signal whose first one has been handled."""
        if not self._again or number != self._number:
            return False
        self._again -= 1
        return True

    def began(self, at: Delivery | None) -> None:
        """The fact of the handler is on the tape. ``at``: its delivery on the played tape."""
        if at is not None and self._next is not None:
            self._gate.went_on(self._next)
            self._drop()

    def ended(self) -> None:
        """A handler has ended."""
        if self._paused is not None:
            self._paused.give_up()

    def pause(self) -> None:
        """Wait until a handler has ended."""
        self._paused = self._gate.never(ExchangeId(lanes.current().hash, SIGNAL, 0))
        try:
            self._paused.wait()
        finally:
            self._paused = None

    def forget(self) -> None:
        """The program has left the tape: its further signals do not come."""
        dues = [one.due for one in self._pending]
        self._pending.clear()
        if self._next is not None:
            self._gate.leave(self._next)
        self._gate.skip(dues)

    def _look(self) -> None:
        """Let the next signal in when it is due, also if no thread waits at the gate."""
        pause = Bell()
        while self._pending and not self._gate.closed():
            pause.wait(LOOK_S)
            self._gate.advance()

    def _expect_next(self) -> None:
        self._next = None
        if not self._pending:
            return
        recorded = self._pending[0]
        self._next = _Interrupt(self._gate, recorded, self._send)
        if recorded.place and recorded.after is None:
            self._watch_for(recorded)
        self._gate.enter(self._next)

    def _drop(self) -> None:
        self._pending.popleft()
        self._expect_next()

    def _entered(self, waiter: Waiting) -> None:
        """``waiter`` was let in and continues in this thread."""
        recorded = self._pending[0] if self._pending else None
        if recorded is not None and recorded.place and waiter.due == recorded.after:
            self._watch_for(recorded)

    def _watch_for(self, recorded: RecordedSignal) -> None:
        if threading.get_ident() == threading.main_thread().ident:
            _LineWatch(recorded.place, lambda: self._raise(recorded))

    def _raise(self, recorded: RecordedSignal) -> None:
        """The main thread is where the signal came when it computed."""
        interrupt = self._next
        if interrupt is None or interrupt.recorded is not recorded or interrupt.came:
            return
        self._gate.leave(interrupt)
        self._gate.skip((recorded.due,))
        if is_handled(recorded.number):
            self._sent = interrupt
            unpatched.raise_signal(recorded.number)

    def _send(self) -> None:
        """The next signal gets its permit. Called with the lock of the gate, from any thread."""
        if not self._gate.closed():
            Thread(f"{lanes.OWN_THREADS}signal", self._interrupt).start()

    def _interrupt(self) -> None:
        interrupt = self._next
        if interrupt is None or not is_handled(interrupt.recorded.number):
            if interrupt is not None:
                self._gate.went_on(interrupt)
                self._drop()
            return
        main, begun, number = threading.main_thread().ident, make_lock(), interrupt.recorded.number
        begun.acquire()
        # With the lock of the gate, so that the main thread does not hold it when its handler begins.
        with self._gate.lock:
            self._sent, self._begun, self._number, self._again = interrupt, begun, number, 0
            unpatched.pthread_kill(main, number)
            while not begun.acquire(timeout=AGAIN_S) and self._again < BEGINS_S / AGAIN_S:
                self._again += 1
                unpatched.pthread_kill(main, number)


class _Interrupt(Waiting):
    """The permit of a signal. No thread waits for it: it is sent to the main thread."""

    __slots__ = ("_send", "recorded")

    def __init__(self, gate: TapeGate, recorded: RecordedSignal, send: Callable[[], None]) -> None:
        super().__init__(gate, recorded.due, ExchangeId(lanes.SIGNALS.hash, SIGNAL, 0))
        self.place = threading.main_thread().ident or 0
        self.recorded: Final = recorded
        self._send = send

    @property
    def sudden(self) -> bool:
        """Yes: what the program does is not what it waits for."""
        return True

    def let_through(self) -> bool:
        """Send the signal."""
        self._let_in = self.came = True
        self._send()
        return True


class _LineWatch:
    """Traces the main thread until it executes a line, then calls a function there.

    What that function raises comes from the line, and the interpreter then forgets the trace function.
    So a watch that begins meanwhile begins with the next call that the program makes.
    """

    _reaching = False
    """Whether a watch has reached its line, and calls its function."""

    def __init__(self, place: str, reached: Callable[[], None]) -> None:
        self._code, _, line = place.rpartition(":")
        self._line = int(line)
        self._reached = reached
        if sys.gettrace() is not None or sys.getprofile() is not None:
            return  # a debugger traces: the signal comes at the next wait
        if _LineWatch._reaching:
            sys.setprofile(self._begin)
        else:
            self._begin(sys._getframe())  # pyright: ignore[reportPrivateUsage]

    def _begin(self, frame: FrameType | None, *_: Any) -> None:
        sys.setprofile(None)
        while frame is not None:
            if self._is_there(frame):
                frame.f_trace = self._trace
            frame = frame.f_back
        sys.settrace(self._trace)

    def _is_there(self, frame: FrameType) -> bool:
        return place_of(frame).rpartition(":")[0] == self._code

    def _trace(self, frame: FrameType, event: str, _: Any) -> Any:
        if event == "call":
            return self._trace if self._is_there(frame) else None
        if event == "line" and frame.f_lineno == self._line:
            sys.settrace(None)
            frame.f_trace = None
            _LineWatch._reaching = True
            try:
                self._reached()
            finally:
                _LineWatch._reaching = False
            return None
        return self._trace


def signals_of(tape: IndexedTape) -> Iterator[RecordedSignal]:
    """The signals on ``tape``, in order."""
    if next(tape.named(e.PLAYHEAD_INTERRUPT), None) is None:
        return
    delivered: dict[int, Delivery] = {}
    for fact in tape.facts():
        if fact.name == e.PLAYHEAD_INTERRUPT and fact.delivery is not None:
            number = _number_of(str(fact.attributes[a.PLAYHEAD_INTERRUPT_SIGNAL]))
            place = str(fact.attributes.get(a.PLAYHEAD_INTERRUPT_PLACE, ""))
            if not place.rpartition(":")[2].isdecimal():
                place = ""
            if number is not None:
                yield RecordedSignal(number, fact.delivery, place, delivered.get(fact.lane), fact.seq)
        elif fact.delivery is not None:
            delivered[fact.lane] = fact.delivery


def _number_of(name: str) -> int | None:
    """The number of a signal here; None: this system has none of that name."""
    if name.isdecimal():
        return int(name) if int(name) in signal.valid_signals() else None
    found = signal.Signals.__members__.get(name)
    return None if found is None else int(found)
