"""A child process at level ``exchanges``: its command, its exit status, what was read from its pipes.

Three facts or so; nothing of the child is waited for or looked at. `process_exchange.Child` is what the
levels above have, and every replay.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, Final

from opentelemetry import trace

from playhead_instrumentation.boundaries.process.words import Started, described
from playhead_instrumentation.driver.call import Call
from playhead_instrumentation.driver.exceptions import record_of
from playhead_instrumentation.runtime import lanes
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv.facts import EndedHow, ErrorRecord

KIND: Final = "process"

EXPIRED: Final = "status.expired"

STREAM_LIMIT_BYTES: Final = 8 << 20
"""Of what is read from one stream beyond this, the tape holds the sizes only."""

log = logging.getLogger(__name__)


def observe(session: Session, started: Started) -> Observed | None:
    """The exchange of a child that is about to start; None where it could not be begun."""
    try:
        session.settle()
        return Observed(session, started)
    except Exception:
        log.debug("playhead could not record the start of a process", exc_info=True)
        return None


def asked(session: Session, started: Started) -> Call:
    """The ask for a child, on the span that is current."""
    body, details = described(started, session.redactor)
    span = trace.get_current_span().get_span_context()
    return session.driver.open(
        KIND,
        session.redactor.text(started.key),
        body,
        details,
        effect="write",
        trace_id=span.trace_id.to_bytes(16) if span.is_valid else b"",
        span_id=span.span_id.to_bytes(8) if span.is_valid else b"",
    )


class Observed:
    """What is recorded of one child. No method raises. Safe from any thread."""

    played: Final = None
    """No tape answers it."""

    __slots__ = ("_scrubs", "_session", "_taken", "call", "pid")

    def __init__(self, session: Session, started: Started) -> None:
        self._session = session
        self._scrubs: dict[str, Any] = {}
        self._taken: dict[str, int] = {}
        """Bytes of each stream that are on the tape."""
        self.pid = 0
        self.call = asked(session, started)
        session.opened(self)

    @property
    def passes(self) -> bool:
        """Whether nothing is recorded of it any more: the session is over, or this is a fork of ours."""
        return current() is not self._session or self.call.inherited

    @property
    def name(self) -> str:
        """The exchange, as a recorded child is told whose it is."""
        return str(self.call.id)

    def started(self, pid: int) -> None:
        """It runs."""
        self.pid = pid

    def failed(self, error: BaseException) -> None:
        """It could not be started."""
        record = record_of(error, self._session.redactor.text)
        if isinstance(error, OSError) and error.errno is not None:
            filename = error.filename
            named = filename if filename is None or isinstance(filename, int) else os.fsdecode(filename)
            record.args[:] = [error.errno, error.strerror, named]
        self._end("error", error=record)

    def read(self, stream: str, size: int, live: Callable[[int], bytes | None]) -> bytes | None:
        """See `PipeEnd`: what the program read is on the tape before it gets it."""
        with lanes.Outside():
            data = live(size)
        if data is not None and size:
            self.learned(stream, data)
        return data

    def expired(self, timeout: float) -> None:
        """The program has waited for it in vain."""
        try:
            more = {a.PLAYHEAD_PROCESS_STREAM: EXPIRED}
            self.call.part(json.dumps(timeout).encode(), self._at(), more)
        except Exception:
            log.debug("playhead could not record that a process was waited for", exc_info=True)

    def learned(self, stream: str, data: bytes) -> None:
        """The program has read ``data``; nothing: the stream is at its end."""
        try:
            taken = self._taken.get(stream, 0)
            if taken < 0:
                return  # its end was told
            self._taken[stream] = taken + len(data) if data else -1
            more: dict[str, Any] = {a.PLAYHEAD_PROCESS_STREAM: stream}
            self.call.scrub = self._scrub(stream)
            self.call.part(data, self._at(), more, whole=taken + len(data) <= STREAM_LIMIT_BYTES)
        except Exception:
            log.debug("playhead could not record what a process said", exc_info=True)

    def has_read(self, stream: str, data: bytes, *, ended: bool) -> None:
        """The program has read ``data`` of a stream so far; ``ended``: and its end."""
        taken = self._taken.get(stream, 0)
        if taken >= 0 and len(data) > taken:
            self.learned(stream, data[taken:])
        if ended:
            self.learned(stream, b"")

    def write(self, data: Any, live: Callable[[], int | None]) -> int | None:
        """See `PipeEnd`: what the program tells a child is its own doing, and not recorded here."""
        return live()

    def closes(self, stream: str) -> None:
        """See `PipeEnd`."""

    def running(self) -> None:
        """The program was told that it still runs, which is not recorded here."""

    def exited(self, status: int, *, in_turn: bool = True) -> None:
        """It has ended. ``status``: as `subprocess` gives it, negative for a signal."""
        if not self.passes and self.call.ended is None:
            self._end("complete", {a.PROCESS_EXIT_CODE: status})

    def left(self, pid: int) -> None:
        """It runs; the program learns how it ends in a way that is not observed."""
        self.started(pid)
        self.abandoned()

    def abandoned(self) -> None:
        """The program ends before it has learned how the child does. Safe in a finalizer."""
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
            # What its pipes still hold is read after its end.
            self.call.end(how, at, error, values=told, goes_on=how == "complete")
            self._session.closed(self)
        except Exception:
            log.debug("playhead could not record the end of a process", exc_info=True)
