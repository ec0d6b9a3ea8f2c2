"""Split the time of a run: into models, tools, retries, waiting for a person, and own code.

At each moment the time belongs to the calls that are pending and have no other pending call inside; if
there are several, to each of them equally. Without one it belongs to the program's own code. So all
parts add up to the duration of the run, however many calls are concurrent.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from playhead_genai.prices import Cost, cost_of
from playhead_genai.steps import FRAMES, Role
from playhead_replay.failures.find import failures_of
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step, resend_count, role_of
from playhead_replay.run.token_usage import was_played
from playhead_replay.timeline.tool_calls import ToolCallStep, tool_calls_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

VERSION: Final = 1
"""Changes with the rules below."""

MOST_AROUND: Final = 100
"""Steps around a step that are looked at: a sender may nest them without end."""

Part: TypeAlias = Literal["model", "tool", "retry", "waiting", "code"]


@dataclass(frozen=True, slots=True)
class StepTime:
    """The part of a run's time and cost that belongs to a step."""

    place: str
    """``3``; ``3.1`` for a tool call that only messages report; empty if a person is waited for."""
    part: Part
    name: str
    agent: str
    """The innermost agent or workflow around it; empty if there is none."""
    time_ns: int
    retry_ns: int
    """Time in attempts that were repeated, and between them; not part of ``time_ns``."""
    cost_usd: float | None
    """None if it used no tokens, or if no price of its model is known."""


@dataclass(frozen=True, slots=True)
class FailureCost:
    """What a failure took: the time of its step with all attempts, and its cost."""

    place: str
    type: str
    code: str
    recovered: bool
    time_ns: int
    cost_usd: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """The time and the cost of a run, by what they were for. The parts add up to the duration."""

    schema_version: int = 1
    run: str
    version: int = VERSION
    duration_ns: int
    model_ns: int
    tool_ns: int
    retry_ns: int
    waiting_ns: int
    """For a person: a line of input, or a pause."""
    code_ns: int
    """The program's own code: nothing was pending."""
    cost_usd: float | None
    steps: list[StepTime]
    critical_path: list[str]
    """Places of the steps that the end of the run waited for, in order of their start."""
    failures: list[FailureCost]


@once_per_run
def attribution_of(run: Run) -> Attribution:
    """Split the time of a run."""
    calls, failures = tool_calls_of(run), failures_of(run)
    end_ns = run.ended_ns or max((span.ended_ns or span.started_ns for span in run.spans), default=0)
    begin_ns, end_ns = run.started_ns, max(end_ns, run.started_ns)
    pending = [one for one in _pending(run, calls, begin_ns, end_ns) if one.end_ns > one.begin_ns]
    pending.sort(key=_begin)
    _share(pending)
    costs, agents = _costs(run), _agents(run.roots)
    steps: list[StepTime] = []
    retries: defaultdict[str, float] = defaultdict(float)
    for one in pending:
        if one.part == "retry":
            retries[one.place] += one.share_ns
    for one in pending:
        if one.part != "retry":
            retry_ns = round(retries.get(one.place, 0.0)) if one.place else 0
            agent, cost = agents.get(one.span_id, ""), costs.get(one.place)
            steps.append(
                StepTime(one.place, one.part, one.name, agent, round(one.share_ns), retry_ns, cost)
            )
    sums: defaultdict[Part, float] = defaultdict(float)
    for one in pending:
        sums[one.part] += one.share_ns
    parts = {part: round(sums[part]) for part in ("model", "tool", "retry", "waiting")}
    by_place = {one.place: one for one in steps if one.place}
    return Attribution(
        run=run.name,
        duration_ns=end_ns - begin_ns,
        model_ns=parts["model"],
        tool_ns=parts["tool"],
        retry_ns=parts["retry"],
        waiting_ns=parts["waiting"],
        code_ns=max(0, end_ns - begin_ns - sum(parts.values())),
        cost_usd=float(run.cost.usd) if costs else None,
        steps=steps,
        critical_path=_critical_path(pending),
        failures=[
            FailureCost(one.place, one.type, one.code, one.recovered, *_cost_of(by_place.get(place)))
            for one in failures
            for place in (str(one.step) if one.type == "model" else one.place,)
        ],
    )


def _cost_of(step: StepTime | None) -> tuple[int, float | None]:
    return (0, None) if step is None else (step.time_ns + step.retry_ns, step.cost_usd)


@dataclass(slots=True, eq=False)
class _Pending:
    """A time in which something was pending."""

    begin_ns: int
    end_ns: int
    part: Part
    place: str
    name: str
    span_id: str = ""
    around: list[_Pending] = field(default_factory=list["_Pending"])
    """The calls around it, which do not run meanwhile."""
    inside: int = 0
    """Number of open ones inside, at the moment that is looked at."""
    is_open: bool = False
    runs: bool = False
    """Whether it is open, and nothing inside is."""
    since: float = 0.0
    share_ns: float = 0.0


def _pending(run: Run, calls: Sequence[ToolCallStep], begin_ns: int, end_ns: int) -> Iterator[_Pending]:
    def times(begin: int, end: int | None) -> tuple[int, int]:
        return max(begin, begin_ns), min(end_ns if end is None else end, end_ns)

    steps = {step.span.span_id: step for step in run.steps}
    made: dict[str, _Pending] = {}
    for root in run.roots:
        for span, around in _enclosed(root, steps):
            step = steps[span.span_id]
            part: Part = "model" if role_of(span) >= Role.CALL else "tool"
            name = str(span.attributes.get(a.GEN_AI_TOOL_NAME, "")) or span.name
            here = times(span.started_ns, span.ended_ns)
            one = _Pending(*here, part, str(step.number), name, span.span_id)
            one.around = [] if around is None else [made[around]]
            made[span.span_id] = one
            yield one
            if retry := _retry_of(step):
                begin, end = max(retry[0], one.begin_ns), min(retry[1], one.end_ns)
                yield _Pending(begin, end, "retry", one.place, name, around=[one])
    ordered = sorted(made.values(), key=_begin)
    tools = [one for one in ordered if one.part == "tool"]
    for call in calls:
        if call.span is None and call.ended_ns is not None:
            here = times(call.started_ns, call.ended_ns)
            one = _Pending(*here, "tool", call.number, call.name, call.step.span.span_id)
            for at in range(bisect_left(ordered, here[0], key=_begin), len(ordered)):
                inner = ordered[at]
                if inner.begin_ns >= here[1]:
                    break
                if inner.end_ns <= here[1] and not inner.around:
                    inner.around.append(one)
            tools.append(one)
            yield one
    for begin, end, name in _waits(run):
        one = _Pending(*times(begin, end), "waiting", "", name)
        one.around = [tool for tool in tools if tool.begin_ns <= one.begin_ns < tool.end_ns]
        yield one


def _begin(one: _Pending) -> int:
    return one.begin_ns


def _enclosed(root: Span, steps: dict[str, Step]) -> Iterator[tuple[Span, str | None]]:
    """Yield the spans of steps in a tree, each with the id of the step around it."""
    waiting: list[tuple[Span, str | None]] = [(root, None)]
    while waiting:
        span, around = waiting.pop()
        if span.span_id in steps:
            yield span, around
            around = span.span_id
        waiting += [(child, around) for child in span.children]


def _retry_of(step: Step) -> tuple[int, int] | None:
    """Return the time of failed attempts: from the first attempt to the start of the last one."""
    again = [one.started_ns for one in step.attempts if resend_count(one.attributes)]
    if not again:
        return None
    return min(one.started_ns for one in step.attempts), max(again)


def _waits(run: Run) -> Iterator[tuple[int, int | None, str]]:
    """Yield when the run waited for a person."""
    for exchange in run.exchanges:
        if exchange.id.kind == "stdin":
            of = exchange.exchange
            end = of.end.time_ns if of.end is not None else None
            yield of.time_ns, of.parts[-1].time_ns if of.parts else end, "input"
    for tape in run.tapes:
        paused: dict[object, int] = {}
        for fact in tape.named(e.PLAYHEAD_CONTROL_HALT, e.PLAYHEAD_CONTROL_RELEASE):
            if fact.name == e.PLAYHEAD_CONTROL_HALT:
                paused.setdefault(fact.exchange, fact.time_ns)
            elif fact.exchange in paused:
                yield paused.pop(fact.exchange), fact.time_ns, "pause"
        for begin in paused.values():
            yield begin, None, "pause"


def _share(pending: Iterable[_Pending]) -> None:
    """Give each its share of the time: a clock runs at one nth of the speed while n of them run.

    What runs takes the difference of that clock between the begin and the end of its running.
    """
    times = ((at, begins, one) for one in pending for at, begins in ((one.begin_ns, 1), (one.end_ns, 0)))
    clock, running, last_ns = 0.0, 0, 0
    for at_ns, begins, one in sorted(times, key=lambda event: event[:2]):
        if running:
            clock += (at_ns - last_ns) / running
        last_ns = at_ns
        one.is_open = bool(begins)
        for each in (one, *_all_around(one)):
            if each is not one:
                each.inside += 1 if begins else -1
            runs = each.is_open and not each.inside
            if runs == each.runs:
                continue
            each.runs = runs
            running += 1 if runs else -1
            if runs:
                each.since = clock
            else:
                each.share_ns += clock - each.since


def _all_around(one: _Pending) -> Iterator[_Pending]:
    """Yield all calls around this one, once each, at most `MOST_AROUND`."""
    seen = set[int]()
    waiting = list(one.around)
    while waiting and len(seen) < MOST_AROUND:
        around = waiting.pop()
        if id(around) not in seen:
            seen.add(id(around))
            yield around
            waiting += around.around


def _critical_path(pending: Sequence[_Pending]) -> list[str]:
    """Return the steps that the end of the run waited for: each ends before the next one begins."""
    inner = [one for one in pending if one.place and one.part != "retry"]
    containers = {id(around) for one in inner for around in one.around}
    steps = [one for one in inner if id(one) not in containers]
    steps.sort(key=lambda one: (one.end_ns, one.begin_ns))
    ends = [one.end_ns for one in steps]
    path: list[str] = []
    at = len(steps)
    while at:
        path.append(steps[at - 1].place)
        at = bisect_right(ends, steps[at - 1].begin_ns, 0, at - 1)
    return path[::-1]


@once_per_run
def bearers_of_steps(run: Run) -> dict[int, list[Span]]:
    """Return the spans whose tokens count and were not played, by number of the step they belong to."""
    owners, found = run.steps_of_spans(), defaultdict[int, list[Span]](list)
    for span in run.token_bearers:
        if span.span_id in owners and not was_played(span):
            found[owners[span.span_id]].append(span)
    return found


@once_per_run
def costs_of_steps(run: Run) -> dict[int, Cost]:
    """Return the cost of each step that used tokens, by its number."""
    return {
        number: cost_of((span.attributes, span.started_ns) for span in spans)
        for number, spans in bearers_of_steps(run).items()
    }


def _costs(run: Run) -> dict[str, float | None]:
    """Return the cost of each step that used tokens; None if a price is not known."""
    return {
        str(number): None if cost.unpriced else float(cost.usd)
        for number, cost in costs_of_steps(run).items()
    }


def _agents(roots: Iterable[Span]) -> dict[str, str]:
    """Return the name of the innermost agent or workflow around each span, by its id."""
    found: dict[str, str] = {}
    waiting = [(root, "") for root in roots]
    while waiting:
        span, agent = waiting.pop()
        found[span.span_id] = agent
        if span.operation in FRAMES:
            at = span.attributes
            agent = str(at.get(a.GEN_AI_AGENT_NAME, "")) or str(at.get(a.GEN_AI_WORKFLOW_NAME, ""))
        waiting += [(child, agent) for child in span.children]
    return found
