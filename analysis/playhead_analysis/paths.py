"""The path of a run: a small frozen value with what analyses need of its steps.

A `Run` holds spans, tapes and bytes. An analysis of 1,000 runs cannot hold 1,000 of them, so each run is
read once, turned into its path, and released.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, Protocol, TypeAlias, cast
from urllib.parse import SplitResult

from playhead_core.facts import Fact, digest_of
from playhead_core.untrusted.shown_text import in_one_line
from playhead_genai.messages import called_in, read_output_messages
from playhead_genai.prices import Cost
from playhead_genai.readable_text import arguments_of
from playhead_genai.steps import FRAMES, Role
from playhead_replay.derived.attribution import bearers_of_steps, costs_of_steps
from playhead_replay.failures.codes import code_of
from playhead_replay.run.run import Run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step, role_of
from playhead_replay.run.store_shape import StoreLike, SummaryLike
from playhead_replay.run.token_usage import sum_of, was_played
from playhead_replay.timeline.tool_calls import ToolCallStep
from playhead_replay.transitions import transitions_of
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

StepKind: TypeAlias = Literal["model", "tool", "retrieval", "request", "other"]
StepStatus: TypeAlias = Literal["ok", "error", "pending"]

MOST_STEPS: Final = 200_000
"""Steps of a run that its path has; later ones are left out (`RunPath.is_cut`)."""
LONGEST_NAME: Final = 200
"""Characters of a name; a name comes from a span, so it may be anything."""
_DIGITS: Final = re.compile(r"\d")
_NO_TOKENS: Final = sum_of(())


@dataclass(frozen=True, slots=True)
class PathStep:
    """A step of a run, or a tool call that only messages report."""

    place: str
    """``3`` as `playhead show` prints it; ``3.1`` for a call that only messages report."""
    kind: StepKind
    label: str
    """What it is in a flow, equal in all runs: ``chat``, ``search_docs``, ``GET api.shop/orders/{}``."""
    name: str
    """The model, the tool, or the span."""
    status: StepStatus
    started_ns: int
    duration_ns: int | None
    """None: it has not ended, or nothing says when."""
    arguments: str = ""
    """Digest of the arguments of a tool, hex; empty if they are not known."""
    failure: str = ""
    """Code of the failure (`playhead_replay.failures.codes`); empty if the step succeeded."""
    phase: str = ""
    """The agent or workflow that it belongs to: name of the innermost; empty if there is none."""
    cost_usd: float | None = None
    """None if it used no tokens, if no price of its model is known, or if it was not computed."""
    input_tokens: int = 0
    output_tokens: int = 0
    retries: int = 0
    """Attempts beyond the first."""
    span_id: str = ""
    """16 hex digits; empty for a call that only messages report."""

    @property
    def number(self) -> int:
        """Number of the step; of the model call for a call that only messages report."""
        return int(self.place.partition(".")[0])


@dataclass(frozen=True, slots=True)
class RunPath:
    """The steps that a run took, in order of their start."""

    name: str
    trace_id: str
    agent: str
    version: str
    status: str
    started_ns: int
    duration_ns: int | None
    cost_usd: float | None
    input_tokens: int
    output_tokens: int
    steps: tuple[PathStep, ...]
    states: tuple[str, ...] = ()
    """Names of the states that it was in, in order: agents, phases, nodes of frameworks, and states that
    the program reported."""
    state_times_ns: tuple[tuple[str, int], ...] = ()
    """Time in each phase and node, by its name; agents have that of their steps."""
    is_cut: bool = False
    """Whether it has more than `MOST_STEPS` steps, and only the first are here."""

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of its steps."""
        return tuple(step.label for step in self.steps)

    @property
    def failed(self) -> bool:
        """Whether it failed or was interrupted."""
        return self.status in ("failure", "interrupted")


class PathStore(StoreLike, Protocol):
    """A store from which paths are read without the tapes of their runs."""

    def pending(self, trace_id: bytes) -> Iterator[Fact]:
        """Return the span-start facts of a trace whose spans have not arrived."""
        ...


def read_path(store: PathStore, run: str | SummaryLike, *, with_states: bool = False) -> RunPath:
    """Return the path of a stored run, given by its name, its trace id or its summary. `RunUnknown`.

    The tapes are not read, unless something of the run is only there: spans that have not ended, calls
    whose meaning is known from their bytes alone, and, ``with_states``, the states that it reported.
    """
    summary = store.resolve(run) if isinstance(run, str) else run
    trace = bytes.fromhex(summary.trace_id)
    spans = list(store.spans(trace))
    has_ended = summary.status in ("success", "failure", "partial") and summary.ended_ns is not None
    needs_tape = (
        with_states
        or not spans
        or any(getattr(one, "wire", "") for one in spans)
        or (not has_ended and any(store.pending(trace)))
    )
    if needs_tape:
        loaded = Run.load(store, summary.trace_id)
    else:
        loaded = Run.of_tapes((), (one.otlp for one in spans), summary.name)
        loaded.agent, loaded.status = summary.agent, summary.status
        loaded.started_ns, loaded.ended_ns = summary.started_ns, summary.ended_ns
    path = path_of(loaded, with_costs=False, with_states=with_states)
    version = _name(str(getattr(summary, "version", "")))
    return replace(path, version=version, cost_usd=summary.cost_usd)


def path_of(
    run: Run,
    calls: Sequence[ToolCallStep] | None = None,
    *,
    with_costs: bool = True,
    with_states: bool = False,
) -> RunPath:
    """Return the path of a run.

    ``calls``: its tool calls (`tool_calls_of`), which have arguments and errors of calls without spans.
    Without them, what answers call is read from the spans, which is cheap. ``with_costs``: compute the
    cost of each step and of the run, which takes a millisecond for each call of a model.
    ``with_states``: find phases and nodes of frameworks, and the time in each.
    """
    phases = _phases_of(run.roots)
    bearers = [span for span in run.token_bearers if not was_played(span)]
    tokens, costs = bearers_of_steps(run), costs_of_steps(run) if with_costs else {}
    steps = [_step_of(step, phases, tokens, costs) for step in run.steps[:MOST_STEPS]]
    derived = _called(run.steps) if calls is None else _known(calls)
    if calls is not None:
        steps = _with_calls(steps, calls)
    usage = sum_of(bearers)
    path = sorted([*steps, *derived], key=lambda step: (step.started_ns, step.number, len(step.place)))
    times = _times_in_states(run) if with_states else {}
    states = dict.fromkeys(step.phase for step in path if step.phase)
    states |= dict.fromkeys(times)
    states |= dict.fromkeys(_name(state.name) for state in run.states)
    return RunPath(
        _name(run.name),
        run.trace_id,
        _name(run.agent),
        "",
        run.status,
        run.started_ns,
        None if run.ended_ns is None else max(run.ended_ns - run.started_ns, 0),
        run.cost.known_usd if with_costs else None,
        usage.input_tokens,
        usage.output_tokens,
        tuple(path[:MOST_STEPS]),
        tuple(states),
        tuple(times.items()),
        len(run.steps) > MOST_STEPS or len(path) > MOST_STEPS,
    )


def _step_of(
    step: Step,
    phases: Mapping[str, str],
    tokens: Mapping[int, list[Span]],
    costs: Mapping[int, Cost],
) -> PathStep:
    span, at = step.span, step.span.attributes
    kind = _kind_of(span)
    bearers = tokens.get(step.number, [])
    usage = sum_of(bearers) if bearers else _NO_TOKENS
    cost = costs.get(step.number)
    failure = ""
    if span.failed:
        status = at.get(a.HTTP_RESPONSE_STATUS_CODE)
        known = isinstance(status, int) and status >= 400
        side = "model" if kind == "model" else "retrieval" if kind == "retrieval" else "tool"
        failure = code_of(side, span.error, status if known else None)
    return PathStep(
        str(step.number),
        kind,
        _label_of(span, kind),
        _name(_name_of(span, kind)),
        "pending" if span.pending else "error" if span.failed else "ok",
        span.started_ns,
        span.duration_ns,
        _digest(at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS)),
        failure,
        phases.get(span.span_id, ""),
        None if cost is None else cost.known_usd,
        usage.input_tokens,
        usage.output_tokens,
        step.retries,
        span.span_id,
    )


def _kind_of(span: Span) -> StepKind:
    operation = span.operation
    if operation == Operation.EXECUTE_TOOL:
        return "tool"
    if operation == Operation.RETRIEVAL:
        return "retrieval"
    if operation:
        return "model" if role_of(span) >= Role.CALL else "other"
    return "request" if role_of(span) == Role.REQUEST else "other"


def _label_of(span: Span, kind: StepKind) -> str:
    if kind == "request":
        url = span.url
        # With ids in the path, no two runs would have equal labels.
        parts = ("{}" if _DIGITS.search(part) else part for part in url.path.split("/"))
        method = str(span.attributes.get(a.HTTP_REQUEST_METHOD, span.name))
        # So would a port, which may be another one in each run.
        return _name(f"{method} {_host(url)}{'/'.join(parts)}".strip())
    if kind in ("tool", "retrieval"):
        return _name(str(span.attributes.get(a.GEN_AI_TOOL_NAME, "")) or span.name)
    return _name(span.operation or span.name)


def _host(url: SplitResult) -> str:
    return url.netloc.rpartition("@")[2].partition(":")[0]


def _name_of(span: Span, kind: StepKind) -> str:
    at = span.attributes
    if kind == "model":
        return str(at.get(a.GEN_AI_RESPONSE_MODEL) or at.get(a.GEN_AI_REQUEST_MODEL) or span.name)
    return str(at.get(a.GEN_AI_TOOL_NAME) or span.name)


def _name(text: str) -> str:
    """Return a name from a span, made harmless: short and in one line."""
    return in_one_line(text[:LONGEST_NAME])


def _digest(arguments: Any) -> str:
    if arguments is None:
        return ""
    return digest_of(arguments_of(arguments).encode("utf-8", "replace"))[:8].hex()


def _phases_of(roots: Iterable[Span]) -> dict[str, str]:
    """Return the name of the innermost agent or workflow around each span, by span id."""
    found: dict[str, str] = {}
    waiting = deque((root, "") for root in roots)
    while waiting:
        span, phase = waiting.popleft()
        if span.operation in FRAMES:
            at = span.attributes
            phase = _name(
                str(at.get(a.GEN_AI_AGENT_NAME) or at.get(a.GEN_AI_WORKFLOW_NAME) or span.name)
            )
        if phase:
            found[span.span_id] = phase
        waiting.extend((child, phase) for child in span.children)
    return found


def _times_in_states(run: Run) -> dict[str, int]:
    """Return the time in each reported phase or node of a framework, in order of their first one."""
    times: dict[str, int] = {}
    for one in transitions_of(run):
        if one.source != "steps" and one.state:
            name = _name(one.state)
            times[name] = times.get(name, 0) + (one.lasted_ns or 0)
    return times


def _called(steps: Sequence[Step]) -> Iterator[PathStep]:
    """Yield the tool calls of answers for which no span follows before the next call of a model."""
    calls: list[tuple[Step, list[str]]] = []
    spans: list[str] = []
    for step in [*steps, None]:
        is_call = step is not None and role_of(step.span) >= Role.CALL
        if step is not None and not is_call:
            spans.append(str(step.span.attributes.get(a.GEN_AI_TOOL_NAME, "")))
        if (is_call or step is None) and calls:
            caller, names = calls.pop()
            until = None if step is None else step.span.started_ns
            yield from _without_spans(caller, names, spans, until)
        if step is not None and is_call:
            calls, spans = [(step, _tools_in(step.span.attributes))], []


def _without_spans(
    caller: Step, names: Sequence[str], spans: Collection[str], until_ns: int | None
) -> Iterator[PathStep]:
    left = list(spans)
    began = caller.span.ended_ns or caller.span.started_ns
    for place, name in enumerate(names, 1):
        if name in left:
            left.remove(name)
            continue
        if until_ns is None:  # the run ended with this answer: no request shows that the tool ran
            continue
        label = _name(name)
        took = max(until_ns - began, 0)
        yield PathStep(f"{caller.number}.{place}", "tool", label, label, "ok", began, took)


def _tools_in(at: Mapping[str, Any]) -> list[str]:
    """Return the names of the tools that an answer calls."""
    called = at.get(a.PLAYHEAD_TOOL_CALLED)
    if isinstance(called, list):
        return [str(name) for name in cast("list[Any]", called)]
    output = at.get(a.GEN_AI_OUTPUT_MESSAGES)
    if output is None or (isinstance(output, str) and "tool_call" not in output):
        return []
    try:
        messages = read_output_messages(output)
    except (ValueError, RecursionError):
        return []
    return called_in(messages)


def _known(calls: Iterable[ToolCallStep]) -> Iterator[PathStep]:
    for call in calls:
        if call.span is None or call.span.operation != Operation.EXECUTE_TOOL:
            label = _name(call.name)
            yield PathStep(
                call.number,
                "tool",
                label,
                label,
                "error" if call.error else "ok" if call.ended_ns is not None else "pending",
                call.started_ns,
                call.duration_ns,
                _digest(call.arguments),
                code_of("tool", call.error) if call.error else "",
            )


def _with_calls(steps: Sequence[PathStep], calls: Iterable[ToolCallStep]) -> list[PathStep]:
    """Return the steps with the errors that the results of their calls report."""
    errors = {call.span.span_id: call.error for call in calls if call.span is not None and call.error}
    return [
        replace(step, status="error", failure=code_of("tool", errors[step.span_id]))
        if step.span_id in errors and not step.failure
        else step
        for step in steps
    ]
