"""One request that comes to the program: its run root, its lane, its facts. One edge per interface.

Nothing here raises. If an error occurs while a request begins, the request is not recorded; later errors
are logged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind, Status, StatusCode

from playhead_core.facts import Delivery, EndedHow, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.inbound.applications import Application
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.call import error_attributes
from playhead_instrumentation.recorder.exceptions import name_of, record_of
from playhead_instrumentation.recorder.inbound import Inbound
from playhead_instrumentation.session.session import Session, current
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.run_root import SERVING, apart
from playhead_semconv import attributes as a

log = Log(__name__)

END = "end"
"""Value of ``playhead.inbound.message`` for the last piece of a body."""

MARKED = "run"
"""Interface of a function that the program marks as a run."""

FAULT = 500
"""Lowest status that says that the server failed."""

BROKEN = "broken"
"""Value of ``playhead.inbound.message`` for the fact that follows a piece that could not be sent."""


class InboundRequest(NamedTuple):
    """A request, as an adapter describes it."""

    interface: str
    method: str
    path: str
    """Percent-encoded, with the root under which the application is mounted, if there is one."""
    query: str
    headers: Iterable[tuple[bytes, bytes]]
    details: Mapping[str, Any]
    """Attributes of the request by name."""


def recording() -> Session | None:
    """Return the session if a request that arrives now is recorded.

    None inside another request, and for what a receiver in this process serves: to store a request would
    be a request again.
    """
    session = current()
    if session is None or lanes.current().of_request or lanes.in_own_thread():
        return None
    return session


def begin(session: Session, application: Application, asked: InboundRequest) -> InboundExchange | None:
    """Begin the exchange of a request that is about to be served; None when that failed."""
    try:
        return InboundExchange(session, application, asked)
    except Exception:
        log.debug("playhead could not record a request", exc_info=True)
        return None


class InboundExchange:
    """State of one request while it is served."""

    __slots__ = ("_asked", "_context", "_details", "_key", "_session", "_span", "_status", "call")

    def __init__(self, session: Session, application: Application, asked: InboundRequest) -> None:
        redactor = session.redactor
        headers, redacted = redactor.headers(asked.headers)
        path = redactor.url(f"{asked.path}?{asked.query}" if asked.query else asked.path)
        self._key = f"{asked.method} {path}".strip()
        self._asked = asked
        self._session = session
        self._status: int | None = None
        self.call = Inbound(session.driver)
        said: dict[str, Any] = dict(asked.details)
        marked = asked.interface == MARKED
        if not marked:
            said[a.URL_PATH] = path.partition("?")[0]
        if asked.query:
            said[a.URL_QUERY] = path.partition("?")[2]
        if asked.method:
            said[a.HTTP_REQUEST_METHOD] = asked.method
        agent = session.settings.agent or (path if marked else application.name)
        named = {a.PLAYHEAD_RUN_AGENT: agent} if agent else {}
        self._details: dict[str, Any] = {
            **said,
            **named,
            a.PLAYHEAD_HTTP_HEADERS: headers,
            a.PLAYHEAD_INBOUND_INTERFACE: asked.interface,
            a.PLAYHEAD_INBOUND_APPLICATION: application.spelt,
            a.PLAYHEAD_INBOUND_FOLDER: application.folder,
        }
        if redacted:
            self._details[a.PLAYHEAD_REDACTED_COUNT] = redacted
        carried = {
            name.decode("latin-1").lower(): value.decode("latin-1") for name, value in asked.headers
        }
        around = session.context_of(carried)
        if marked:
            around = apart(around)
        with lanes.In(self.call.lane):
            session.driver.declare(self.call.lane)
            self._span = session.tracer.start_span(
                f"{asked.method} {path.partition('?')[0]}".strip(),
                context=around,
                kind=SpanKind.CONSUMER if marked else SpanKind.SERVER,
                attributes={**said, **named, a.PLAYHEAD_EXCHANGE_ID: str(self.call.id)},
            )
        self._context = trace.set_span_in_context(self._span, around)
        self.call.scrub = redactor.response(
            "application/json" if marked else carried.get("content-type", ""),
            carried.get("content-encoding", ""),
        )
        session.open_exchanges.add(self)

    @property
    def lane(self) -> lanes.Lane:
        """Root of the lanes in which the request is served."""
        return self.call.lane

    @contextlib.contextmanager
    def within(self) -> Generator[None]:
        """Context manager: the program works on the request; its lane and its span are current."""
        outer, serving = otel_context.attach(self._context), SERVING.set(self._span)
        try:
            with lanes.Entered(self.call.lane):
                yield
        finally:
            SERVING.reset(serving)
            otel_context.detach(outer)

    def came(self, at: Delivery | None) -> None:
        """The request enters the program."""
        try:
            ids = self._span.get_span_context()
            self.call.begin(self._key, self._details, at, ids)
        except Exception:
            log.debug("playhead could not record a request", exc_info=True)

    def received(self, data: bytes, at: Delivery | None, message: str = "") -> None:
        """A piece of the body, or another ``message``, enters the program."""
        try:
            self.call.part(data, at, {a.PLAYHEAD_INBOUND_MESSAGE: message} if message else None)
        except Exception:
            log.debug("playhead could not record a piece of a request", exc_info=True)

    def answers(self, status: int, headers: Iterable[tuple[bytes, bytes]], reason: str = "") -> None:
        """The program begins to answer."""
        try:
            self._session.settle()
            kept, redacted = self._session.redactor.headers(headers)
            values: dict[str, Any] = {
                a.HTTP_RESPONSE_STATUS_CODE: status,
                a.PLAYHEAD_HTTP_HEADERS: kept,
            }
            if reason:
                values[a.PLAYHEAD_HTTP_REASON] = reason
            if redacted:
                values[a.PLAYHEAD_REDACTED_COUNT] = redacted
            self._status = status
            self.call.head(values)
        except Exception:
            log.debug("playhead could not record the head of an answer", exc_info=True)

    def sends(self, data: bytes, message: str = "") -> None:
        """The program is about to send a piece of its answer, or another ``message``."""
        try:
            self._session.settle()
            self.call.sent(data, {a.PLAYHEAD_INBOUND_MESSAGE: message} if message else None)
        except Exception:
            log.debug("playhead could not record a piece of an answer", exc_info=True)

    def unsent(self, error: BaseException) -> None:
        """What the program was about to send did not go out."""
        try:
            recorded = error_attributes(self._recorded(error))
            self.call.sent(b"", {a.PLAYHEAD_INBOUND_MESSAGE: BROKEN, **recorded})
        except Exception:
            log.debug("playhead could not record an error", exc_info=True)

    def finished(self) -> None:
        """The program is done with the request."""
        self._end("complete", None)

    def failed(self, error: BaseException) -> None:
        """``error`` leaves the program."""
        if isinstance(error, GeneratorExit):
            self._end("abandoned", None)
        elif self.call.ended is None:
            self._end("error", self._recorded(error))

    def abandoned(self) -> None:
        """The client does not want the rest of the answer."""
        self._end("abandoned", None)

    def finish(self) -> None:
        """End the span, off the caller's path."""
        span, end = self._span, self.call.ended
        if end is not None and span.is_recording():
            status = self._status
            if status is not None:
                note(span, {a.HTTP_RESPONSE_STATUS_CODE: status})
            if end.error is not None:
                note(span, {a.ERROR_TYPE: name_of(end.error)})
                span.set_status(Status(StatusCode.ERROR, end.error.message or None))
            elif status is not None and status >= FAULT:
                note(span, {a.ERROR_TYPE: str(status)})
                span.set_status(Status(StatusCode.ERROR))
            if end.how == "abandoned":
                note(span, {a.PLAYHEAD_END_HOW: "abandoned"})
        span.end(end_time=self.call.time_ns or None)

    def _recorded(self, error: BaseException) -> ErrorRecord:
        return record_of(error, self._session.redactor.text)

    def _end(self, how: EndedHow, error: ErrorRecord | None) -> None:
        try:
            self._session.settle()
            if not self.call.end(how, None, error):
                return
            if error is not None or (self._status or 0) >= FAULT:
                what = (
                    f"answered {self._status}" if error is None else f"{name_of(error)}: {error.message}"
                )
                self._session.driver.failed_requests.append(f"{self._key}: {what}")
            self._session.open_exchanges.discard(self)
            if not self.call.inherited:  # else the span is also the parent's
                self._session.submit(self)
        except Exception:
            log.debug("playhead could not record the end of a request", exc_info=True)
