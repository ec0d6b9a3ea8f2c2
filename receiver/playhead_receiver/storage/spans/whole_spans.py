"""Completes spans: attributes that a span left out are derived from the exchange it refers to.

A span sent to a playhead endpoint refers to its exchange instead of carrying the content. Here the
content is derived on demand, with the same function that the agent uses; nothing is stored twice. A
span that has started and not arrived (it is still running, or its process died) is built from its start
fact and from what its exchange shows so far.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol, cast

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span, Status

from playhead_core.errors import TapeError
from playhead_core.facts import Exchange, ExchangeId, Fact
from playhead_core.otlp import set_attributes, value_of
from playhead_core.tape.protocols import Tape
from playhead_core.tape.span_starts import starts_of
from playhead_genai.attempts import before, is_next_attempt
from playhead_genai.model_providers import provider_at
from playhead_genai.providers import (
    DIALECTS,
    Derived,
    PrefixCache,
    WireResponse,
    call_name,
    derive,
    failure_of,
    recognised,
    span_attributes,
    wire_of,
)
from playhead_genai.providers.realtime.calls import RealtimeCall
from playhead_genai.providers.realtime.connection import realtime_calls, realtime_span_id, realtime_wire
from playhead_genai.providers.xai.grpc import grpc_response, request_line, request_told
from playhead_replay.run.linked_tape import LinkedTape, TapeLookup, linked
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_receiver.storage.values.stored import StoredSpan, StoredTape

TAPES_KEPT = 16

_BOOKKEEPING = frozenset((a.PLAYHEAD_SPAN_NAME, a.PLAYHEAD_SPAN_KIND, a.PLAYHEAD_SPAN_PARENT))


class TapeStore(TapeLookup, Protocol):
    """What spans are completed from; `Store` is one, and documents the methods."""

    def tape(self, instance: bytes) -> StoredTape:
        """The tape of a process instance."""
        ...

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """The span-start facts of a trace whose spans have not arrived."""
        ...

    def resource(self, instance: bytes) -> bytes | None:
        """OTLP `Resource` bytes of a process instance."""
        ...


class Deriver:
    """Completes spans of one store. Caches what consecutive spans share; for one thread at a time."""

    def __init__(self, store: TapeStore) -> None:
        self._store = store
        self._tapes: OrderedDict[bytes, StoredTape] = OrderedDict()
        self._cache = PrefixCache()
        self._of_forks: dict[bytes, tuple[int, LinkedTape | None]] = {}
        """Cache of one entry: the linked tape of a fork, and the number of its last fact at the time."""

    def is_whole(self, stored: StoredSpan) -> bool:
        """Whether all facts that a span depends on have arrived, or are known to be lost."""
        span = span_of(ResourceSpans.FromString(stored.otlp))
        at = attributes_of(span, _RESTING)
        reference = reference_of(at)
        rests_on = at.get(a.PLAYHEAD_RESTS_ON)
        if reference is None or not _left_out(span, at) or not isinstance(rests_on, int):
            return True
        tape = self._tape(reference[0])
        return tape.last() >= rests_on or any(first <= rests_on <= last for first, last in tape.gaps())

    def whole(self, stored: StoredSpan) -> ResourceSpans:
        """A span with the attributes that it left out; unchanged if its exchange is not stored."""
        envelope = ResourceSpans.FromString(stored.otlp)
        span = span_of(envelope)
        if stored.wire:
            found = self._exchange_of(envelope)
            if found is not None:
                self._add_derived(envelope, *found, stored.wire)
            return envelope
        at = attributes_of(span, _RESTING)
        left_out = _left_out(span, at)
        reference = reference_of(at)
        wire = at.get(a.PLAYHEAD_WIRE)
        if not left_out or reference is None or wire not in DIALECTS:
            return envelope
        instance, id = reference
        exchange = self._tape(instance).exchange(id)
        derived = None if exchange is None else self._derive(instance, exchange, str(wire))
        if derived is not None:
            found = {name: derived.attributes[name] for name in left_out if name in derived.attributes}
            set_attributes(span.attributes, found)
        return envelope

    def derived_call(self, stored: StoredSpan) -> tuple[str, ResourceSpans] | None:
        """For a request without a GenAI instrumentation: its wire, and its span completed accordingly.

        None if it is not a call to a model, or if the tape does not hold its exchange.
        """
        envelope = ResourceSpans.FromString(stored.otlp)
        at = attributes_of(span_of(envelope), _REQUEST)
        method, url = request_told(at)
        found = self._exchange_of(envelope) if wire_of(method, url) is not None else None
        if found is None:
            return None
        instance, exchange = found
        try:
            body = self._tape(instance).read(exchange.ask.body)
        except TapeError:
            return None
        wire = recognised(method, url, body)
        told = wire is not None and self._add_derived(envelope, instance, exchange, wire)
        return (wire, envelope) if wire is not None and told else None

    def awaits(self, stored: StoredSpan) -> bytes | None:
        """The process instance whose facts about a request to a model have not all arrived yet."""
        envelope = ResourceSpans.FromString(stored.otlp)
        method, url = request_told(attributes_of(span_of(envelope), _REQUEST))
        found = request_reference(envelope)
        if found is None or (wire_of(method, url) is None and not realtime_wire(url)):
            return None
        instance, id = found
        exchange = self._tape(instance).exchange(id)
        if exchange is None or (exchange.end is None and id.kind != "websocket"):
            return instance
        return None

    def attempt_before(self, stored: StoredSpan) -> bytes | None:
        """Span id of the attempt before this one, for a request that sends the same call again."""
        found = self._exchange_of(ResourceSpans.FromString(stored.otlp))
        earlier_id = None if found is None else before(found[1].id)
        if found is None or earlier_id is None:
            return None
        instance, exchange = found
        earlier = self._tape(instance).exchange(earlier_id)
        if earlier is None or not is_next_attempt(exchange, earlier):
            return None
        return earlier.span_id if earlier.trace_id == exchange.trace_id else None

    def realtime(self, stored: StoredSpan) -> Iterator[ResourceSpans]:
        """For a WebSocket to a model: the spans of its calls, below the connection's span."""
        envelope = ResourceSpans.FromString(stored.otlp)
        span = span_of(envelope)
        url = str(attributes_of(span, _REQUEST).get(a.URL_FULL))
        found = self._exchange_of(envelope) if realtime_wire(url) else None
        if found is None or found[1].id.kind != "websocket":
            return
        instance, exchange = found
        tape = self._tape(instance)
        try:
            calls = realtime_calls(
                url,
                exchange,
                lambda sent, number: tape.read((exchange.sent if sent else exchange.parts)[number].data),
            )
        except TapeError:
            return
        reference = f"{instance.hex()}/{exchange.id}"
        for number, call in enumerate(calls):
            yield _realtime_span(envelope, call, number, reference)

    def _exchange_of(self, envelope: ResourceSpans) -> tuple[bytes, Exchange] | None:
        """Process instance and exchange that the span of a request refers to; None if unknown."""
        found = request_reference(envelope)
        if found is None:
            return None
        instance, id = found
        exchange = self._tape(instance).exchange(id)
        return None if exchange is None else (instance, exchange)

    def _add_derived(
        self, envelope: ResourceSpans, instance: bytes, exchange: Exchange, wire: str
    ) -> bool:
        """Add attributes derived from a request's bytes to its span; False if the bytes are missing."""
        derived = self._derive(instance, exchange, wire) if wire in DIALECTS else None
        if derived is None:
            return False
        span = span_of(envelope)
        host = str(attributes_of(span, _REQUEST).get(a.SERVER_ADDRESS, ""))
        waited_ns = exchange.parts[0].time_ns - span.start_time_unix_nano if exchange.parts else None
        said: dict[str, Any] = dict(span_attributes(wire, derived, host, waited_ns))
        said[a.PLAYHEAD_EXCHANGE_REF] = f"{instance.hex()}/{exchange.id}"
        present = {pair.key for pair in span.attributes}
        span.name = call_name(said)
        kind, message = failure_of(derived)
        if kind and span.status.code == Status.STATUS_CODE_UNSET:
            span.status.CopyFrom(Status(code=Status.STATUS_CODE_ERROR, message=message))
        set_attributes(span.attributes, {name: one for name, one in said.items() if name not in present})
        return True

    def pending(self, trace_id: bytes) -> Iterator[ResourceSpans]:
        """The spans of a trace that have started and not arrived: without an end, with what is known."""
        for start in self._store.pending(trace_id):
            yield self.begun(start)

    def begun(self, start: Fact) -> ResourceSpans:
        """The span that a start fact began: without an end, with what is known so far."""
        envelope = ResourceSpans()
        resource = self._store.resource(start.instance)
        if resource is not None:
            envelope.resource.ParseFromString(resource)
        at = start.attributes
        kind = at.get(a.PLAYHEAD_SPAN_KIND)
        span = envelope.scope_spans.add().spans.add(
            trace_id=start.trace_id,
            span_id=start.span_id,
            parent_span_id=_parent_of(start),
            name=str(at.get(a.PLAYHEAD_SPAN_NAME, "")),
            kind=kind if isinstance(kind, int) and kind in Span.SpanKind.values() else 0,  # type: ignore[arg-type]
            start_time_unix_nano=start.time_ns,
        )
        found = {name: value for name, value in at.items() if name not in _BOOKKEEPING}
        set_attributes(span.attributes, self._so_far(start) | found)
        return envelope

    def _so_far(self, start: Fact) -> dict[str, Any]:
        """Attributes that the last exchange below a span shows so far."""
        exchange = self._exchange_below(start)
        if exchange is None:
            return {}
        found: dict[str, Any] = {}
        status = exchange.head.get(a.HTTP_RESPONSE_STATUS_CODE)
        wire = wire_of(*request_line(exchange.ask.key))
        if start.attributes.get(a.GEN_AI_OPERATION_NAME) is None:
            return {} if status is None else {a.HTTP_RESPONSE_STATUS_CODE: status}
        if wire is None:
            return {}
        derived = self._derive(start.instance, exchange, wire)
        if derived is not None:
            found |= derived.attributes
        found[a.PLAYHEAD_WIRE] = wire
        found[a.PLAYHEAD_EXCHANGE_REF] = f"{start.instance.hex()}/{exchange.id}"
        return found

    def _exchange_below(self, start: Fact) -> Exchange | None:
        """The last exchange that was begun in a span or in one of its descendants."""
        tape = self._tape(start.instance)
        below = {start.span_id}
        last: ExchangeId | None = None
        for fact in tape.facts(start.seq - 1):  # the fact of a request may contain the span start itself
            if fact.trace_id != start.trace_id:
                continue
            for begun in reversed(starts_of(fact)):  # enclosing spans first
                if _parent_of(begun) in below:
                    below.add(begun.span_id)
            if fact.name == e.PLAYHEAD_EXCHANGE_REQUEST and fact.span_id in below:
                last = fact.exchange
        return None if last is None else tape.exchange(last)

    def _derive(self, instance: bytes, exchange: Exchange, wire: str) -> Derived | None:
        tape: Tape = self._tape(instance)
        try:
            request, chunks = _bytes_of(tape, exchange)
        except TapeError:
            # The tape of a fork does not repeat what its origin's tape holds.
            whole = self._linked(instance)
            found = None if whole is None else whole.exchange(exchange.id)
            if whole is None or found is None:
                return None
            try:
                request, chunks = _bytes_of(whole, found)
            except TapeError:
                return None
        _, url = request_line(exchange.ask.key)
        return derive(wire, request, response_of(exchange, chunks), self._cache, url)

    def _linked(self, instance: bytes) -> LinkedTape | None:
        tape = self._tape(instance)
        last, found = self._of_forks.get(instance, (-1, None))
        if last != tape.last():
            whole = linked(self._store, tape)
            found = whole if isinstance(whole, LinkedTape) else None
            self._of_forks = {instance: (tape.last(), found)}
        return found

    def _tape(self, instance: bytes) -> StoredTape:
        tape = self._tapes.get(instance)
        if tape is None:
            tape = self._tapes[instance] = self._store.tape(instance)
            if len(self._tapes) > TAPES_KEPT:
                self._tapes.popitem(last=False)
        return tape


def _realtime_span(
    envelope: ResourceSpans, call: RealtimeCall, number: int, reference: str
) -> ResourceSpans:
    """The span of a call over the connection whose span is in ``envelope``."""
    connection = span_of(envelope)
    host = str(attributes_of(connection, _REQUEST).get(a.SERVER_ADDRESS, ""))
    said: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_REF: reference}
    said |= call.attributes | call.at_host(provider_at(host))
    made = ResourceSpans(resource=envelope.resource, schema_url=envelope.schema_url)
    scoped = made.scope_spans.add(scope=envelope.scope_spans[0].scope)
    span = scoped.spans.add(
        trace_id=connection.trace_id,
        span_id=realtime_span_id(connection.span_id, number),
        parent_span_id=connection.span_id,
        name=call_name(said),
        kind=Span.SPAN_KIND_CLIENT,
        start_time_unix_nano=call.started_ns,
        end_time_unix_nano=call.ended_ns or connection.end_time_unix_nano,
    )
    if call.error_type:
        span.status.code = Status.STATUS_CODE_ERROR
        span.status.message = call.error_message
    set_attributes(span.attributes, said)
    return made


def whole_span(store: TapeStore, stored: StoredSpan) -> ResourceSpans:
    """A span with the attributes that it left out. For many spans of one run, use one `Deriver`."""
    return Deriver(store).whole(stored)


def pending_spans(store: TapeStore, trace_id: bytes) -> Iterator[ResourceSpans]:
    """The spans of a trace that have started and not arrived: without an end, with what is known."""
    return Deriver(store).pending(trace_id)


def _bytes_of(tape: Tape, exchange: Exchange) -> tuple[bytes, list[bytes]]:
    """The request body and the chunks of the answer. `TapeError` if the tape does not hold them."""
    return tape.read(exchange.ask.body), [tape.read(part.data) for part in exchange.parts]


def response_of(exchange: Exchange, chunks: list[bytes]) -> WireResponse:
    """The response of an exchange, for `playhead_genai.providers.derive`."""
    if exchange.id.kind == "grpc":
        return grpc_response(exchange, chunks)
    status = exchange.head.get(a.HTTP_RESPONSE_STATUS_CODE)
    flat: Any = exchange.head.get(a.PLAYHEAD_HTTP_HEADERS)
    texts = [str(text) for text in cast(list[Any], flat)] if isinstance(flat, list) else []
    return WireResponse(
        status_code=status if isinstance(status, int) else None,
        headers=list(zip(texts[::2], texts[1::2], strict=False)),
        chunks=chunks,
        complete=exchange.end is not None and exchange.end.how == "complete",
    )


def span_of(envelope: ResourceSpans) -> Span:
    """The single span in the `ResourceSpans` of a `StoredSpan`."""
    return envelope.scope_spans[0].spans[0]


def attributes_of(span: Span, names: frozenset[str]) -> dict[str, Any]:
    """The attributes of a span with these names."""
    return {pair.key: value_of(pair.value) for pair in span.attributes if pair.key in names}


def reference_of(at: dict[str, Any]) -> tuple[bytes, ExchangeId] | None:
    """Instance and id of the exchange that a span's messages come from; None if it names none."""
    instance, _, exchange = str(at.get(a.PLAYHEAD_EXCHANGE_REF, "")).partition("/")
    try:
        return bytes.fromhex(instance), ExchangeId.parse(exchange)
    except ValueError:
        return None


def request_reference(envelope: ResourceSpans) -> tuple[bytes, ExchangeId] | None:
    """Instance and id of the exchange that the span of a request is of; None if it names none."""
    at = attributes_of(span_of(envelope), _REQUEST)
    told = {pair.key: value_of(pair.value) for pair in envelope.resource.attributes}
    reference = f"{told.get(a.PLAYHEAD_INSTANCE, '')}/{at.get(a.PLAYHEAD_EXCHANGE_ID, '')}"
    return reference_of({a.PLAYHEAD_EXCHANGE_REF: reference})


def _left_out(span: Span, at: dict[str, Any]) -> list[str]:
    """Names of the attributes that can be derived and are not on the span."""
    names: Any = at.get(a.PLAYHEAD_DERIVED)
    if not isinstance(names, list):
        return []
    present = {pair.key for pair in span.attributes}
    return [name for name in cast(list[Any], names) if isinstance(name, str) and name not in present]


def _parent_of(start: Fact) -> bytes:
    try:
        return bytes.fromhex(str(start.attributes.get(a.PLAYHEAD_SPAN_PARENT, "")))
    except ValueError:
        return b""


_REQUEST = frozenset(
    (
        a.HTTP_REQUEST_METHOD,
        a.URL_FULL,
        a.RPC_SYSTEM_NAME,
        a.RPC_SYSTEM,
        a.RPC_SERVICE,
        a.RPC_METHOD,
        a.SERVER_ADDRESS,
        a.PLAYHEAD_EXCHANGE_ID,
        a.PLAYHEAD_INSTANCE,
    )
)
_RESTING = frozenset((a.PLAYHEAD_RESTS_ON, a.PLAYHEAD_DERIVED, a.PLAYHEAD_EXCHANGE_REF, a.PLAYHEAD_WIRE))
