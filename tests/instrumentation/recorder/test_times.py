"""Times of facts and spans while a library moves the program's clock."""

import time

import freezegun
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from support.tapes.recorded_calls import ListSink

from playhead_instrumentation.recorder.driver import Driver
from playhead_instrumentation.recorder.gate import CountingGate
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.tracing.light import LightSpan, LightTracer


def test_they_are_real_while_the_clock_of_the_program_is_frozen():
    sink, ours = ListSink(), SpanProcessor()
    driver = Driver(sink, Redactor(), None, CountingGate())
    provider = TracerProvider()
    provider.add_span_processor(ours)
    tracer = LightTracer(lambda: provider.get_tracer("test"), ours, lambda context, kind: context)
    before_ns = time.time_ns()
    with freezegun.freeze_time("2020-01-02"):
        span = tracer.start_span("GET", kind=trace.SpanKind.CLIENT)
        call = driver.open("http", "GET https://api.example/", b"", {}, span=span.get_span_context())
        call.head({}, None)
        call.end("complete")
        span.end()
    assert isinstance(span, LightSpan)
    times = [*(fact.time_ns for fact in sink.facts), span.start_time, span.end_time]
    assert len(times) == 6
    assert all(before_ns <= one <= time.time_ns() for one in times)
