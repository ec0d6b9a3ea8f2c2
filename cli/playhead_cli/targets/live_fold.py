"""Folds incoming facts and spans of a running run into lines about its steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from playhead_cli.output.words import gist, label
from playhead_core.facts import Fact
from playhead_core.tape.span_starts import starts_of
from playhead_genai.steps import Nesting
from playhead_receiver.storage.values.stored import StoredSpan
from playhead_replay.run.spans import Span, spans_of, started_span
from playhead_replay.run.steps import Step, role_of, tool_of
from playhead_semconv import events as e


@dataclass(frozen=True, slots=True)
class Moment:
    """An event of a step."""

    time_ns: int
    number: int
    what: Literal["started", "streaming", "ended", "failed"]
    name: str
    began_ns: int
    """When the step began."""
    said: str = ""


class Following:
    """Folds the incoming data of one trace. Idempotent: the same item may be taken twice."""

    def __init__(self, trace_id: bytes) -> None:
        self._trace_id = trace_id
        self._nesting = Nesting[str]()
        self._steps: dict[str, Step] = {}
        """By span id: the step that the span is, or that encloses it."""
        self._seen: set[str] = set()
        self._ended: set[str] = set()
        self._streaming: set[int] = set()
        self._count = 0

    def take(self, item: StoredSpan | Fact) -> Iterator[Moment]:
        """Return the events of ``item``."""
        if item.trace_id != self._trace_id:
            return
        if isinstance(item, StoredSpan):
            for span in spans_of(item.otlp):
                yield from self._end(span)
            return
        for start in reversed(starts_of(item)):  # a step comes before what it encloses
            yield from self._start(started_span(start))
        if item.name == e.PLAYHEAD_EXCHANGE_DATA:
            yield from self._data(item)

    def _start(self, span: Span) -> Iterator[Moment]:
        if span.span_id in self._seen:
            return
        self._seen.add(span.span_id)
        self._nesting.add(span.span_id, span.parent_id, role_of(span), tool_of(span))
        step = self._steps.get(span.parent_id)
        if self._nesting.is_step(span.span_id):
            step = self._told_around(span)
            if step is None:
                self._count += 1
                step = Step(self._count, span)
                yield Moment(span.started_ns, self._count, "started", label(span), span.started_ns)
            elif step.span.span_id not in self._ended:
                step.span = span
        if step is not None:
            self._steps[span.span_id] = step

    def _told_around(self, span: Span) -> Step | None:
        """Return the step of a call around this one, which turns out to be the same call."""
        for one in self._nesting.above(span.span_id):
            step = self._steps.get(one)
            if step is not None and step.span.span_id == one and not self._nesting.is_step(one):
                return step
        return None

    def _data(self, fact: Fact) -> Iterator[Moment]:
        step = self._steps.get(fact.span_id.hex())
        if step is not None and step.number not in self._streaming:
            self._streaming.add(step.number)
            yield Moment(fact.time_ns, step.number, "streaming", label(step.span), step.span.started_ns)

    def _end(self, span: Span) -> Iterator[Moment]:
        if span.span_id in self._ended:
            return
        yield from self._start(span)
        self._ended.add(span.span_id)
        step = self._steps.get(span.span_id)
        if step is not None and step.span.span_id == span.span_id:
            done = Step(step.number, span)
            what = "failed" if span.failed else "ended"
            ended_ns = span.ended_ns or span.started_ns
            yield Moment(ended_ns, step.number, what, label(span), span.started_ns, gist(done))
