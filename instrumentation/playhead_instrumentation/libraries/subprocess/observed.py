"""A child process at level ``exchanges``: its command, exit status, and what was read from its pipes.

This costs about three facts. It neither waits for the child nor inspects it. The levels above and every
replay record more: see `in_full`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from playhead_core.facts import EndedHow, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.subprocess.process_start import ProcessStart, describe
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.driver import span_around
from playhead_instrumentation.recorder.exceptions import record_of
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a

KIND: Final = "process"

EXPIRED: Final = "status.expired"

STREAM_LIMIT_BYTES: Final = 8 << 20
"""Bytes kept of one stream; of what is read beyond this, the tape holds only the sizes."""

log = Log(__name__)


def observe(session: Session, started: ProcessStart) -> Observed | None:
    """Open the exchange of a child that is about to start; None if that failed."""
    try:
        session.settle()
        return Observed(session, started)
    except Exception:
        log.debug("playhead could not record the start of a process", exc_info=True)
        return None


def asked(session: Session, started: ProcessStart) -> Call:
    """Open the request for a child, on the current span."""
    body, details = describe(started, session.redactor)
    return session.driver.open(
        KIND,
        session.redactor.text(started.key),
        body,
        details,
        effect="write",
        span=span_around(),
    )


class Observed:
    """What is recorded of one child. No method raises. Safe from any thread."""

    __slots__ = ("_scrubs", "_session", "_taken", "call", "pid")

    def __init__(self, session: Session, started: ProcessStart) -> None:
        self._session = session
        self._scrubs: dict[str, Any] = {}
        self._taken: dict[str, int] = {}
        """Bytes of each stream that are on the tape; -1: the end of the stream is on the tape."""
        self.pid = 0
        self.call = asked(session, started)
        session.open_exchanges.add(self)

    def answer(self, live: Callable[..., Any], again: Callable[..., Any], *given: Any) -> Any:
        """What ``live(observed, *given)`` does: no tape answers an observed child."""
        return live(self, *given)

    @property
    def passes(self) -> bool:
        """Whether recording has stopped: the session is over, or this process is a fork of ours."""
        return current() is not self._session or self.call.inherited

    @property
    def name(self) -> str:
        """Id of the exchange, for a recorded child that needs to name its parent's exchange."""
        return str(self.call.id)

    def started(self, pid: int) -> None:
        """The child has started."""
        self.pid = pid

    def failed(self, error: BaseException) -> None:
        """The child could not be started."""
        record = record_of(error, self._session.redactor.text)
        if isinstance(error, OSError) and error.errno is not None:
            filename = error.filename
            named = filename if filename is None or isinstance(filename, int) else os.fsdecode(filename)
            record.args[:] = [error.errno, error.strerror, named]
        self._end("error", error=record)

    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """See `PipeEnd`. What the program reads is on the tape before the program gets it."""
        with lanes.Outside():
            data = live(size)
        if data is not None and size:
            self.learned(stream, data)
        return data

    def expired(self, timeout: float) -> None:
        """The program waited for the child until its timeout expired."""
        try:
            more = {a.PLAYHEAD_PROCESS_STREAM: EXPIRED}
            self.call.part(json.dumps(timeout).encode(), self._at(), more)
        except Exception:
            log.debug("playhead could not record that a process was waited for", exc_info=True)

    def learned(self, stream: str, data: bytes) -> None:
        """The program has read ``data``; empty: the stream is at its end."""
        try:
            taken = self._taken.get(stream, 0)
            if taken < 0:
                return  # the end is on the tape already
            self._taken[stream] = taken + len(data) if data else -1
            more: dict[str, Any] = {a.PLAYHEAD_PROCESS_STREAM: stream}
            self.call.scrub = self._scrub(stream)
            self.call.part(data, self._at(), more, whole=taken + len(data) <= STREAM_LIMIT_BYTES)
        except Exception:
            log.debug("playhead could not record what a process said", exc_info=True)

    def has_read(self, stream: str, data: bytes, *, ended: bool) -> None:
        """``data``: all that the program has read of a stream so far; ``ended``: it is at its end."""
        taken = self._taken.get(stream, 0)
        if taken >= 0 and len(data) > taken:
            self.learned(stream, data[taken:])
        if ended:
            self.learned(stream, b"")

    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """See `PipeEnd`. What the program writes to a child is its own effect; not recorded here."""
        return live()

    def wrote(self, data: bytes) -> None:
        """A library that talks with its child is about to write ``data`` to it."""
        try:
            self.call.sent(data)
        except Exception:
            log.debug("playhead could not record the input of a process", exc_info=True)

    def closes(self, stream: str) -> None:
        """See `PipeEnd`."""

    def running(self) -> None:
        """The program learned that the child still runs. This is not recorded here."""

    def exited(self, status: int, *, in_turn: bool = True) -> None:
        """The child has ended. ``status``: as `subprocess` gives it, negative for a signal."""
        if not self.passes and self.call.ended is None:
            self._end("complete", {a.PROCESS_EXIT_CODE: status})

    def left(self, pid: int) -> None:
        """The child runs, and the program learns of its end in a way that is not observed."""
        self.started(pid)
        self.abandoned()

    def abandoned(self) -> None:
        """The program ends before it learns how the child ended. Safe in a finalizer."""
        self._end("abandoned")

    def _scrub(self, stream: str) -> Any:
        found = self._scrubs.get(stream)
        if found is None:
            found = self._scrubs[stream] = self._session.redactor.response("", "")
        return found

    def _at(self) -> Any:
        return self.call.arrive().wait()

    def _end(
        self,
        how: EndedHow,
        values: Mapping[str, Any] | None = None,
        error: ErrorRecord | None = None,
    ) -> None:
        try:
            at = None if how == "abandoned" else self._at()
            told = {**(values or {}), a.PROCESS_PID: self.pid} if self.pid else values
            # The program may still read, after this end, what the pipes hold.
            self.call.end(how, at, error, values=told, goes_on=how == "complete")
            self._session.open_exchanges.discard(self)
        except Exception:
            log.debug("playhead could not record the end of a process", exc_info=True)
