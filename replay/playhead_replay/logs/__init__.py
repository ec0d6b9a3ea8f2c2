"""The log records of a run: read from a store or a tape file when they are needed.

Some of them are events with messages of a model call. These messages become attributes of the call's
span, unless the span has them itself; what is stored does not change. Others are scores of a call, or
reports, which are also facts on tapes and events of spans.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from msgspec.structs import replace

from playhead_core.otlp.log_records import LogLine, LogQuery, log_line
from playhead_core.reports import NAMES, ProgramReport, report_of
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_genai.other_tools.content_events import CONTENT_EVENTS, ContentEvent, attributes_of_events
from playhead_genai.scores import READ_EVENTS, Score, score_of, scores_in
from playhead_semconv import attributes as a
from playhead_semconv import events as e

Read: TypeAlias = Callable[[LogQuery], Iterable[bytes]]
"""Reads log records, each as OTLP `ResourceLogs` bytes, by time."""


class EventLike(Protocol):
    """An event of a span."""

    @property
    def name(self) -> str:
        """Name of the event."""
        ...

    @property
    def time_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes by name."""
        ...


class EvaluatedSpan(Protocol):
    """A span, which may have scores among its events."""

    @property
    def span_id(self) -> str:
        """16 hex digits."""
        ...

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes by name."""
        ...

    @property
    def events(self) -> Sequence[EventLike]:
        """Its events."""
        ...


class RunLogs:
    """The log records of a run."""

    def __init__(self, read: Read) -> None:
        self._read = read

    @classmethod
    def of_file(cls, records: Sequence[bytes]) -> RunLogs:
        """The log records of a tape file."""
        return cls(lambda wanted: (one for one in records if _is_wanted(log_line(one), wanted)))

    def lines(self, span_ids: Collection[str] | None = None, level: int = 0) -> Iterator[LogLine]:
        """The records by time; of spans with these ids, and of at least this severity number."""
        ids = None if span_ids is None else [bytes.fromhex(one) for one in span_ids]
        return map(log_line, self._read(LogQuery(ids, level)))

    def content(self) -> tuple[dict[str, list[ContentEvent]], list[Score], list[LogLine]]:
        """The events with messages of model calls, by span id; the scores; the reports of programs."""
        found: defaultdict[str, list[ContentEvent]] = defaultdict(list)
        evaluations: list[LogLine] = []
        reports: list[LogLine] = []
        for one in map(log_line, self._read(LogQuery(content=True))):
            if one.event in CONTENT_EVENTS:
                found[one.span_id].append(content_event(one))
            else:
                (reports if one.event in NAMES else evaluations).append(one)
        return found, scores_in(evaluations), reports


NO_LOGS = RunLogs(lambda _: ())


def content_event(line: LogLine) -> ContentEvent:
    """Return a log record as an event with messages."""
    return ContentEvent(line.event, line.time_ns, line.attributes, line.body)


def content_of(
    events: Iterable[EventLike], logged: Iterable[ContentEvent], present: Collection[str]
) -> dict[str, Any]:
    """Return the messages of a call that its span lacks, from the span's events and from log records.

    ``present``: names of the attributes that the span has.
    """
    own = (
        ContentEvent(one.name, one.time_ns, one.attributes)
        for one in events
        if one.name in CONTENT_EVENTS
    )
    found = attributes_of_events([*own, *(one for one in logged if one.name in CONTENT_EVENTS)])
    return {name: value for name, value in found.items() if name not in present}


def scores_of(spans: Iterable[EvaluatedSpan], logged: Sequence[Score]) -> list[Score]:
    """Return the scores of a run by time; those that name a response only, with its span."""
    scores, responses = list(logged), dict[str, str]()
    names_response = any(not score.span_id for score in logged)
    for span in spans:
        if names_response and isinstance(response := span.attributes.get(a.GEN_AI_RESPONSE_ID), str):
            responses.setdefault(response, span.span_id)
        for event in span.events:
            if event.name == e.GEN_AI_EVALUATION_RESULT:
                score = score_of(event.attributes, event.time_ns, span.span_id)
                scores += () if score is None else (score,)
    placed = (
        score if score.span_id else replace(score, span_id=responses.get(score.response_id, ""))
        for score in scores
    )
    return sorted(placed, key=lambda score: (score.time_ns, score.name))


def _is_wanted(line: LogLine, wanted: LogQuery) -> bool:
    if line.level < wanted.level or (wanted.content and line.event not in READ_EVENTS):
        return False
    return wanted.span_ids is None or bytes.fromhex(line.span_id) in wanted.span_ids


class StartedStep(Protocol):
    """A step of the run."""

    @property
    def number(self) -> int:
        """From 1, in order of start."""
        ...

    @property
    def span(self) -> StartedSpan:
        """Its span."""
        ...


class StartedSpan(Protocol):
    """The span of a step."""

    @property
    def started_ns(self) -> int:
        """Nanoseconds since the epoch."""
        ...


def reports_of(
    tapes: Iterable[IndexedTape], spans: Iterable[EvaluatedSpan], logged: Iterable[ProgramReport]
) -> list[ProgramReport]:
    """Return the reports of a run by time. A recorded program reports in facts and in events: once."""
    found: list[ProgramReport] = []
    for tape in tapes:
        for fact in tape.named(*NAMES):
            span_id = fact.span_id.hex() if any(fact.span_id) else ""
            report = report_of(fact.name, fact.attributes, None, fact.time_ns, span_id)
            found += () if report is None else (report,)
    known = {(one.kind, one.span_id, one.time_ns) for one in found}
    for span in spans:
        for event in span.events:
            if event.name in NAMES:
                report = report_of(event.name, event.attributes, None, event.time_ns, span.span_id)
                if report and (report.kind, report.span_id, report.time_ns) not in known:
                    found.append(report)
    return sorted([*found, *logged], key=lambda one: one.time_ns)


def report_in(line: LogLine) -> ProgramReport | None:
    """Return the report that a log record makes; None if it makes none."""
    return report_of(line.event, line.attributes, line.body, line.time_ns, line.span_id)


def with_steps(
    reports: Sequence[ProgramReport], steps: Sequence[StartedStep], owners: Mapping[str, int]
) -> list[ProgramReport]:
    """Return reports with the numbers of their steps. ``owners``: innermost steps by span id."""
    starts = [step.span.started_ns for step in steps]
    placed: list[ProgramReport] = []
    for one in reports:
        last = bisect_right(starts, one.time_ns)
        step = owners.get(one.span_id, steps[last - 1].number if last else None)
        placed.append(replace(one, step=step))
    return placed
