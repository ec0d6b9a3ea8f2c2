"""Record one HTTP attempt: its span and its facts. An adapter for each library moves the bytes.

Nothing here raises. An error at the beginning leaves the exchange unrecorded; a later one is logged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Container, Iterable
from typing import Any, cast

import msgspec
from opentelemetry.trace import SpanKind, Status, StatusCode

from playhead_core.facts import Delivery, EndedHow, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.propagation import context_fields
from playhead_instrumentation.libraries.common.recording import end_span
from playhead_instrumentation.recorder.exceptions import is_thrown, record_of
from playhead_instrumentation.redaction.redactor import Header
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.attempts import Attempt, current_call
from playhead_instrumentation.tracing.light import note
from playhead_semconv import attributes as a

KNOWN_METHODS = frozenset(
    ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "QUERY", "TRACE")
)
CONNECTS = "http.connect"
"""Kind of failed connections that the program opened before the request."""
READS = ("GET", "HEAD", "OPTIONS")
DEFAULT_PORTS = {"http": 80, "https": 443}

CODING = "content-encoding"

log = Log(__name__)


class Outgoing(msgspec.Struct, frozen=True):
    """A request, as described by an adapter."""

    method: str
    url: str
    headers: Iterable[Header]
    host: str
    port: int
    """0 if unknown."""
    body: bytes | None
    """None if it is streamed."""


class Incoming(msgspec.Struct, frozen=True):
    """The head of an answer, as described by an adapter."""

    status_code: int
    headers: Iterable[Header]
    version: str
    """As in the status line: ``HTTP/1.1``."""
    reason: str | None
    content_type: str
    content_encoding: str
    stream_id: int | None = None
    """Of an answer over HTTP/2."""


def begin(
    session: Session, described: Callable[..., Outgoing], *request: Any, kind: str = "http"
) -> HttpExchange | None:
    """Start the span and open the exchange; None if that failed.

    ``described`` converts ``request``, in the form of the adapter's library, to an `Outgoing`.
    """
    try:
        session.settle()
        return HttpExchange(session, described(*request), kind)
    except Exception:
        log.debug("playhead could not record a request", exc_info=True)
        return None


class HttpExchange:
    """One open HTTP attempt."""

    __slots__ = (
        "_observer",
        "_session",
        "_span",
        "_streams",
        "_version",
        "attempt",
        "call",
        "events",
        "peer",
    )

    def __init__(self, session: Session, request: Outgoing, kind: str) -> None:
        redactor = session.redactor
        method = request.method
        url = redactor.url(request.url)
        headers, redacted = redactor.headers(request.headers)
        redacted += url != request.url
        span = session.tracer.start_span(
            method if method in KNOWN_METHODS else "HTTP",
            kind=SpanKind.CLIENT,
            attributes={
                a.HTTP_REQUEST_METHOD: method if method in KNOWN_METHODS else "_OTHER",
                a.URL_FULL: url,
                a.SERVER_ADDRESS: request.host,
                a.SERVER_PORT: request.port,
            },
        )
        context = span.get_span_context()
        observer = current_call.get()
        details: dict[str, Any] = {a.PLAYHEAD_HTTP_HEADERS: headers}
        if redacted:
            details[a.PLAYHEAD_REDACTED_COUNT] = redacted
        self.call = call = session.driver.open(
            kind,
            f"{method} {url}",
            request.body,
            details,
            effect="read" if method in READS or kind == CONNECTS or observer is not None else "write",
            span=context,
        )
        self.attempt = attempt = Attempt(
            call.id,
            session.sink.instance,
            method,
            url,
            call.body,
            0 if observer is None else len(observer.attempts),
            context,
            call.time_ns,
        )
        attempt.last_seq = call.last_seq
        attempt.fidelity = call.fidelity
        self._session = session
        self._span = span
        self._version = ""
        self._observer = observer
        self._streams = False
        """Whether the request body was sent in pieces."""
        self.events: list[str] = []
        """Events for trace callbacks, in the form of `traced_event`, since the last head or end fact."""
        self.peer: Any = None
        """Address of the peer, as `socket.getpeername` returns it; set before the head arrives."""
        session.open_exchanges.add(self)
        if observer is not None:
            observer.attempts.append(attempt)

    def context_fields(self, sent: Container[str]) -> list[tuple[str, str]]:
        """Return the headers to add to a live request, which has the headers ``sent``."""
        return context_fields(self._session, self._span, self.attempt.url, sent)

    def release(self) -> None:
        """Wait until the request may go out; an operator may have edited it by then."""
        if self.call.pending_release is not None:
            self.call.release().wait()
            self._departed()

    async def arelease(self) -> None:
        """The same in a task."""
        if self.call.pending_release is not None:
            await self.call.release()
            self._departed()

    def _departed(self) -> None:
        self.attempt.request_body = self.call.body
        self.attempt.last_seq = self.call.last_seq

    def await_arrival(self, phase: str = "") -> Delivery | None:
        """Wait until the next item may enter. What interrupts the wait ends the exchange.

        ``phase``: as in `ErrorRecord`.
        """
        try:
            return self.call.arrive().wait()
        except BaseException as error:
            self.failed(error, phase=phase)
            raise

    @property
    def over(self) -> bool:
        """Whether the end fact is on the tape."""
        return self.call.ended is not None

    def sent(self, data: bytes) -> None:
        """A piece of a streamed request body is about to be sent."""
        self._streams = True
        try:
            self.attempt.request_body += self.call.body_piece(data)
        except Exception:
            log.debug("playhead could not record a piece of a request", exc_info=True)

    def all_sent(self) -> None:
        """The last piece of a streamed request body is sent."""
        if not self._streams:
            return
        try:
            self.attempt.request_body += self.call.body_sent()
        except Exception:
            log.debug("playhead could not record the rest of a request", exc_info=True)

    def answered(self, described: Callable[[Any], Incoming], answer: Any, at: Delivery | None) -> None:
        """The head of the answer has arrived; ``described`` converts ``answer`` to an `Incoming`."""
        self.all_sent()
        try:
            response = described(answer)
            redactor, attempt = self._session.redactor, self.attempt
            headers, redacted = redactor.headers(response.headers)
            self.call.scrub = redactor.response(response.content_type, response.content_encoding)
            values: dict[str, Any] = {
                a.HTTP_RESPONSE_STATUS_CODE: response.status_code,
                a.PLAYHEAD_HTTP_HEADERS: headers,
                a.PLAYHEAD_HTTP_VERSION: response.version,
            }
            if response.reason is not None:
                values[a.PLAYHEAD_HTTP_REASON] = response.reason
            if redacted:
                values[a.PLAYHEAD_REDACTED_COUNT] = redacted
            if response.stream_id is not None:
                values[a.PLAYHEAD_HTTP_STREAM_ID] = response.stream_id
            values |= peer_attributes(self.peer) | self._taken_events()
            self.call.head(values, at)
            attempt.status_code = response.status_code
            attempt.response_headers = list(zip(headers[::2], headers[1::2], strict=True))
            attempt.last_seq = self.call.last_seq
            self._version = response.version
        except Exception:
            log.debug("playhead could not record the head of a response", exc_info=True)

    def received(self, data: bytes, at: Delivery | None, lacks: str = "") -> None:
        """Record a chunk of the answer before the program gets it.

        ``lacks``: the content coding of the answer, if ``data`` is already decoded.
        """
        try:
            call, attempt = self.call, self.attempt
            more = {a.PLAYHEAD_REDACTED_UNPACKED: lacks} if lacks else None
            attempt.chunks.append(call.part(data, at, more))
            attempt.unpacked.append("" if call.scrub is None else call.scrub.unpacked)
            attempt.last_seq = call.last_seq
            if attempt.first_chunk_ns is None:
                attempt.first_chunk_ns = call.time_ns
        except Exception:
            log.debug("playhead could not record a chunk", exc_info=True)

    def whole(self, data: bytes, at: Delivery | None, lacks: str = "") -> None:
        """The body arrived with its head, in one delivery ``at``; a replay recognises it by that."""
        if lacks:
            headers = self.attempt.response_headers
            self.attempt.response_headers = [one for one in headers if one[0].lower() != CODING]
        if data:
            self.received(data, at, lacks)
        self.finished(at)

    def finished(self, at: Delivery | None) -> None:
        """The answer is complete."""
        self._end("complete", at, None)

    def failed(self, error: BaseException, at: Delivery | None = None, phase: str = "") -> None:
        """The program gets ``error`` instead of the answer or of its rest.

        ``phase``: as in `ErrorRecord`.
        """
        if isinstance(error, GeneratorExit):
            self._end("abandoned", at, None)
        elif not self.over:
            record = self.recorded(error)
            self._end("error", at, msgspec.structs.replace(record, phase=phase) if phase else record)

    def thrown(self, error: BaseException) -> None:
        """As `failed`; a greenlet into which ``error`` was thrown waits for its permit first."""
        at = self.call.left_by_greenlet() if is_thrown(error) and not self.over else None
        self.failed(error, at)

    def recorded(self, error: BaseException) -> ErrorRecord:
        """``error`` as it goes on tape."""
        return record_of(error, self._session.redactor.text)

    def broken(self, record: ErrorRecord, at: Delivery | None) -> None:
        """The same for an error that is already described."""
        self._end("error", at, record)

    def abandoned(self, at: Delivery | None = None) -> None:
        """The program reads no further. Safe in a finalizer."""
        if self.call.ended is None:
            self._end("abandoned", at, None)

    async def left(self) -> None:
        """As `abandoned`, but the program waits for its permit before it continues."""
        at = cancelled = None
        try:
            at, cancelled = await self.call.left()
        finally:
            self.abandoned(at)
        if cancelled is not None:
            raise cancelled

    async def cancelled(self, error: BaseException) -> None:
        """As `failed`; a cancelled program waits for its permit before it continues."""
        at = None
        if isinstance(error, asyncio.CancelledError) and not self.over:
            at, _ = await self.call.left()  # ``error`` is about to be raised anyway
        self.failed(error, at)

    def _end(self, how: EndedHow, at: Delivery | None, error: ErrorRecord | None) -> None:
        if not self.over:
            self.all_sent()
        try:
            call, attempt = self.call, self.attempt
            events, inherited = self._taken_events(), call.inherited
            if not call.end(how, at, error, values=events):
                return
            self._session.open_exchanges.discard(self)
            if inherited:
                return  # the span belongs to the parent too
            attempt.end, attempt.ended_ns = call.ended, call.time_ns
            attempt.last_seq = call.last_seq
            self._session.submit(self)
            if self._observer is not None:
                self._observer.attempt_closed(attempt)
        except Exception:
            log.debug("playhead could not record the end of an exchange", exc_info=True)

    def _taken_events(self) -> dict[str, Any]:
        if not self.events:
            return {}
        events, self.events = self.events, []
        return {a.PLAYHEAD_HTTP_EVENTS: list(map(self._session.redactor.text, events))}

    def finish(self) -> None:
        """Describe and end the span, off the caller's path: an end takes locks, a finalizer must not."""
        self._session.redactor.speed_up()
        if self._span.is_recording():
            self._describe()
        end_span(self._span, self.attempt.end, self.attempt.ended_ns)
        if self._observer is None and self._session.on_unclaimed is not None:
            self._session.on_unclaimed(self.attempt)

    def _describe(self) -> None:
        attempt = self.attempt
        attributes: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_ID: str(attempt.exchange)}
        if attempt.resend_count:
            attributes[a.HTTP_REQUEST_RESEND_COUNT] = attempt.resend_count
        if attempt.status_code is not None:
            attributes[a.HTTP_RESPONSE_STATUS_CODE] = attempt.status_code
            attributes[a.NETWORK_PROTOCOL_VERSION] = self._version.removeprefix("HTTP/")
            if attempt.status_code >= 400:
                attributes[a.ERROR_TYPE] = str(attempt.status_code)
                self._span.set_status(Status(StatusCode.ERROR))
        note(self._span, attributes)


def peer_attributes(address: Any) -> dict[str, Any]:
    """Return the address of a peer, as `socket.getpeername` returns it, as attributes of a fact."""
    if isinstance(address, str):
        return {a.NETWORK_PEER_ADDRESS: address}
    if not isinstance(address, tuple) or len(cast("tuple[Any, ...]", address)) < 2:
        return {}
    host, port, *_ = cast("tuple[Any, ...]", address)
    return {a.NETWORK_PEER_ADDRESS: str(host), a.NETWORK_PEER_PORT: int(port)}


def httpx_headers(request: Any, exchange: HttpExchange) -> Any:
    """Return the headers to send: those of an httpx ``request``, or a copy with the trace context."""
    headers = request.headers
    names = b"\n".join([name for name, _ in headers.raw]).lower().decode("latin-1")
    fields = exchange.context_fields(names.split("\n"))
    if not fields:
        return headers
    copied = type(headers)(headers)
    for name, value in fields:
        copied[name] = value
    return copied


def aiohttp_headers(headers: Any, exchange: HttpExchange) -> Any:
    """Return ``headers``, a case-insensitive multi-dict of aiohttp, or a copy with the trace context."""
    fields = exchange.context_fields(headers)
    if not fields:
        return headers
    copied = headers.copy()
    copied.update(fields)
    return copied


def context_lines(head: list[bytes], exchange: HttpExchange) -> list[bytes]:
    """Return the trace context as lines for ``head``: the request line and its headers."""
    sent = {line.partition(b":")[0].decode("latin-1").lower() for line in head[1:]}
    return [f"{name}: {value}".encode() for name, value in exchange.context_fields(sent)]


def with_context(data: bytes, exchange: HttpExchange) -> bytes:
    """Return ``data``, a whole request, with the trace context in its head."""
    head, end, body = data.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    return b"\r\n".join([*lines, *context_lines(lines, exchange)]) + end + body
