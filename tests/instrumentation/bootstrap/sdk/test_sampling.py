"""Recording does not depend on the sampler."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_OFF,
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)

from playhead_instrumentation.bootstrap.sdk.providers import RecordAll


@pytest.mark.parametrize("sampler", [ALWAYS_OFF, ParentBased(ALWAYS_OFF), TraceIdRatioBased(0.0)])
def test_what_a_sampler_drops_is_recorded_with_its_attributes_and_not_exported(sampler):
    provider = TracerProvider(sampler=RecordAll(sampler), shutdown_on_exit=False)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("outer", attributes={"a": 1}) as outer:
        with provider.get_tracer("test").start_as_current_span("inner") as inner:
            assert inner.is_recording()
            assert not inner.get_span_context().trace_flags.sampled
        assert dict(outer.attributes) == {"a": 1}
    assert exporter.get_finished_spans() == ()


def test_what_a_sampler_takes_stays_as_it_is():
    class Marking(Sampler):
        def should_sample(self, *args, **kwargs):
            return SamplingResult(Decision.RECORD_AND_SAMPLE, {"by": "sampler"})

        def get_description(self):
            return "Marking"

    provider = TracerProvider(sampler=RecordAll(Marking()), shutdown_on_exit=False)
    with provider.get_tracer("test").start_as_current_span("one", attributes={"a": 1}) as span:
        assert dict(span.attributes) == {"by": "sampler"}
        assert span.get_span_context().trace_flags.sampled
    assert RecordAll(ALWAYS_ON).get_description() == "RecordAll{AlwaysOnSampler}"
