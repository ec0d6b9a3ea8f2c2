"""A span is encoded as the SDK's own exporter encodes it."""

from __future__ import annotations

import enum

import pytest
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from playhead_exporter.encoded import encode_span


class Number(enum.IntEnum):
    THREE = 3


class Word(enum.StrEnum):
    YES = "yes"


REMOTE = SpanContext(5, 7, True, TraceFlags(1), TraceState([("one", "1"), ("two", "2")]))


def ended(
    provider: TracerProvider, parent: SpanContext | None = None, scope: str = "some"
) -> ReadableSpan:
    tracer = provider.get_tracer(scope, "1.2", schema_url="https://schema", attributes={"of": "scope"})
    context = None if parent is None else trace.set_span_in_context(trace.NonRecordingSpan(parent))
    span = tracer.start_span(
        "named ✓",
        context,
        SpanKind.CLIENT,
        attributes={"number": Number.THREE, "word": Word.YES, "yes": True, "half": 0.5, "none": None},
        links=[Link(SpanContext(1, 2, is_remote=True), {"why": "because"})],
    )
    span.set_attributes(
        {"list": [1, 2], "words": ("a", "b"), "map": {"deep": [1, {"er": None}]}, "raw": b"\xff"}
    )
    span.add_event("happened", {"at": 1}, timestamp=17)
    span.set_status(Status(StatusCode.ERROR, "it failed"))
    span.end()
    assert isinstance(span, ReadableSpan)
    return span


@pytest.mark.parametrize("parent", [None, REMOTE, SpanContext(8, 9, False, TraceFlags(1))])
def test_it_is_what_the_sdk_makes(parent: SpanContext | None):
    limits = SpanLimits(max_span_attributes=5, max_events=3)
    for provider in (
        TracerProvider(resource=Resource({"service.name": "a", "long": "x" * 300}, "https://resource")),
        TracerProvider(resource=Resource({"service.name": "b"}), span_limits=limits),
    ):
        for scope in ("some", "other", "some"):
            span = ended(provider, parent, scope)
            [expected] = encode_spans([span]).resource_spans
            assert ResourceSpans.FromString(encode_span(span, whole=True)) == expected
