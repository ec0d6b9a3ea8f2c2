"""Finished spans on their way into the spool."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.resource.v1 import resource_pb2
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from playhead_exporter.notices import Notices
from playhead_semconv import attributes as a
from playhead_semconv.frames import SpanRecord


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


class _Unsaid(Resource):
    """Says nothing of the process. The SDK's is written as JSON each time that it is looked up."""

    __hash__ = object.__hash__


_UNSAID = _Unsaid({})
_latest: tuple[Resource, resource_pb2.Resource] | None = None
"""The resource of the latest span, encoded: it is hardly ever another one."""


def encode_span(span: ReadableSpan, whole: bool) -> bytes:
    """`ResourceSpans` bytes of one span; unless ``whole`` without what its exchange tells."""
    global _latest
    resource, latest = span.resource, _latest
    known = latest[1] if latest is not None and latest[0] is resource else None
    left_out = left_out_of(span, whole)
    bare = _without(span, left_out, resource if known is None else _UNSAID)
    encoded = encode_spans([bare]).resource_spans[0]
    inner = encoded.scope_spans[0].spans[0]
    inner.dropped_attributes_count = span.dropped_attributes
    inner.dropped_events_count = span.dropped_events
    inner.dropped_links_count = span.dropped_links
    if known is None:
        kept = resource_pb2.Resource()
        kept.CopyFrom(encoded.resource)
        _latest = resource, kept
    else:
        encoded.resource.CopyFrom(known)
        encoded.schema_url = resource.schema_url
    return encoded.SerializeToString()


def left_out_of(span: ReadableSpan, whole: bool) -> frozenset[str]:
    """Attributes that do not travel with the span."""
    attributes = span.attributes or {}
    derived: Any = attributes.get(a.PLAYHEAD_DERIVED)
    if whole or not derived or not isinstance(derived, Sequence) or isinstance(derived, str):
        return frozenset()
    if a.PLAYHEAD_EXCHANGE_REF not in attributes or a.PLAYHEAD_WIRE not in attributes:
        return frozenset()
    return frozenset(str(name) for name in derived)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _without(span: ReadableSpan, names: frozenset[str], resource: Resource) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=resource,
        attributes={k: v for k, v in (span.attributes or {}).items() if k not in names},
        events=span.events,
        links=span.links,
        kind=span.kind,
        status=span.status,
        start_time=span.start_time,
        end_time=span.end_time,
        instrumentation_scope=span.instrumentation_scope,
    )
