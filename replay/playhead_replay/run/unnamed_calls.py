"""Finds calls to a model that no instrumentation named, by the bytes of their requests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.messages import response_of
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step, is_logical
from playhead_semconv import attributes as a
from playhead_semconv.errors import TapeError
from playhead_semconv.wire import call_name, derive, recognised, said_by, wire_of


def tell_calls(steps: Iterable[Step], exchanges: Iterable[RecordedExchange]) -> None:
    """Add call attributes to the spans of such requests: model, tokens, finish reason, messages."""
    asked = [step.span for step in steps if _may_be(step.span)]
    if not asked:
        return
    found = {(one.instance, str(one.id)): one for one in exchanges}
    for span in asked:
        exchange = found.get((span.instance, str(span.attributes.get(a.PLAYHEAD_EXCHANGE_ID, ""))))
        said = {} if exchange is None else _said(span, exchange)
        if said:
            span.attributes = said | span.attributes
            span.name = call_name(said)


def _may_be(span: Span) -> bool:
    method = str(span.attributes.get(a.HTTP_REQUEST_METHOD, ""))
    return not is_logical(span.attributes) and wire_of(method, span.url.path) is not None


def _said(span: Span, exchange: RecordedExchange) -> dict[str, Any]:
    method, _, url = exchange.key.partition(" ")
    try:
        request, response = exchange.request, response_of(exchange)
    except TapeError:
        return {}
    wire = recognised(method, url, request)
    if wire is None:
        return {}
    chunks = exchange.exchange.parts
    waited_ns = chunks[0].time_ns - span.started_ns if chunks else None
    host = str(span.attributes.get(a.SERVER_ADDRESS, ""))
    derived = derive(wire, request, response, url=url)
    said: dict[str, Any] = dict(said_by(wire, derived, host, waited_ns))
    return said | {a.PLAYHEAD_EXCHANGE_REF: f"{exchange.instance}/{exchange.id}"}
