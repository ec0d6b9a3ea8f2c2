"""Tool calls that the messages of a run report: a call in one answer, its result in a later request.

Most programs call their tools as plain functions, which leaves no span. The messages still have the
name, the arguments and the result. The duration is an upper bound: from the end of the answer to the
request that has the result. A span that reports the same call wins: of a framework's hook, of a marked
tool, of MCP, or of the HTTP request that has the arguments, or whose response is the result.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any
from urllib.parse import unquote_plus

import msgspec

from playhead_core.errors import TapeError
from playhead_genai.messages import ToolCall, ToolCallResponse
from playhead_genai.readable_text import named_arguments, news, text_of
from playhead_genai.tool_results import error_of, is_same_value
from playhead_replay.json_objects.findings import ToolCallItem
from playhead_replay.run.histories import GrowingHistory
from playhead_replay.run.messages import Messages
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import Step
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

SHORTEST_ARGUMENT = 2
"""Characters of an argument by which a request is recognized; shorter ones occur anywhere."""

MOST_WITHOUT_ID = 100
"""Pending calls without an id that are kept, the latest ones."""

MOST_BODY_BYTES = 1 << 20
"""Longer HTTP responses are not compared with the result of a tool."""


@dataclass(slots=True)
class ToolCallStep:
    """A tool call of a model."""

    step: Step
    """The step whose answer has the call."""
    place: int
    """From 1 among the calls of the answer."""
    id: str
    """Empty if the provider gives none."""
    name: str
    arguments: Any
    started_ns: int
    ended_ns: int | None = None
    """None: no later request has its result."""
    result: Any = None
    error: str = ""
    """Why it failed, as its result says; empty if it did not."""
    attempt: int = 1
    """From 1: number of times that the same call was made because the one before failed."""
    span: Span | None = None
    """The span that reports the same call; None if it is known from the messages alone."""
    schema: Any = None
    """Of the arguments, as the request offers the tool; None if it is not known."""
    is_offered: bool = True
    """Whether the request offers the tool; also if it is not known what it offers."""

    @property
    def number(self) -> str:
        """``3.1``: the first call of the answer of step 3."""
        return f"{self.step.number}.{self.place}"

    @property
    def is_derived(self) -> bool:
        """Whether only the messages report the call."""
        return self.span is None

    @property
    def duration_ns(self) -> int | None:
        """Time from the answer to the request that has the result; of its span, if there is one."""
        if self.span is not None:
            return self.span.duration_ns
        return None if self.ended_ns is None else max(0, self.ended_ns - self.started_ns)

    def to_json(self) -> ToolCallItem:
        """Return the call as an object of plain values."""
        times = self if self.span is None else self.span
        return {
            "number": self.number,
            "name": self.name,
            "id": self.id or None,
            "asked_by": self.step.number,
            "arguments": msgspec.to_builtins(self.arguments),
            "result": msgspec.to_builtins(self.result),
            "error": self.error or None,
            "attempt": self.attempt,
            "started_ns": times.started_ns,
            "ended_ns": times.ended_ns,
            "derived": self.is_derived,
            "span_id": None if self.span is None else self.span.span_id,
        }


class _PendingCalls:
    """Calls whose result no request has had yet. Programs leave many without a result for ever."""

    def __init__(self) -> None:
        self._by_id: dict[str, ToolCallStep] = {}
        self._without_id: deque[ToolCallStep] = deque(maxlen=MOST_WITHOUT_ID)

    def __iter__(self) -> Iterator[ToolCallStep]:
        return chain(self._by_id.values(), self._without_id)

    def __bool__(self) -> bool:
        return bool(self._by_id or self._without_id)

    def add(self, calls: Iterable[ToolCallStep]) -> None:
        """Add the calls of an answer. A server may use an id again: the later call has it then."""
        for call in calls:
            if call.id:
                self._by_id[call.id] = call
            else:
                self._without_id.append(call)

    def answered_by(self, messages: Messages) -> list[tuple[ToolCallStep, ToolCallResponse]]:
        """Remove the calls with a result in ``messages``; return them with it.

        Results without an id belong to the calls in their order, by name if they have one.
        """
        # Of a history in which an id occurs several times, the last result counts.
        by_id = {part.id: part for part in _results(messages.input) if part.id}
        found = [(self._by_id.pop(id), part) for id, part in by_id.items() if id in self._by_id]
        nameless = [part for part in _results(news(messages.input)) if not part.id]
        for call in list(self._without_id) if nameless else ():
            part = next(
                (one for one in nameless if one.extras.get("name", call.name) == call.name), None
            )
            if part is not None:
                nameless.remove(part)
                self._without_id.remove(call)
                found.append((call, part))
        return found


@once_per_run
def tool_calls_of(run: Run) -> list[ToolCallStep]:
    """Return the tool calls of a run, in order of the steps that asked for them.

    A call without a result is left out, except that of the last answer of a run that did not succeed.
    """
    calls = _with_results(run)
    _number_attempts(calls)
    _link(run, calls)
    return calls


def unanswered_calls(run: Run, calls: Iterable[ToolCallStep]) -> Iterator[ToolCallStep]:
    """Yield the tool calls in answers of which no call is among ``calls`` (`tool_calls_of`).

    Such as the call of a tool that stands for a structured output: the program reads its arguments.
    """
    answered = {call.step.number for call in calls}
    for step in run.calls:
        if step.number not in answered and _may_call(run, step):
            yield from _calls_in(step, run.messages(step))


def _with_results(run: Run) -> list[ToolCallStep]:
    history = GrowingHistory()
    pending = _PendingCalls()
    answered: list[ToolCallStep] = []
    last = None
    for step in run.calls:
        may_call = _may_call(run, step)
        last = step
        if not pending and not may_call:
            continue
        messages = run.messages(step, history)
        for call, part in pending.answered_by(messages):
            call.result, call.error = part.response, error_of(part, call.name)
            call.ended_ns = step.span.started_ns
            answered.append(call)
        if may_call:
            pending.add(_calls_in(step, messages))
    if run.status != "success":
        answered += [call for call in pending if call.step is last]
    return sorted(answered, key=lambda call: (call.step.number, call.place))


def _may_call(run: Run, step: Step) -> bool:
    """Return whether the answer of a step may have tool calls, without reading it."""
    at = step.span.attributes
    if a.PLAYHEAD_WIRE in at:
        return a.PLAYHEAD_TOOL_CALLED in at
    output = at.get(a.GEN_AI_OUTPUT_MESSAGES)
    if output is None:  # the answer is in the bytes, or was not recorded
        return bool(run.exchanges)
    return not isinstance(output, str) or "tool" in output


def _calls_in(step: Step, messages: Messages) -> Iterator[ToolCallStep]:
    parts = (part for message in messages.output for part in message.parts)
    ended_ns = step.span.ended_ns or step.span.started_ns
    calls = (part for part in parts if isinstance(part, ToolCall))
    schemas = {tool.name: tool.parameters for tool in messages.tools}
    for place, part in enumerate(calls, 1):
        call = ToolCallStep(step, place, part.id or "", part.name, part.arguments, ended_ns)
        call.schema = schemas.get(part.name)
        call.is_offered = not schemas or part.name in schemas or "" in schemas
        yield call


def _results(messages: Iterable[Any]) -> Iterator[ToolCallResponse]:
    return (part for one in messages for part in one.parts if isinstance(part, ToolCallResponse))


def _number_attempts(calls: Iterable[ToolCallStep]) -> None:
    failed: dict[tuple[str, str], int] = {}
    for call in calls:
        key = call.name, text_of(named_arguments(call.arguments) or call.arguments)
        call.attempt = failed.pop(key, 0) + 1
        if call.error:
            failed[key] = call.attempt


def _link(run: Run, calls: Sequence[ToolCallStep]) -> None:
    """Find the spans that report the same calls. Each span reports one call."""
    if not calls:
        return
    found = {span.span_id: span for span in run.spans if span.operation == Operation.EXECUTE_TOOL}
    tools = [span for span in found.values() if not run.told_by(span)]
    by_id: defaultdict[str, deque[Span]] = defaultdict(deque)
    for span in found.values():  # the id may be on another span of the same call than that of the step
        step = found.get(run.told_by(span), span)
        by_id[str(span.attributes.get(a.GEN_AI_TOOL_CALL_ID, ""))].append(step)
    taken = set[str]()
    for call in calls:
        while call.id and by_id.get(call.id) and call.span is None:
            span = by_id[call.id].popleft()
            call.span = None if span.span_id in taken else span
            taken.add(span.span_id)
    requests = {step.span.span_id: step for step in run.steps if not step.span.operation}
    spans = sorted([*tools, *(step.span for step in requests.values())], key=_start)
    starts = [_start(span) for span in spans]

    def during(call: ToolCallStep) -> list[Span]:
        begin = bisect_left(starts, call.started_ns)
        end = len(spans) if call.ended_ns is None else bisect_right(starts, call.ended_ns)
        return [span for span in spans[begin:end] if span.span_id not in taken]

    for call in calls:
        if call.span is None:
            near = during(call)
            named = (one for one in near if one.span_id not in requests and _reports(one, call))
            made = (one for one in near if _is_made_by(run, requests.get(one.span_id), call))
            call.span = next(chain(named, made), None)
            if call.span is not None:
                taken.add(call.span.span_id)
    for call in calls:  # a failed call: its result holds nothing of its request
        if call.span is None and call.error:
            left = [one for one in during(call) if one.span_id in requests]
            failed = next((one for one in left if one.failed), None)
            call.span = failed or (left[0] if len(left) == 1 else None)
            if call.span is not None:
                taken.add(call.span.span_id)


def _start(span: Span) -> int:
    return span.started_ns


def _reports(span: Span, call: ToolCallStep) -> bool:
    at = span.attributes
    if at.get(a.GEN_AI_TOOL_NAME) == call.name:
        return True
    arguments = named_arguments(at.get(a.GEN_AI_TOOL_CALL_ARGUMENTS))
    return bool(arguments) and arguments == named_arguments(call.arguments)


def _is_made_by(run: Run, step: Step | None, call: ToolCallStep) -> bool:
    """Return whether a request is the call: it has all its arguments, or its response is the result."""
    if step is None:
        return False
    values = [text_of(one) for one in (named_arguments(call.arguments) or {}).values()]
    url = unquote_plus(step.span.url.geturl())
    if values and all(len(one) >= SHORTEST_ARGUMENT and one in url for one in values):
        return True
    exchanges = run.exchanges_of(step)
    if call.result is None or not exchanges or sum(exchanges[-1].chunk_sizes) > MOST_BODY_BYTES:
        return False
    try:
        return is_same_value(exchanges[-1].response, call.result)
    except TapeError:
        return False
