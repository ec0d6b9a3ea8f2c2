"""Spans of the program and of other instrumentors: recorded without credentials, exported untouched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags, TraceState
from support.tapes.recorded_calls import ListSink

from playhead_exporter.encoded import encode_span
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.tracing.light import LightTracer
from playhead_instrumentation.tracing.processor import RecordingProcessor

KNOWN = "zq77opaquevaluewithoutashape5521"
UNKNOWN = "UNKNOWNunderitsname9876543210abc"
SHAPE = "sk-proj-ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Ended(RecordingProcessor):
    """Keeps what the recording would put into the spool."""

    def __init__(self) -> None:
        super().__init__()
        self.spans: list[ReadableSpan] = []

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)


class Recorded:
    def __init__(self, **resource: Any) -> None:
        self.redactor = Redactor()
        self.redactor.learn(KNOWN)
        self.sink, self.ended, self.exporter = ListSink(), Ended(), InMemorySpanExporter()
        processor = RecordingProcessor()
        processor.connect(self.sink, lambda: 5, self.ended, self.redactor)
        limits = SpanLimits(max_span_attributes=40, max_events=2)
        provider = TracerProvider(resource=Resource(resource), span_limits=limits)
        provider.add_span_processor(processor)
        self.light = LightTracer(lambda: provider.get_tracer("playhead"), processor, lambda at, _: at)
        self.sdk = provider.get_tracer("lib")
        self.provider = provider

    def everything(self) -> bytes:
        """All that goes into the spool."""
        spans = b"".join(encode_span(span, whole=True) for span in self.ended.spans)
        return spans + repr([fact.attributes for fact in self.sink.facts]).encode()


PLACES: dict[str, Any] = {
    "known value": lambda span: span.set_attribute("db.statement", f"SELECT '{KNOWN}'"),
    "known value in a list": lambda span: span.set_attribute("args", ["a", f"b {KNOWN}"]),
    "name of an attribute": lambda span: span.set_attribute(f"user.{KNOWN}", "x"),
    "name of the span": lambda span: span.update_name(f"ask {KNOWN}"),
    "telling name": lambda span: span.set_attribute("openai.api_key", UNKNOWN),
    "list under a telling name": lambda span: span.set_attribute("api_key", ["first-77aB", UNKNOWN]),
    "header": lambda span: span.set_attribute(
        "http.request.header.authorization", [f"Bearer {UNKNOWN}"]
    ),
    "header of its own name": lambda span: span.set_attribute(
        "http.response.header.x_vendor_key", [UNKNOWN]
    ),
    "gRPC metadata": lambda span: span.set_attribute("rpc.grpc.request.metadata.x-token", [UNKNOWN]),
    "cookie": lambda span: span.set_attribute("http.request.header.cookie", [f"sid={UNKNOWN}; b=1"]),
    "URL": lambda span: span.set_attribute("url.full", f"https://h/x?sig={UNKNOWN}"),
    "query": lambda span: span.set_attribute("url.query", f"a=1&sig={UNKNOWN}"),
    "older target": lambda span: span.set_attribute("http.target", f"/x?a=1&code={UNKNOWN}"),
    "command line": lambda span: span.set_attribute("process.command_args", ["a", "--token", UNKNOWN]),
    "JSON in an attribute": lambda span: span.set_attribute(
        "body", json.dumps({"client_secret": UNKNOWN})
    ),
    "shape": lambda span: span.set_attribute("prompt", f"use {SHAPE}"),
    "event": lambda span: span.add_event("log", {"body": KNOWN}),
    "telling name in an event": lambda span: span.add_event("log", {"password": UNKNOWN}),
    "name of an event": lambda span: span.add_event(f"got {KNOWN}"),
    "exception": lambda span: span.record_exception(RuntimeError(f"refused {KNOWN}")),
    "status": lambda span: span.set_status(StatusCode.ERROR, f"refused {KNOWN}"),
    "number under a telling name": lambda span: span.set_attribute("db.password", 918273645546372),
}


@pytest.mark.parametrize("light", [False, True])
@pytest.mark.parametrize("place", PLACES)
def test_a_credential_in_any_place_of_a_span_is_not_recorded(place: str, light: bool):
    ours = Recorded()
    tracer: Any = ours.light if light else ours.sdk
    with tracer.start_as_current_span("work", kind=SpanKind.CLIENT) as span:
        span.set_attribute("kept", "an ordinary sentence")
        PLACES[place](span)
    kept = ours.everything()
    assert not [one for one in (KNOWN, UNKNOWN, SHAPE, "918273645546372") if one.encode() in kept], kept
    assert b"an ordinary sentence" in kept


def test_attributes_of_the_start_links_states_resource_and_scope_are_searched():
    ours = Recorded(**{"service.name": "shop", "vendor.access_token": UNKNOWN})
    other = SpanContext(1, 2, True, TraceFlags(1), TraceState([("vendor", KNOWN), ("b", "plain")]))
    parent = trace.set_span_in_context(trace.NonRecordingSpan(other))
    links = [trace.Link(other, {"password": UNKNOWN, "plain": "as it was"})]
    library = ours.provider.get_tracer("lib", attributes={"lib.api_key": UNKNOWN})
    library.start_span("work", parent, attributes={"note": KNOWN}, links=links).end()
    kept = ours.everything()
    assert KNOWN.encode() not in kept and UNKNOWN.encode() not in kept, kept
    for ordinary in (b"as it was", b"b=plain", b"shop", b"vendor=[redacted]"):
        assert ordinary in kept


def test_the_programs_own_exporter_gets_its_spans_untouched():
    ours = Recorded()
    ours.provider.add_span_processor(SimpleSpanProcessor(ours.exporter))
    with ours.sdk.start_as_current_span("work") as span:
        span.set_attribute("note", KNOWN)
    (exported,) = ours.exporter.get_finished_spans()
    assert dict(exported.attributes or {}) == {"note": KNOWN}


def test_a_span_without_credentials_is_recorded_as_it_is_and_counts_of_what_was_dropped_stay():
    ours = Recorded()
    for note in ("plain", KNOWN):
        with ours.sdk.start_as_current_span("work") as span:
            span.set_attributes({f"n{index}": index for index in range(45)})
            span.set_attribute("note", note)
            for index in range(5):
                span.add_event(f"e{index}", {"n": index})
    plain, changed = ours.ended.spans
    assert type(plain) is not type(changed)
    for said in ("dropped_attributes", "dropped_events", "dropped_links", "kind", "name", "parent"):
        assert getattr(plain, said) == getattr(changed, said)
    assert changed.dropped_attributes == 6 and changed.dropped_events == 3
