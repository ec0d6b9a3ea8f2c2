"""Finds calls to a model that no instrumentation named, by the bytes of their requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from playhead_core.errors import TapeError
from playhead_core.facts import Fidelity
from playhead_genai.attempts import before, is_next_attempt
from playhead_genai.model_providers import provider_at
from playhead_genai.providers import call_name, derive, failure_of, recognised, span_attributes, wire_of
from playhead_genai.providers.realtime.calls import RealtimeCall
from playhead_genai.providers.realtime.connection import realtime_calls, realtime_span_id, realtime_wire
from playhead_genai.providers.xai.grpc import request_line, request_told
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.spans import KIND_CLIENT, Span
from playhead_replay.run.steps import Step, is_logical, is_request, is_rpc
from playhead_semconv import attributes as a


def tell_calls(steps: Sequence[Step], exchanges: Iterable[RecordedExchange]) -> list[Span]:
    """Add call attributes to the spans of such requests: model, tokens, finish reason, messages.

    Return the spans that are calls now.
    """
    within = [span for step in steps for span in step.attempts if span is not step.span]
    inside = [span for span in within if is_rpc(span) and _may_be(span)]
    asked = [step.span for step in steps if _may_be(step.span)] + inside
    if not asked:
        return []
    found = {(one.instance, str(one.id)): one for one in exchanges}
    for span in asked:
        exchange = found.get((span.instance, str(span.attributes.get(a.PLAYHEAD_EXCHANGE_ID, ""))))
        if exchange is not None:
            _tell(span, exchange)
    return [span for span in asked if is_logical(span.attributes)]


def join_attempts(steps: list[Step], exchanges: Iterable[RecordedExchange]) -> list[Step]:
    """Return the steps with one for each call that was sent several times, which is its last attempt."""
    told = {step.span.span_id: step for step in steps if a.PLAYHEAD_WIRE in step.span.attributes}
    told = {id: step for id, step in told.items() if is_request(step.span)}
    if len(told) < 2:
        return steps
    sent = {(one.instance, one.id): one for one in exchanges if one.span_id in told}
    resent: set[int] = set()
    for (instance, id), later in sent.items():
        earlier_id = before(id)
        earlier = None if earlier_id is None else sent.get((instance, earlier_id))
        if earlier is None or not is_next_attempt(later.exchange, earlier.exchange):
            continue
        step, first = told[later.span_id], told[earlier.span_id]
        step.attempts = [*first.attempts, *step.attempts]
        step.span.attributes.setdefault(a.HTTP_REQUEST_RESEND_COUNT, len(step.attempts) - 1)
        resent.add(first.number)
    left = [step for step in steps if step.number not in resent]
    for number, step in enumerate(left, 1):
        step.number = number
    return left


def add_realtime_calls(roots: Iterable[Span], exchanges: Iterable[RecordedExchange]) -> None:
    """Put the calls over WebSockets below the spans of these, where a store has not done so yet."""
    spoken = {
        (one.instance, str(one.id)): one
        for one in exchanges
        if one.id.kind == "websocket" and realtime_wire(one.key.partition(" ")[2])
    }
    if not spoken:
        return
    for span in [span for root in roots for span in root.walk()]:
        exchange = spoken.get((span.instance, str(span.attributes.get(a.PLAYHEAD_EXCHANGE_ID, ""))))
        if exchange is not None:
            known = {child.span_id for child in span.children}
            span.children += [one for one in _realtime_spans(span, exchange) if one.span_id not in known]


def _realtime_spans(span: Span, exchange: RecordedExchange) -> list[Span]:
    try:
        chunks = exchange.chunks
        calls = realtime_calls(
            exchange.key.partition(" ")[2],
            exchange.exchange,
            lambda sent, number: exchange.sent(number) if sent else chunks[number].data,
        )
    except TapeError:
        return []
    return [_realtime_span(span, exchange, call, number) for number, call in enumerate(calls)]


def _realtime_span(span: Span, exchange: RecordedExchange, call: RealtimeCall, number: int) -> Span:
    said: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_REF: f"{exchange.instance}/{exchange.id}"}
    host = str(span.attributes.get(a.SERVER_ADDRESS, ""))
    said |= call.attributes | call.at_host(provider_at(host))
    return Span(
        trace_id=span.trace_id,
        span_id=realtime_span_id(bytes.fromhex(span.span_id), number).hex(),
        parent_id=span.span_id,
        name=call_name(said),
        kind=KIND_CLIENT,
        started_ns=call.started_ns,
        ended_ns=call.ended_ns or span.ended_ns,
        attributes=said,
        status="error" if call.error_type else "unset",
        status_message=call.error_message,
        resource=span.resource,
        instance=span.instance,
    )


def _may_be(span: Span) -> bool:
    return not is_logical(span.attributes) and wire_of(*request_told(span.attributes)) is not None


def _tell(span: Span, exchange: RecordedExchange) -> None:
    """Add to the span of a request what its bytes say; nothing where it is no call."""
    method, url = request_line(exchange.key)
    try:
        request, response = exchange.request, exchange.wire_response
    except TapeError:
        return
    wire = recognised(method, url, request)
    if wire is None:
        return
    chunks = exchange.exchange.parts
    waited_ns = chunks[0].time_ns - span.started_ns if chunks else None
    host = str(span.attributes.get(a.SERVER_ADDRESS, ""))
    derived = derive(wire, request, response, url=url)
    said: dict[str, Any] = dict(span_attributes(wire, derived, host, waited_ns))
    said[a.PLAYHEAD_EXCHANGE_REF] = f"{exchange.instance}/{exchange.id}"
    fidelity = exchange.exchange.ask.details.get(a.PLAYHEAD_FIDELITY, Fidelity.LIVE)
    if fidelity != Fidelity.LIVE:  # a tape answered: its tokens were not used again
        said[a.PLAYHEAD_FIDELITY] = fidelity
    span.attributes = said | span.attributes
    span.name = call_name(said)
    kind, message = failure_of(derived)
    if kind and span.status == "unset":
        span.status, span.status_message = "error", message
