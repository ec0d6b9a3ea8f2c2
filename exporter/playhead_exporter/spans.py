"""Finished spans on their way into the spool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope as InstrumentationScopeMessage
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, SpanFlags
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import SpanContext, TraceState

from playhead_exporter.notices import Notices
from playhead_semconv import attributes as a
from playhead_semconv.frames import SpanRecord
from playhead_semconv.otlp.values import set_attributes

SPANS_FIELD = ScopeSpans.SPANS_FIELD_NUMBER
SCOPE_SPANS_FIELD = ResourceSpans.SCOPE_SPANS_FIELD_NUMBER


class SpoolSpanProcessor(SpanProcessor):
    """Keeps every finished span, sampled or not, as one `SpanRecord`.

    A span that says from which exchange its messages can be derived leaves them out, unless
    ``whole()``: the endpoint is known not to derive them.
    """

    def __init__(
        self,
        keep: Callable[[SpanRecord], None],
        whole: Callable[[], bool],
        flush: Callable[[float], bool],
        notices: Notices,
    ) -> None:
        self._keep = keep
        self._whole = whole
        self._flush = flush
        self._notices = notices

    def on_end(self, span: ReadableSpan) -> None:
        """Encode the span and put it into the spool. Never raises."""
        try:
            self._keep(SpanRecord(encode_span(span, self._whole())))
        except (
            Exception
        ) as problem:  # telemetry never hurts the agent, whatever an attribute's class does
            self._notices.say(f"span {type(problem)}", f"a span could not be kept: {problem!r}")

    def shutdown(self) -> None:
        """Nothing: what is in the spool is safe, and more may come."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Deliver what is there; False if that did not succeed."""
        return self._flush(timeout_millis / 1000)


_Wrapped = tuple[Resource, InstrumentationScope | None, bytes, bytes]
_latest: _Wrapped | None = None
"""Resource and scope of the latest span with their encoded bytes. Most spans share them."""


def encode_span(span: ReadableSpan, whole: bool) -> bytes:
    """`ResourceSpans` bytes of one span; unless ``whole`` without what its exchange tells."""
    context = span.get_span_context()
    assert context is not None
    left_out = left_out_of(span, whole)
    attributes = span.attributes or {}
    encoded = Span(
        trace_id=context.trace_id.to_bytes(16, "big"),
        span_id=context.span_id.to_bytes(8, "big"),
        trace_state=_state(context.trace_state),
        parent_span_id=span.parent.span_id.to_bytes(8, "big") if span.parent else b"",
        name=span.name,
        kind=span.kind.value + 1,  # pyright: ignore[reportArgumentType]
        start_time_unix_nano=span.start_time or 0,
        end_time_unix_nano=span.end_time or 0,
        dropped_attributes_count=span.dropped_attributes,
        dropped_events_count=span.dropped_events,
        dropped_links_count=span.dropped_links,
        flags=_flags(span.parent),
    )
    if left_out:
        attributes = {name: value for name, value in attributes.items() if name not in left_out}
    set_attributes(encoded.attributes, attributes)
    for event in span.events:
        kept = encoded.events.add(
            name=event.name,
            time_unix_nano=event.timestamp,
            dropped_attributes_count=event.dropped_attributes,
        )
        set_attributes(kept.attributes, event.attributes or {})
    for link in span.links:
        to = encoded.links.add(
            trace_id=link.context.trace_id.to_bytes(16, "big"),
            span_id=link.context.span_id.to_bytes(8, "big"),
            dropped_attributes_count=link.dropped_attributes,
            flags=_flags(link.context),
        )
        set_attributes(to.attributes, link.attributes or {})
    status = span.status
    encoded.status.SetInParent()
    encoded.status.code = status.status_code.value  # pyright: ignore[reportAttributeAccessIssue]
    if status.description is not None:
        encoded.status.message = status.description
    return _wrapped(span.resource, span.instrumentation_scope, encoded.SerializeToString())


def _state(state: TraceState | None) -> str:
    return ",".join([f"{key}={value}" for key, value in state.items()]) if state else ""


def _flags(parent: SpanContext | None) -> int:
    flags = SpanFlags.SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK
    if parent and parent.is_remote:
        flags |= SpanFlags.SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK
    return flags


def _wrapped(resource: Resource, scope: InstrumentationScope | None, span: bytes) -> bytes:
    """``span`` within its scope and its resource. A message is its fields, one after the other."""
    global _latest
    latest = _latest
    if latest is None or latest[0] is not resource or latest[1] is not scope:
        around = ScopeSpans(scope=InstrumentationScopeMessage(), schema_url="")
        if scope is not None:
            around.scope.name = scope.name
            around.scope.version = scope.version or ""
            set_attributes(around.scope.attributes, scope.attributes or {})
            around.schema_url = scope.schema_url or ""
        outside = ResourceSpans(schema_url=resource.schema_url)
        outside.resource.SetInParent()
        set_attributes(outside.resource.attributes, resource.attributes)
        within, rest = around.SerializeToString(), outside.SerializeToString()
        _latest = latest = resource, scope, within, rest
    body = latest[2] + _field(SPANS_FIELD, span)
    return latest[3] + _field(SCOPE_SPANS_FIELD, body)


def _field(number: int, data: bytes) -> bytes:
    """A length-delimited field of a protobuf message."""
    size, varint = len(data), bytearray((number << 3 | 2,))
    while size > 127:
        varint.append(size & 127 | 128)
        size >>= 7
    varint.append(size)
    return bytes(varint) + data


def left_out_of(span: ReadableSpan, whole: bool) -> frozenset[str]:
    """Attributes that do not travel with the span."""
    attributes = span.attributes or {}
    derived: Any = attributes.get(a.PLAYHEAD_DERIVED)
    if whole or not derived or not isinstance(derived, Sequence) or isinstance(derived, str):
        return frozenset()
    if a.PLAYHEAD_EXCHANGE_REF not in attributes or a.PLAYHEAD_WIRE not in attributes:
        return frozenset()
    return frozenset(str(name) for name in derived)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
