"""A finished span as OTLP, encoded without a protobuf library, which few agents load.

Field numbers are those of opentelemetry-proto, `opentelemetry/proto/trace/v1/trace.proto`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceState

from playhead_core.otlp_bytes import (
    attributes,
    field,
    fixed32,
    fixed64,
    small,
    text,
    whole_number,
)
from playhead_semconv import attributes as a

_LOCAL, _REMOTE = (0x100).to_bytes(4, "little"), (0x300).to_bytes(4, "little")
"""Flags of a span and of a link: it is known whether the other span is remote; it is not, or it is."""

_Wrapped = tuple[Resource, InstrumentationScope | None, bytes, bytes]
_latest: _Wrapped | None = None
"""Resource and scope of the latest span with their encoded bytes. Most spans share them."""


def encode_span(span: ReadableSpan, whole: bool) -> bytes:
    """Return `ResourceSpans` bytes of one span, without derivable attributes unless ``whole``."""
    context = span.get_span_context()
    assert context is not None
    left_out = left_out_of(span, whole)
    named = span.attributes or {}
    if left_out:
        named = {name: value for name, value in named.items() if name not in left_out}
    status = span.status
    description = text(2, status.description) if status.description is not None else b""
    parts = [
        b"\n\x10" + context.trace_id.to_bytes(16, "big"),
        b"\x12\x08" + context.span_id.to_bytes(8, "big"),
        text(3, _state(context.trace_state)) if context.trace_state else b"",
        b'"\x08' + span.parent.span_id.to_bytes(8, "big") if span.parent else b"",
        text(5, span.name),
        whole_number(6, span.kind.value + 1),
        _time(7, span.start_time),
        _time(8, span.end_time),
        attributes(9, named),
        small(10, span.dropped_attributes),
    ]
    for event in span.events:
        encoded = _time(1, event.timestamp) + text(2, event.name) + attributes(3, event.attributes or {})
        parts.append(field(11, encoded + small(4, event.dropped_attributes)))
    parts.append(small(12, span.dropped_events))
    for link in span.links:
        to = field(1, link.context.trace_id.to_bytes(16, "big"))
        to += field(2, link.context.span_id.to_bytes(8, "big")) + attributes(4, link.attributes or {})
        parts.append(
            field(13, to + small(5, link.dropped_attributes) + fixed32(6, _flags(link.context)))
        )
    parts.append(small(14, span.dropped_links))
    parts.append(field(15, description + small(3, status.status_code.value)))
    parts.append(fixed32(16, _flags(span.parent)))
    return _wrapped(span.resource, span.instrumentation_scope, b"".join(parts))


def _time(number: int, time_ns: int | None) -> bytes:
    return fixed64(number, time_ns.to_bytes(8, "little")) if time_ns else b""


def _state(state: TraceState) -> str:
    return ",".join([f"{key}={value}" for key, value in state.items()])


def _flags(parent: SpanContext | None) -> bytes:
    return _REMOTE if parent and parent.is_remote else _LOCAL


def _wrapped(resource: Resource, scope: InstrumentationScope | None, span: bytes) -> bytes:
    """Return ``span`` inside its scope and its resource."""
    global _latest
    latest = _latest
    if latest is None or latest[0] is not resource or latest[1] is not scope:
        within, schema = b"", ""
        if scope is not None:
            within = text(1, scope.name) + text(2, scope.version or "")
            within += attributes(3, scope.attributes or {})
            schema = scope.schema_url or ""
        around = field(1, within) + text(3, schema)
        outside = field(1, attributes(1, resource.attributes)) + text(3, resource.schema_url)
        _latest = latest = resource, scope, around, outside
    return latest[3] + field(2, latest[2] + field(2, span))


def left_out_of(span: ReadableSpan, whole: bool) -> frozenset[str]:
    """Return the attributes that are not sent with the span."""
    attributes = span.attributes or {}
    derived: Any = attributes.get(a.PLAYHEAD_DERIVED)
    if whole or not derived or not isinstance(derived, Sequence) or isinstance(derived, str):
        return frozenset()
    if a.PLAYHEAD_EXCHANGE_REF not in attributes or a.PLAYHEAD_WIRE not in attributes:
        return frozenset()
    return frozenset(str(name) for name in derived)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
