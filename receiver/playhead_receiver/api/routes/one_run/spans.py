"""``/v1/spans``: a whole span, its messages and its exchanges."""

from __future__ import annotations

from typing import Any

import msgspec
from fastapi import APIRouter
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from starlette.responses import Response

from playhead_core.otlp import attributes_of
from playhead_genai.messages import plain
from playhead_receiver.api.context import Reading, RequestContext, SpanId, TraceId
from playhead_receiver.api.lines import whole_span
from playhead_receiver.api.models.spans import SpanExchanges, SpanMessages, WholeSpan
from playhead_receiver.api.problems import NotFound
from playhead_receiver.ingest.otlp_json import export_json
from playhead_receiver.storage.spans.event_messages import add_messages
from playhead_receiver.storage.spans.whole_spans import Deriver
from playhead_replay.run.messages import read_messages

PROTOBUF = "application/x-protobuf"

router = APIRouter(tags=["spans"])


@router.get("/v1/spans/{trace_id}/{span_id}", response_model=WholeSpan)
def show_span(context: Reading, trace_id: TraceId, span_id: SpanId) -> Response:
    """Get a span with its full payload."""
    context.note("read", f"{trace_id}/{span_id}")
    envelope, pending = _find_span(context, bytes.fromhex(trace_id), bytes.fromhex(span_id))
    return Response(msgspec.json.encode(whole_span(envelope, pending)), media_type="application/json")


@router.get("/v1/spans/{trace_id}/{span_id}/otlp", response_model=dict[str, Any])
def show_otlp(context: Reading, trace_id: TraceId, span_id: SpanId) -> Response:
    """Get a span with its full payload, as OTLP JSON."""
    context.note("export", f"{trace_id}/{span_id}")
    envelope, _ = _find_span(context, bytes.fromhex(trace_id), bytes.fromhex(span_id))
    request = ExportTraceServiceRequest(resource_spans=[envelope])
    return Response(export_json(request), media_type="application/json")


@router.get(
    "/v1/spans/{trace_id}/{span_id}/raw",
    response_class=Response,
    responses={200: {"content": {PROTOBUF: {"schema": {"type": "string", "format": "binary"}}}}},
)
def show_raw(context: Reading, trace_id: TraceId, span_id: SpanId) -> Response:
    """Get a span exactly as received, as OTLP `ResourceSpans`."""
    context.note("export", f"{trace_id}/{span_id}")
    for stored in context.store.spans(bytes.fromhex(trace_id), [bytes.fromhex(span_id)]):
        return Response(stored.otlp, media_type=PROTOBUF)
    raise _unknown(trace_id, span_id)


@router.get("/v1/spans/{trace_id}/{span_id}/messages", response_model=SpanMessages)
def show_messages(context: Reading, trace_id: TraceId, span_id: SpanId) -> Response:
    """Get the messages of a model call: input and output."""
    context.note("read", f"{trace_id}/{span_id}")
    envelope, _ = _find_span(context, bytes.fromhex(trace_id), bytes.fromhex(span_id))
    attributes = attributes_of(envelope.scope_spans[0].spans[0].attributes)
    content, elsewhere = context.references.resolved(attributes)
    messages = read_messages(attributes | content)
    content: dict[str, Any] = {
        "trace_id": trace_id,
        "span_id": span_id,
        "system_instructions": [plain(part) for part in messages.system],
        "input_messages": [plain(message) for message in messages.input],
        "output_messages": [plain(message) for message in messages.output],
        "tool_definitions": [plain(tool) for tool in messages.tools],
        "elsewhere": elsewhere,
    }
    return Response(msgspec.json.encode(content), media_type="application/json")


@router.get("/v1/spans/{trace_id}/{span_id}/exchanges", response_model=SpanExchanges)
def show_exchanges(context: Reading, trace_id: TraceId, span_id: SpanId) -> Response:
    """Get the requests and responses of a span and its descendants: headers and bodies, by attempt."""
    context.note("export", f"{trace_id}/{span_id}")
    _find_span(context, bytes.fromhex(trace_id), bytes.fromhex(span_id))
    run = context.load(context.run(trace_id))
    top = next((span for span in run.spans if span.span_id == span_id), None)
    own = set[str]() if top is None else {span.span_id for span in top.walk()}
    found = [one.to_json() for one in run.exchanges if one.span_id in own]
    content = {"trace_id": trace_id, "span_id": span_id, "exchanges": found}
    return Response(msgspec.json.encode(content), media_type="application/json")


def _find_span(context: RequestContext, trace: bytes, span: bytes) -> tuple[ResourceSpans, bool]:
    """A span, whole, and whether it is pending."""
    deriver = Deriver(context.store)
    for stored in context.store.spans(trace, [span]):
        return add_messages(context.store, deriver.whole(stored)), False
    for start in context.store.pending(trace):
        if start.span_id == span:
            return deriver.begun(start), True
    raise _unknown(trace.hex(), span.hex())


def _unknown(trace_id: str, span_id: str) -> NotFound:
    return NotFound(f"there is no span {span_id} in {trace_id}")
