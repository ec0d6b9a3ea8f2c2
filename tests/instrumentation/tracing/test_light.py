"""Spans of ours: light where nobody else listens, the SDK's where somebody does, the same for all."""

from __future__ import annotations

from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits, SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import (
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
    TraceIdRatioBased,
)
from opentelemetry.trace import Link, SpanContext, SpanKind, Status, StatusCode, TraceFlags, TraceState

from playhead_instrumentation.bootstrap.sdk.providers import RecordAll
from playhead_instrumentation.tracing.light import LightSpan, LightTracer, note

REMOTE = SpanContext(5, 7, True, TraceFlags(1), TraceState([("vendor", "1")]))
IN_REMOTE = trace.set_span_in_context(trace.NonRecordingSpan(REMOTE))
IN_SAMPLED, IN_UNSAMPLED = (
    trace.set_span_in_context(
        trace.NonRecordingSpan(SpanContext(5, 7, False, TraceFlags(flags), REMOTE[4]))
    )
    for flags in (1, 0)
)


PARENTS = {
    "root": None,
    "remote parent": IN_REMOTE,
    "sampled parent": IN_SAMPLED,
    "unsampled parent": IN_UNSAMPLED,
}


class Ours(SpanProcessor):
    """Keeps what it is given."""

    def __init__(self) -> None:
        self.started: list[Any] = []
        self.ended: list[ReadableSpan] = []

    def on_start(self, span: Any, parent_context: Context | None = None) -> None:
        self.started.append((span, parent_context))

    def on_end(self, span: ReadableSpan) -> None:
        self.ended.append(span)


class Telling(Sampler):
    """Samples all, and says so in attributes and state."""

    def should_sample(self, *_: Any, attributes: Any = None, **__: Any) -> SamplingResult:
        told = {**(attributes or {}), "sampled.by": "us"}
        return SamplingResult(Decision.RECORD_AND_SAMPLE, told, TraceState([("told", "yes")]))

    def get_description(self) -> str:
        return "Telling"


def tracers(**of_provider: Any) -> tuple[TracerProvider, Ours, LightTracer]:
    of_provider.setdefault("sampler", ParentBased(TraceIdRatioBased(1)))
    provider = TracerProvider(resource=Resource({"service.name": "a"}), **of_provider)
    provider.sampler = RecordAll(provider.sampler)
    ours = Ours()
    provider.add_span_processor(ours)
    return (
        provider,
        ours,
        LightTracer(lambda: provider.get_tracer("playhead", "1"), ours, lambda at, _: at),
    )


def lived(span: trace.Span, error: BaseException | None = None) -> trace.Span:
    """All that happens to a span."""
    note(span, {"noted": 1, "list": ["a"]})
    span.set_attribute("said", "by the program")
    span.set_attributes({"noted": 2, "tuple": (1, 2), "long": "x" * 50})
    note(span, {"late": True})
    span.add_event("happened", {"why": "so"}, timestamp=5)
    span.add_link(SpanContext(1, 2, is_remote=True), {"to": "another"})
    span.update_name("renamed")
    if error is not None:
        span.record_exception(error, timestamp=6)
    span.set_status(Status(StatusCode.ERROR, "it failed"))
    span.end(900)
    return span


def said(span: Any, *, ids: bool = False) -> dict[str, Any]:
    """Whatever a processor can read of a span, but its ids."""
    return {
        "name": span.name,
        "kind": span.kind,
        "parent": span.parent,
        "state": span.context.trace_state,
        "flags": span.context.trace_flags,
        "attributes": dict(span.attributes),
        "events": [(one.name, one.timestamp, dict(one.attributes)) for one in span.events],
        "links": [(one.context, dict(one.attributes)) for one in span.links],
        "status": (span.status.status_code, span.status.description),
        "times": (span.start_time, span.end_time),
        "dropped": (span.dropped_attributes, span.dropped_events, span.dropped_links),
        "of": (span.resource, span.instrumentation_scope),
    }


def plain(value: Any) -> Any:
    """Lists and tuples alike: the SDK makes tuples of lists."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return tuple(value) if isinstance(value, list) else value


@pytest.mark.parametrize("context", PARENTS.values(), ids=PARENTS)
@pytest.mark.parametrize(
    "sampler",
    [
        ParentBased(TraceIdRatioBased(1)),
        ParentBased(TraceIdRatioBased(1), local_parent_sampled=Telling()),
        TraceIdRatioBased(0),
        Telling(),
    ],
)
def test_a_light_span_says_what_the_span_of_the_sdk_says(sampler: Sampler, context: Context | None):
    provider, ours, light = tracers(sampler=sampler)
    whole = provider.get_tracer("playhead", "1")
    link = Link(SpanContext(3, 4, is_remote=True), {"from": "the start"})
    for tracer in (light, whole):
        span = tracer.start_span(
            "named", context, SpanKind.CLIENT, {"first": "word"}, [link], start_time=100
        )
        assert span.is_recording()
        lived(span)
        assert not span.is_recording()
    (ours_is, _), (theirs_is, _) = ours.started
    assert (type(ours_is), isinstance(theirs_is, LightSpan)) == (LightSpan, False)
    first, second = ours.ended
    assert plain(said(first)["attributes"]) == plain(said(second)["attributes"])
    assert {**said(first), "attributes": 0} == {**said(second), "attributes": 0}
    assert isinstance(first, ReadableSpan)


def test_what_the_program_sets_is_limited_and_what_we_say_is_not():
    _, ours, light = tracers(
        span_limits=SpanLimits(max_span_attributes=2, max_span_attribute_length=5, max_events=1)
    )
    span = light.start_span("named", attributes={f"ours.{number}": number for number in range(9)})
    note(span, {"messages": "longer than five"})
    for number in range(4):
        span.set_attribute(f"theirs.{number}", "longer than five")
        span.add_event(f"event {number}")
    span.end()
    [ended] = ours.ended
    attributes = dict(ended.attributes or {})
    assert attributes["messages"] == "longer than five"
    assert {name: value for name, value in attributes.items() if name.startswith("theirs")} == {
        "theirs.2": "longe",
        "theirs.3": "longe",
    }
    assert sum(name.startswith("ours") for name in attributes) == 9
    assert (ended.dropped_attributes, [one.name for one in ended.events]) == (2, ["event 3"])


def test_what_is_said_after_the_end_is_not_kept(caplog: pytest.LogCaptureFixture):
    _, ours, light = tracers()
    span = light.start_span("named")
    span.end(5)
    span.end(6)
    span.set_attribute("late", 1)
    note(span, {"later": 2})
    span.update_name("other")
    assert (len(ours.ended), ours.ended[0].end_time, dict(ours.ended[0].attributes or {})) == (1, 5, {})
    assert ours.ended[0].name == "named"
    assert "ended span" in caplog.text


def test_whoever_is_added_gets_whole_spans_from_the_next_one_on():
    provider, ours, light = tracers()
    assert isinstance(light.start_span("first"), LightSpan)
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with trace.use_span(light.start_span("second"), end_on_exit=True) as span:
        assert not isinstance(span, LightSpan)
        note(span, {"noted": 1})
    [exported] = exporter.get_finished_spans()
    assert (exported.name, dict(exported.attributes or {})) == ("second", {"noted": 1})
    assert [one.name for one in ours.ended] == ["second"]


def test_one_that_was_light_is_exported_at_its_end():
    provider, _, light = tracers()
    span = light.start_span("first")
    exporter = InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    lived(span)
    [exported] = exporter.get_finished_spans()
    assert exported.to_json()
    assert exported.name == "renamed"


def test_it_is_the_current_span_and_the_parent_of_others():
    provider, ours, light = tracers()
    with trace.use_span(light.start_span("outer"), end_on_exit=True) as outer:
        trace.get_current_span().set_attribute("said", 1)
        provider.get_tracer("theirs").start_span("inner").end()
    inner, outside = ours.ended
    assert inner.parent == outer.get_span_context()
    assert dict(outside.attributes or {}) == {"said": 1}


def test_an_exception_is_recorded_as_by_the_sdk():
    _, ours, light = tracers()
    with (
        pytest.raises(ValueError, match="wrong"),
        trace.use_span(light.start_span("named"), end_on_exit=True),
    ):
        raise ValueError("wrong")
    [ended] = ours.ended
    assert ended.status.description == "ValueError: wrong"
    assert [one.name for one in ended.events] == ["exception"]


def test_what_fails_is_left_to_the_sdk():
    provider, ours, _ = tracers()

    def fails(context: Context | None, kind: SpanKind) -> Context | None:
        raise RuntimeError("no run")

    light = LightTracer(lambda: provider.get_tracer("playhead"), ours, fails)
    span = light.start_span("named")
    span.end()
    assert [one.name for one in ours.ended] == ["named"]
