"""Spans of the store in the form of the query API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.errors import PlayheadError
from playhead_core.otlp import attributes_of
from playhead_receiver.api.models.runs import SpanLine
from playhead_receiver.api.tree import Line
from playhead_receiver.storage import Store
from playhead_receiver.storage.spans.span_view import open_frame, parse_span, resource_summary, words_of
from playhead_semconv import attributes as a

_STATUSES = {trace_pb2.Status.STATUS_CODE_OK: "ok", trace_pb2.Status.STATUS_CODE_ERROR: "error"}


def span_lines(store: Store, trace_id: bytes, window: Sequence[Line]) -> list[SpanLine]:
    """The lines of a window, completed from the spans themselves: names, kinds, errors."""
    looks = _looks(store, trace_id, [line.row.span_id for line in window])
    if any(line.row.end_ns is None for line in window):
        looks |= _pending_looks(store, trace_id)
    return [_span_line(line, looks.get(line.row.span_id, _Look())) for line in window]


@dataclass(frozen=True, slots=True)
class _Look:
    """Fields that are read from the span itself."""

    name: str = ""
    kind: int = 0
    error: str = ""
    operation: str = ""
    tool: str = ""
    method: str = ""
    url: str = ""
    status_code: int | None = None


def _looks(store: Store, trace_id: bytes, ids: Sequence[bytes]) -> dict[bytes, _Look]:
    found: dict[bytes, _Look] = {}
    for stored in store.spans(trace_id, ids):
        try:
            resource, span = open_frame(stored.otlp)
            view = parse_span(span)
            words = words_of(view, bool(resource_summary(resource).instance))
        except PlayheadError:  # `verify` reports it
            continue
        error = view.status.message.strip().splitlines()[:1] or [_string_value(words, a.ERROR_TYPE)]
        found[stored.span_id] = _Look(
            view.name,
            view.kind,
            error[0] if view.status.code == trace_pb2.Status.STATUS_CODE_ERROR else "",
            _string_value(words, a.GEN_AI_OPERATION_NAME),
            _string_value(words, a.GEN_AI_TOOL_NAME),
            _string_value(view.attributes, a.HTTP_REQUEST_METHOD),
            _string_value(view.attributes, a.URL_FULL),
            _number(view.attributes, a.HTTP_RESPONSE_STATUS_CODE),
        )
    return found


def _string_value(words: Any, name: str) -> str:
    value = words.get(name)
    return "" if value is None else value.string_value


def _number(words: Any, name: str) -> int | None:
    value = words.get(name)
    return None if value is None or not value.HasField("int_value") else value.int_value


def _pending_looks(store: Store, trace_id: bytes) -> dict[bytes, _Look]:
    found: dict[bytes, _Look] = {}
    for start in store.pending(trace_id):
        at = start.attributes
        kind = at.get(a.PLAYHEAD_SPAN_KIND, 0)
        found[start.span_id] = _Look(
            str(at.get(a.PLAYHEAD_SPAN_NAME, "")),
            kind if isinstance(kind, int) else 0,
            "",
            str(at.get(a.GEN_AI_OPERATION_NAME, "")),
            str(at.get(a.GEN_AI_TOOL_NAME, "")),
            str(at.get(a.HTTP_REQUEST_METHOD, "")),
            str(at.get(a.URL_FULL, "")),
        )
    return found


def pending_names(store: Store, trace_id: bytes) -> dict[bytes, str]:
    """Names of the spans of a run that have started and not arrived, by span id."""
    return {span_id: look.name for span_id, look in _pending_looks(store, trace_id).items()}


def _span_line(line: Line, look: _Look) -> SpanLine:
    row = line.row
    return SpanLine(
        span_id=row.span_id.hex(),
        parent_id=row.parent.hex() or None,
        depth=line.depth,
        children=line.children,
        descendants=line.descendants,
        failures=line.failures,
        name=look.name,
        kind=look.kind,
        started_ns=row.start_ns,
        ended_ns=row.end_ns,
        failed=row.failed,
        error=look.error or ("error" if row.failed else None),
        operation=look.operation,
        tool=look.tool,
        model=row.label.model,
        method=look.method,
        url=look.url,
        status_code=look.status_code,
        step=line.step,
        attempt=row.label.attempt and not line.step,
        input_tokens=row.usage.input,
        output_tokens=row.usage.output,
    )


def whole_span(envelope: ResourceSpans, pending: bool) -> dict[str, Any]:
    """A span with all its content, as `WholeSpan` describes it."""
    scoped = envelope.scope_spans[0]
    span = scoped.spans[0]
    return dict[str, Any](
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex() or None,
        name=span.name,
        kind=int(span.kind),
        started_ns=span.start_time_unix_nano,
        ended_ns=None if pending else span.end_time_unix_nano,
        status=_STATUSES.get(span.status.code, "unset"),
        status_message=span.status.message,
        attributes=attributes_of(span.attributes),
        events=[
            dict[str, Any](
                name=event.name,
                time_ns=event.time_unix_nano,
                attributes=attributes_of(event.attributes),
            )
            for event in span.events
        ],
        links=[
            dict[str, Any](
                trace_id=link.trace_id.hex(),
                span_id=link.span_id.hex(),
                attributes=attributes_of(link.attributes),
            )
            for link in span.links
        ],
        resource=attributes_of(envelope.resource.attributes),
        scope=dict[str, Any](
            name=scoped.scope.name,
            version=scoped.scope.version,
            attributes=attributes_of(scoped.scope.attributes),
        ),
    )
