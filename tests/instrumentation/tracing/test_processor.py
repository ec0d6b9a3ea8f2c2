"""Where the start of a span stands on the tape: a fact of its own, or in the ask that begins with it."""

from __future__ import annotations

import os
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.trace import SpanKind
from support.tapes.recorded_calls import ListSink

from playhead_core.tape.span_starts import MOST_STARTS
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.tracing.light import LightTracer
from playhead_instrumentation.tracing.processor import RecordingProcessor
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class Ours:
    """A recording processor with a tape in memory, and a tracer of ours that has no other."""

    def __init__(self) -> None:
        self.sink = ListSink()
        self.processor = RecordingProcessor()
        self.processor.connect(self.sink, lambda: 5, RecordingProcessor(), Redactor())
        self.provider = TracerProvider()
        self.provider.add_span_processor(self.processor)
        self.sdk = self.provider.get_tracer("a library")
        self.light = LightTracer(lambda: self.sdk, self.processor, lambda at, _: at)

    @property
    def told(self) -> list[str]:
        """Names of the spans whose starts are on the tape, in order."""
        assert {fact.name for fact in self.sink.facts} <= {e.PLAYHEAD_SPAN_START}
        return [fact.attributes[a.PLAYHEAD_SPAN_NAME] for fact in self.sink.facts]

    def client(self, name: str, within: trace.Span | None = None, **attributes: Any) -> trace.Span:
        return self.light.start_span(name, _in(within), SpanKind.CLIENT, attributes)


def _in(span: trace.Span | None) -> Any:
    return None if span is None else trace.set_span_in_context(span)


def id_of(span: trace.Span) -> int:
    return span.get_span_context().span_id


@pytest.fixture
def ours() -> Ours:
    return Ours()


def test_an_ask_takes_the_starts_around_it_and_each_once(ours: Ours):
    call = ours.client("chat gpt-4o", n=1)
    first = ours.client("POST", call)
    inner, outer = ours.processor.unreported(id_of(first))
    assert (inner["name"], inner["parent_id"]) == ("POST", outer["span_id"])
    assert outer == {
        "span_id": f"{id_of(call):016x}",
        "parent_id": "",
        "name": "chat gpt-4o",
        "kind": 3,
        "time_ns": call.start_time,  # type: ignore[attr-defined]
        "attributes": {"n": 1},
    }
    again = ours.client("POST", call)
    assert [one["span_id"] for one in ours.processor.unreported(id_of(again))] == [
        f"{id_of(again):016x}"
    ]
    assert ours.processor.unreported(id_of(again)) == []
    for span in (first, again, call):
        span.end()
    assert ours.told == []


def test_a_span_that_no_ask_takes_is_told_at_its_end(ours: Ours):
    call = ours.client("chat gpt-4o", n=1)
    assert ours.told == []
    call.end()
    assert ours.told == ["chat gpt-4o"]
    [start] = ours.sink.facts
    assert (start.lane, start.time_ns, start.attributes["n"]) == (5, call.start_time, 1)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", [SpanKind.INTERNAL, SpanKind.SERVER], ids=str)
def test_a_span_of_ours_that_asks_nothing_is_told_at_once(ours: Ours, kind: SpanKind):
    call = ours.client("chat gpt-4o")
    ours.light.start_span("within", _in(call), kind)
    assert ours.told == ["chat gpt-4o", "within"]
    assert ours.processor.unreported(id_of(call)) == []


def test_what_others_start_within_a_call_is_told_behind_it(ours: Ours):
    call = ours.client("chat gpt-4o")
    attempt = ours.client("POST", call)
    theirs = ours.sdk.start_span("connect", _in(attempt), SpanKind.CLIENT)
    assert ours.told == ["chat gpt-4o", "POST", "connect"]
    ours.sdk.start_span("resolve", _in(theirs))
    assert ours.told == ["chat gpt-4o", "POST", "connect", "resolve"]
    assert ours.processor.unreported(id_of(attempt)) == []


def test_an_ask_carries_a_bounded_number(ours: Ours):
    span = ours.client("0")
    for number in range(1, MOST_STARTS + 3):
        span = ours.client(str(number), span)
    carried = ours.processor.unreported(id_of(span))
    assert [one["name"] for one in carried] == [str(one) for one in range(MOST_STARTS + 2, 2, -1)]
    ours.light.start_span("within", trace.set_span_in_context(span))
    assert ours.told == ["within"]


def test_nobody_takes_what_started_before_a_tape_or_after_it(ours: Ours):
    ours.processor.disconnect()
    before = ours.client("POST")
    assert ours.processor.unreported(id_of(before)) == []
    before.end()
    ours.processor.connect(ours.sink, lambda: 5, RecordingProcessor(), Redactor())
    open_ = ours.client("POST")
    ours.processor.disconnect()
    assert ours.processor.unreported(id_of(open_)) == []
    open_.end()
    assert ours.told == []


def test_a_fork_does_not_tell_what_its_parent_began(ours: Ours):
    call = ours.client("chat gpt-4o")
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            found = ours.processor.unreported(id_of(call))
            call.end()
            os.write(writer, repr((found, ours.told)).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with open(reader, "rb") as said:
        assert said.read() == b"([], [])"
    assert len(ours.processor.unreported(id_of(call))) == 1
