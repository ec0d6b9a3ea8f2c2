"""A trace in the format of Jaeger's UI: spans with tags and logs, and a separate table of processes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, Span

from playhead_core.otlp import value_of
from playhead_receiver.api.compatibility.spans import ERROR, NO_SERVICE
from playhead_receiver.api.jaeger.finding import KINDS, text_of
from playhead_semconv import attributes as a

_TYPES = {bool: "bool", int: "int64", float: "float64", bytes: "binary"}


def ui_trace(trace_id: bytes, envelopes: Iterable[ResourceSpans]) -> dict[str, Any]:
    """A trace; without ``envelopes`` it has no spans."""
    processes: dict[bytes, tuple[str, dict[str, Any]]] = {}
    spans: list[dict[str, Any]] = []
    for envelope in envelopes:
        key = envelope.resource.SerializeToString(deterministic=True)
        if key not in processes:
            processes[key] = (f"p{len(processes) + 1}", _process(envelope))
        for scoped in envelope.scope_spans:
            for span in scoped.spans:
                spans.append(_span(span, scoped.scope, processes[key][0]))
    return {
        "traceID": trace_id.hex(),
        "spans": spans,
        "processes": dict(processes.values()),
        "warnings": None,
    }


def _process(envelope: ResourceSpans) -> dict[str, Any]:
    pairs = [pair for pair in envelope.resource.attributes if pair.key != a.SERVICE_NAME]
    names = [pair.value.string_value for pair in envelope.resource.attributes if pair not in pairs]
    return {"serviceName": (names or [""])[-1] or NO_SERVICE, "tags": _tags(pairs)}


def _span(span: Span, scope: Any, process: str) -> dict[str, Any]:
    tags = _tags(span.attributes)
    if scope.name:
        tags.append(_tag("otel.scope.name", scope.name))
    if scope.version:
        tags.append(_tag("otel.scope.version", scope.version))
    if 0 < span.kind < len(KINDS):
        tags.append(_tag("span.kind", KINDS[span.kind]))
    if span.status.code:
        failed = span.status.code == ERROR
        tags.append(_tag("otel.status_code", "ERROR" if failed else "OK"))
        if failed:
            tags.append(_tag("error", True))
        if span.status.message:
            tags.append(_tag("otel.status_description", span.status.message))
    if span.trace_state:
        tags.append(_tag("w3c.tracestate", span.trace_state))
    references: list[dict[str, str]] = []
    if span.parent_span_id:
        references.append(_reference("CHILD_OF", span.trace_id, span.parent_span_id))
    references += (_reference("FOLLOWS_FROM", link.trace_id, link.span_id) for link in span.links)
    return {
        "traceID": span.trace_id.hex(),
        "spanID": span.span_id.hex(),
        "flags": span.flags & 0xFF,
        "operationName": span.name,
        "references": references,
        "startTime": span.start_time_unix_nano // 1000,
        "duration": max(span.end_time_unix_nano - span.start_time_unix_nano, 0) // 1000,
        "tags": tags,
        "logs": [
            {
                "timestamp": event.time_unix_nano // 1000,
                "fields": [_tag("event", event.name), *_tags(event.attributes)],
            }
            for event in span.events
        ],
        "processID": process,
        "warnings": None,
    }


def _reference(kind: str, trace_id: bytes, span_id: bytes) -> dict[str, str]:
    return {"refType": kind, "traceID": trace_id.hex(), "spanID": span_id.hex()}


def _tags(pairs: Iterable[KeyValue]) -> list[dict[str, Any]]:
    return [_tag(pair.key, value_of(pair.value)) for pair in pairs]


def _tag(key: str, value: Any) -> dict[str, Any]:
    kind = _TYPES.get(cast(Any, type(value)), "string")
    if kind == "string" and not isinstance(value, str):
        value = "" if value is None else text_of(value)
    return {"key": key, "type": kind, "value": msgspec.to_builtins(value)}
