"""Record when signal handlers of the program ran; a replay runs them at the same points.

A handler runs in the main thread, at any instruction or within a wait. Each run is a fact with a
delivery, and happens in a lane of its own: requests of the handler are not part of the call that it
interrupts. In a replay `replayer.signals` sends the signal to the main thread for real, so that
everything that follows from one happens: waits continue, wakeup descriptors get their byte, event loops
run their callbacks. A replay sets no alarms, and other threads send no signals: the tape has the times.

A signal that the main thread sends to its own process is no event from outside: the replay sends it too.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import signal
import threading
from collections.abc import Callable, Generator
from types import FrameType
from typing import Any, Final, TypeAlias

from playhead_core.facts import Delivery, Fidelity
from playhead_core.process.interpreter_threads import Bell, Thread
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.patching import lanes, unpatched
from playhead_instrumentation.patching.attribution.owners import Owner, owner_of
from playhead_instrumentation.patching.patches import INNER, PATCHES, Patches, calls_handler
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session, current
from playhead_instrumentation.tracing.attempts import current_call

log = Log(__name__)

MEASURE: Final = frozenset(
    getattr(signal, name) for name in ("SIGPROF", "SIGVTALRM") if hasattr(signal, name)
)
"""Signals by which profilers measure processor time. They are not recorded."""

WAITING: Final = frozenset(
    (
        *("asyncio", "concurrent", "multiprocessing", "queue", "select", "selectors", "signal"),
        *("socket", "ssl", "subprocess", "threading"),
    )
)
"""Modules of the standard library whose functions wait."""

WRITERS: Final = ("playhead_exporter.spool.", "playhead_instrumentation.redaction.")
"""Modules that write the tape. They call no code of the program."""
LATER_S: Final = 0.001
"""Seconds after which a signal that interrupted our own code is sent again."""

_raised: Final[list[int]] = []
"""Signals that the main thread is sending to its own process."""


def watch(patches: Patches, session: Session) -> None:
    """Patch how the program sets handlers, timers and waits, and cover the handlers that are set."""
    patches.attempt("signals", _hook)


def _hook() -> None:
    PATCHES.around_all(signal, {"signal": _set, "getsignal": _get})
    around = {
        "raise_signal": _raises,
        "pthread_kill": _sends_to_thread,
        "setitimer": _sets_timer,
        "getitimer": functools.partial(_reads_timer, "signal/getitimer"),
        "alarm": functools.partial(_reads_timer, "signal/alarm"),
        "pause": _pauses,
        "sigwait": functools.partial(_awaits, signal.Signals, int),
        "sigwaitinfo": functools.partial(_awaits, _siginfo, list),
        "sigtimedwait": functools.partial(_awaits, _siginfo, list),
    }
    for name, layer in around.items():
        if hasattr(signal, name):
            PATCHES.around(signal, name, layer, order=INNER)
    PATCHES.around(os, "kill", _kills, order=INNER)
    if hasattr(os, "killpg"):
        PATCHES.around(os, "killpg", _kills_group, order=INNER)
    if threading.current_thread() is threading.main_thread():
        _cover()
        PATCHES.also(_uncover)


def _cover() -> None:
    for number in signal.valid_signals():
        handler = unpatched.getsignal(number)
        if callable(handler) and number not in MEASURE and not isinstance(handler, Handled):
            unpatched.signal(number, Handled(handler, _handle))


def _uncover() -> None:
    for number in signal.valid_signals():
        handler = unpatched.getsignal(number)
        if isinstance(handler, Handled) and threading.current_thread() is threading.main_thread():
            unpatched.signal(number, handler.handler)


def _set(set_handler: Any, number: Any, handler: Any, /) -> Any:
    if callable(handler) and number not in MEASURE and not getattr(handler, "playhead_handled", False):
        handler = Handled(handler, _handle)
    return _plain(set_handler(number, handler))


def _get(get_handler: Any, number: Any, /) -> Any:
    return _plain(get_handler(number))


def _plain(handler: Any) -> Any:
    return handler.handler if isinstance(handler, Handled) else handler


def _handle(handler: Handler, number: int, frame: FrameType | None) -> Any:
    session = current()
    if session is None or session.driver.ending or number in _raised:
        return handler(number, frame)
    played, permits = session.driver.signals, RUNTIME.permits
    sent = None if played is None else played.takes(number)
    if sent is None and played is not None and played.came_again(number):
        return None
    if sent is None and (_writes(frame) or (permits is not None and permits.is_held())):
        return _sends_again(number)
    while frame is not None and owner_of(frame.f_code.co_filename) is Owner.OURS:
        frame = frame.f_back
    waits = lanes.current() is lanes.UNRECORDED or _waits(frame)
    with contextlib.nullcontext() if permits is None else permits.interrupted():
        at = session.driver.gate.alone() if sent is None else sent
        fidelity = None if played is None else Fidelity.LIVE if sent is None else Fidelity.EXACT
        _record(session, number, None if waits else frame, at, fidelity)
        if played is not None:
            played.began(sent)
        try:
            with _in_lane_of_its_own(number):
                return handler(number, frame)
        finally:
            if played is not None:
                played.ended()


@contextlib.contextmanager
def _in_lane_of_its_own(number: int) -> Generator[None]:
    token = current_call.set(None)
    try:
        with lanes.In(lanes.SIGNALS.child(name_of(number))):
            yield
    finally:
        current_call.reset(token)


def _record(
    session: Session,
    number: int,
    frame: FrameType | None,
    at: Delivery | None,
    fidelity: Fidelity | None,
) -> None:
    try:
        place = "" if frame is None else place_of(frame)
        session.driver.signalled(name_of(number), place, at, fidelity)
    except Exception:
        log.debug("playhead could not record a signal", exc_info=True)


def name_of(number: int) -> str:
    """Return the name of a signal; its number if it has none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return str(number)


def _waits(frame: FrameType | None) -> bool:
    """Return whether the code that a signal interrupts waits, as far as that can be seen."""
    return frame is None or str(frame.f_globals.get("__name__")).partition(".")[0] in WAITING


def _writes(frame: FrameType | None) -> bool:
    """Return whether a signal interrupts code that writes the tape.

    What a handler raises there would not reach the program: an append stores a gap instead, and the
    replay knows no place for it.
    """
    while frame is not None and not str(frame.f_globals.get("__name__")).startswith(WRITERS):
        frame = frame.f_back
    return frame is not None


def _sends_again(number: int) -> None:
    """Send the signal again later: it interrupted our own code, which must not wait or be left."""
    Thread(f"{lanes.OWN_THREADS}signal", lambda: _sends_later(number)).start()


def _sends_later(number: int) -> None:
    Bell().wait(LATER_S)
    main, permits = threading.main_thread().ident, RUNTIME.permits
    if permits is None:
        unpatched.pthread_kill(main, number)
    else:
        permits.when_free(lambda: unpatched.pthread_kill(main, number))


def _sends(send: Callable[[], Any], number: int) -> Any:
    """Send a signal of the program to its own process."""
    if threading.get_ident() == threading.main_thread().ident:
        _raised.append(number)
        try:
            return send()
        finally:
            _raised.remove(number)
    session = current()
    played = None if session is None else session.driver.signals
    if played is not None and played.expects(number):
        return None
    return send()


def _raises(raise_signal: Any, number: int, /) -> Any:
    return _sends(lambda: raise_signal(number), number)


def _sends_to_thread(pthread_kill: Any, thread: int, number: int, /) -> Any:
    return _sends(lambda: pthread_kill(thread, number), number)


def _kills(kill: Any, pid: int, number: int) -> Any:
    if pid not in (0, unpatched.getpid()):
        return kill(pid, number)
    return _sends(lambda: kill(pid, number), number)


def _kills_group(killpg: Any, group: int, number: int) -> Any:
    if group not in (0, os.getpgrp()):
        return killpg(group, number)
    return _sends(lambda: killpg(group, number), number)


def _reads_timer(kind: str, timer: Any, *args: Any) -> Any:
    """Set or read a timer. A replay gets the recorded result and sets no timer."""
    session = recording()
    if session is None:
        return timer(*args)
    found: Any = session.driver.reads.read(kind, lambda: timer(*args))
    return tuple(found) if kind != "signal/alarm" else found


def _sets_timer(setitimer: Any, which: Any, *args: Any) -> Any:
    if which != signal.ITIMER_REAL:
        return setitimer(which, *args)
    return _reads_timer("signal/setitimer", setitimer, which, *args)


def _pauses(pause: Any) -> None:
    session = recording()
    if session is None:
        return pause()
    played = session.driver.signals
    if played is not None and played.expects():
        return played.pause()
    with lanes.Outside():
        pause()
    lanes.resume()


def _siginfo(values: Any) -> Any:
    return None if values is None else signal.struct_siginfo(values)


def _awaits(read: Callable[[Any], Any], plain: Callable[[Any], Any], wait: Any, *args: Any) -> Any:
    """Wait for a blocked signal: an exchange without a span, whose answer is the signal."""
    session = recording()
    if session is None:
        return wait(*args)
    call = session.driver.open("watch", "SIGWAIT", b"", {}, effect="read")
    call.headless()

    def live() -> Any:
        with lanes.Outside():
            found = wait(*args)
        return None if found is None else plain(found)

    def again(played: PlayedExchange) -> Any:
        return json.loads(played.part(0)) if played.exchange.parts else None

    try:
        found = call.answer(live, again)
        at = call.arrive().wait()
        call.part(json.dumps(found).encode(), at)
        call.end("complete", at)
    except BaseException:
        call.end("abandoned")
        raise
    return read(found)


Handler: TypeAlias = Callable[[int, FrameType | None], Any]


class Handled:
    """A handler of the program, as it is installed in the interpreter."""

    __slots__ = ("_handle", "handler")

    def __init__(
        self, handler: Handler, handle: Callable[[Handler, int, FrameType | None], Any]
    ) -> None:
        """``handle``: called with the handler and its arguments when the signal has come."""
        self.handler: Final = handler
        self._handle = handle

    @calls_handler
    def __call__(self, number: int, frame: FrameType | None) -> Any:
        """The signal has come."""
        return self._handle(self.handler, number, frame)


def is_handled(number: int) -> bool:
    """Whether a handler of the program runs when the signal comes."""
    return isinstance(unpatched.getsignal(number), Handled)


def place_of(frame: FrameType) -> str:
    """Function, file and line that a frame executes, the same on another machine."""
    code = frame.f_code
    return f"{code.co_qualname} {os.path.basename(code.co_filename)}:{frame.f_lineno}"
