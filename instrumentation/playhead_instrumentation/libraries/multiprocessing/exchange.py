"""Record what one process of a run learns from another: a message, its arrival, a free lock.

Each is an exchange of kind ``pipe``. Its answer is on the tape of the process that learned it, so a
replay of that process needs no other process: nothing goes through a pipe then, and no lock is held.
"""

from __future__ import annotations

import _thread
import errno
import threading
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from playhead_core.errors import PlayheadError, WorldBlocked
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.multiprocessing.recorded_pickles import refusal
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.exceptions import again, record_of
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

KIND: Final = "pipe"

log = Log(__name__)


class PipeBlocked(WorldBlocked, PermissionError):
    """The tape does not answer for another process. An `OSError`, as a program expects for a pipe."""

    def __init__(self, key: str, why: str) -> None:
        WorldBlocked.__init__(self, f"the replay does not answer {key} between processes", cause=why)
        self.errno = errno.EACCES
        self.strerror = self.what

    __str__ = WorldBlocked.__str__


def stay() -> None:
    """Block until the process ends, if this is a daemon thread."""
    if threading.current_thread().daemon:
        forever = _thread.allocate_lock()
        forever.acquire()
        with lanes.Outside():
            forever.acquire()


def answered(
    session: Session,
    key: str,
    live: Callable[[], bytes | None],
    body: bytes = b"",
    *,
    writes: bool = False,
) -> bytes | None:
    """The result of ``live``, or its recorded result. Raises the error of ``live``, or the recorded one.

    ``body``: what distinguishes it from other requests of this key. ``writes``: it sends something to
    another process. Raises `PipeBlocked` if no tape answers.
    """
    if session.driver.ending and not session.driver.fenced:
        return live()
    try:
        session.settle()
        call = session.driver.open(KIND, key, body, {}, effect="write" if writes else "read")
    except Exception as problem:
        log.debug("playhead could not record a message between processes", exc_info=True)
        if session.driver.closed:
            raise PipeBlocked(key, "it could not be looked up on the tape") from problem
        return live()
    try:
        call.check()
    except PlayheadError as refused:
        call.end("error", None, record_of(refused, str))
        raise PipeBlocked(key, refused.cause or refused.what) from None
    # Raised here in both cases, so that a program that prints the traceback prints the same.
    data, error = call.answer(_live, _again, session, call, live)
    if error is not None:
        raise error.with_traceback(None)
    return data


Outcome: TypeAlias = tuple[bytes | None, BaseException | None]


def _live(session: Session, call: Call, live: Callable[[], bytes | None]) -> Outcome:
    try:
        with lanes.Outside():
            data = live()
    except Exception as error:
        at = call.arrive().wait()
        if not session.driver.ending:
            call.end("error", at, record_of(error, session.redactor.text))
        return None, error
    except BaseException:
        call.end("abandoned")
        raise
    at = call.arrive().wait()
    if session.driver.ending:
        return data, None
    if data is None or len(data) > session.settings.file_limit_bytes:
        withheld = {} if data is None else {a.PLAYHEAD_PIPE_WITHHELD_BYTES: len(data)}
        call.end("complete", at, values=withheld)
        return data, None
    call.scrub = session.redactor.response("", "")
    call.part(data, at)
    call.end("complete")
    return data, None


def _again(played: PlayedExchange, session: Session, call: Call, *_: object) -> Outcome:
    end = played.exchange.end
    values: dict[str, Any] = {} if end is None else dict(end.values)
    if size := values.get(a.PLAYHEAD_PIPE_WITHHELD_BYTES):
        error = PipeBlocked(played.exchange.ask.key, f"{size} bytes were too many to keep")
        call.exhausted(error)
        call.end("error", None, record_of(error, str))
        return None, error
    data = played.part(0) if played.exchange.parts else None
    if data is not None and (why := refusal(data)):
        error = PipeBlocked(played.exchange.ask.key, f"a recorded message is not loaded: {why}")
        call.exhausted(error)
        call.end("error", None, record_of(error, str))
        return None, error
    at = call.arrive(1).wait()
    if end is None or session.driver.ending:
        stay()  # the process ends here, as it did in the recording, if nothing had come
    if data is not None:
        call.part(data, at)
        call.end("complete")
        return data, None
    raised = None if end is None else end.error
    call.end("complete" if raised is None else "error", at, raised)
    return None, None if raised is None else again(raised, OSError)
