"""Record an exchange of messages: its span, its facts, and the waits between both sides.

An adapter for each library moves the messages.

Nothing here raises, except what a replay refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Coroutine, Mapping
from typing import Any, Literal, NamedTuple

from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode

from playhead_core.errors import ExchangeExhausted, PlayheadError
from playhead_core.facts import Delivery, EndedHow, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.propagation import context_fields
from playhead_instrumentation.libraries.common.recording import end_span
from playhead_instrumentation.recorder.exceptions import record_of
from playhead_instrumentation.recorder.gate import Permit, running_loop
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_instrumentation.tracing.light import note
from playhead_semconv import attributes as a

log = Log(__name__)


class MessageRequest(NamedTuple):
    """A request of the program: the handshake of a connection, or a call with its body."""

    kind: str
    key: str
    body: bytes
    details: dict[str, Any]
    effect: Literal["read", "write"] = "write"
    """Whether it changes something on the other side."""


class MessageExchange:
    """State of one open exchange."""

    __slots__ = (
        "_ended_ns",
        "_error_type",
        "_span",
        "_waits",
        "attempt",
        "call",
        "key",
        "meter",
        "received_count",
        "sent_count",
        "session",
    )

    def __init__(
        self, session: Session, request: MessageRequest, name: str, attributes: dict[str, Any]
    ) -> None:
        """``name`` and ``attributes`` belong to the span."""
        self.session = session
        self._span = span = session.tracer.start_span(name, kind=SpanKind.CLIENT, attributes=attributes)
        self.call = session.driver.open(
            request.kind,
            request.key,
            request.body,
            request.details,
            effect=request.effect,
            span=span.get_span_context(),
        )
        self.attempt: Attempt | None = None
        """The exchange as an attempt of a model call, if its bytes are parsed at the end."""
        self.key = request.key
        """Method and address of the request."""
        self.meter: Any = None
        """What `Session.on_message` keeps with the exchange."""
        self.sent_count = 0
        self.received_count = 0
        self._ended_ns = 0
        self._error_type = ""
        self._waits: Permit | None = None
        """Permit of a waiter that waits until the program has sent something."""
        session.open_exchanges.add(self)
        if span.is_recording():
            note(span, {a.PLAYHEAD_EXCHANGE_ID: str(self.call.id)})

    @property
    def span_context(self) -> SpanContext:
        """Context of its span."""
        return self._span.get_span_context()

    def context_fields(self, sent: Container[str]) -> list[tuple[str, str]]:
        """Return the metadata to add to a live request, which has the metadata ``sent``."""
        return context_fields(self.session, self._span, self.key, sent)

    @property
    def over(self) -> bool:
        """Whether the end of the exchange is on the tape."""
        return self.call.ended is not None

    def sent(self, data: bytes, attributes: Mapping[str, Any] | None = None) -> None:
        """A message is about to go out. Raises what a replay refuses."""
        if self.over:
            return
        try:
            self.call.message(data, attributes)
        except PlayheadError as error:
            self._end("error", None, self.recorded(error))
            self._wake()
            raise
        except Exception:
            log.debug("playhead could not record a message", exc_info=True)
        self.sent_count += 1
        if self.session.on_message is not None:
            self._report(self.session.on_message, self, True, data, attributes)
        if self._waits is not None and self.call.missing() <= 0:
            self._wake()

    def answered(self, values: dict[str, Any], at: Delivery | None) -> None:
        """The head of the answer has arrived, with credentials already removed."""
        self._report(self.call.head, values, at)

    def received(
        self, data: bytes, at: Delivery | None, attributes: Mapping[str, Any] | None = None
    ) -> None:
        """A message has arrived; the program does not have it yet."""
        kept: bytes | None = self._report(self.call.part, data, at, attributes)
        self.received_count += 1
        if self.session.on_message is not None:
            self._report(self.session.on_message, self, False, data, attributes)
        if self.attempt is not None and kept is not None:
            self.attempt.chunks.append(kept)

    def _report(self, report: Callable[..., Any], *said: Any) -> Any:
        if self.over:
            return None
        try:
            return report(*said)
        except Exception:
            log.debug("playhead could not record what came", exc_info=True)
            return None

    def along(self, at: Delivery | None, place: int) -> Delivery | None:
        """Return the delivery of the ``place``-th item after ``at`` that arrived together with it."""
        if at is None or not place:
            return at
        if (
            running_loop() is not None and self.session.driver.gate.level == "causal"
        ):  # a tick is one batch
            return self.call.arrive().wait()
        return Delivery(at.batch, at.order + place)

    def describe(self, attributes: Mapping[str, Any], *, error: str = "") -> None:
        """Add attributes to the span. ``error``: description of a failure; empty: none."""
        if self._span.is_recording():
            note(self._span, dict(attributes))
            if error:
                self._span.set_status(Status(StatusCode.ERROR, error))

    def permit(self) -> Permit:
        """Replay: return the permit of the next item, or one that never comes if it may not come yet.

        If `due` then returns False, the permit was given up, and the caller takes another one.
        """
        if self.call.missing() <= 0:
            return self.call.arrive()
        self._waits = permit = self.session.driver.gate.never()
        if self.call.missing() <= 0:  # it was sent in the meantime
            permit.give_up()
        return permit

    def due(self, permit: Permit) -> bool:
        """Return whether ``permit``, which has come, belongs to the next item."""
        waited, self._waits = self._waits, None
        return waited is not permit

    def _wake(self) -> None:
        permit = self._waits
        if permit is not None:
            permit.give_up()

    def interrupt(self) -> None:
        """Release a waiter: nothing is to be waited for any more."""
        self._wake()

    def finished(self, at: Delivery | None, said: Mapping[str, Any] | None = None) -> None:
        """The exchange ended normally. ``said``: values of the end."""
        self._end("complete", at, None, said)

    def failed(self, error: BaseException, at: Delivery | None = None, phase: str = "") -> None:
        """The exchange ended with ``error``. ``phase``: as in `ErrorRecord`."""
        if isinstance(error, GeneratorExit):
            self._end("abandoned", at, None)
        elif not self.over:
            record = self.recorded(error)
            self.broken(
                ErrorRecord(record.module, record.qualname, record.message, record.args, phase), at
            )

    def broken(
        self,
        record: ErrorRecord,
        at: Delivery | None,
        said: Mapping[str, Any] | None = None,
        *,
        error_type: str = "",
    ) -> None:
        """The exchange ended with an error that is described already.

        ``error_type``: as the protocol names it; empty: by the name of the exception.
        """
        if not self.over:
            self._error_type = error_type
        self._end("error", at, record, said)

    def exhausted(self, error: ExchangeExhausted) -> None:
        """The tape ends before the exchange does."""
        self.call.exhausted(error)
        self.failed(error)

    def recorded(self, error: BaseException) -> ErrorRecord:
        """Return ``error`` as the tape holds it."""
        return record_of(error, self.session.redactor.text)

    def abandoned(self) -> None:
        """The program has dropped the exchange. Safe in a finalizer."""
        self._end("abandoned", None, None)

    def _end(
        self,
        how: EndedHow,
        at: Delivery | None,
        error: ErrorRecord | None,
        said: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            if not self.call.end(how, at, error, values=said):
                return
            self.session.open_exchanges.discard(self)
            if self.call.inherited:
                return  # the span is also the parent's
            self._ended_ns = self.call.time_ns
            self.session.submit(self)
        except Exception:
            log.debug("playhead could not record the end of an exchange", exc_info=True)

    def finish(self) -> None:
        """End the span, off the caller's path."""
        more: dict[str, Any] = {
            a.PLAYHEAD_MESSAGES_SENT: self.sent_count,
            a.PLAYHEAD_MESSAGES_RECEIVED: self.received_count,
        }
        if self._error_type:
            more[a.ERROR_TYPE] = self._error_type
        end_span(self._span, self.call.ended, self._ended_ns, more)
        if self.attempt is not None and self.session.on_unclaimed is not None:
            self.attempt.end = self.call.ended
            self.session.on_unclaimed(self.attempt)


def drive(coroutine: Coroutine[Any, None, None]) -> None:
    """Run ``coroutine``, which waits only for permits, in callbacks of the event loop, not as a task."""

    def step(_: object = None) -> None:
        try:
            future: Any = coroutine.send(None)
        except StopIteration:
            return
        future._asyncio_future_blocking = False
        future.add_done_callback(step)

    step()
