"""Find the decisions of a run: those that programs report, and those of models about tools.

A model that is offered tools decides which of them to call. Its decision is derived from the messages:
options are the tools offered, the thought is the reasoning and the text before the calls. Each decision
is linked with its actions, their outcome, and the later step that made good for a failure. The
confidence of a model comes from the log probabilities in the response.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from playhead_core.errors import TapeError
from playhead_core.reports import ProgramReport
from playhead_genai.messages import Reasoning, Text
from playhead_genai.providers import decode_body
from playhead_genai.readable_text import text_of
from playhead_replay.json_objects.findings import DecisionItem
from playhead_replay.run.histories import GrowingHistory
from playhead_replay.run.messages import Messages
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.run.steps import Step
from playhead_replay.timeline.tool_calls import ToolCallStep, tool_calls_of

VERSION: Final = 1
"""Changes with the rules below: decisions that were derived with another version may differ."""

NO_TOOL: Final = "(no tool)"
"""What a model chooses that is offered tools and answers instead."""
LONGEST: Final = 500
"""Characters of a thought and of an outcome."""
MOST_OPTIONS: Final = 100


@dataclass(frozen=True, slots=True)
class Decision:
    """A decision."""

    question: str
    type: str
    chosen: str
    """Several tools are separated by commas."""
    options: list[str]
    rejected: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Each with its reason, which may be empty."""
    rules: list[str] = field(default_factory=list[str])
    """Names of the rules that were applied."""
    reason: str = ""
    method: str = ""
    confidence: float | None = None
    """From 0 to 1, as the program reports it, else from the log probabilities of the answer."""
    step: int | None = None
    time_ns: int = 0
    thought: str = ""
    """The reasoning and the text of the model before the calls."""
    actions: list[str] = field(default_factory=list[str])
    """Numbers of the tool calls that follow from it: ``3.1``."""
    outcome: str = ""
    """The result of the first action, or why the first one that failed did."""
    failed: bool = False
    """Whether an action failed."""
    recovered_by: str | None = None
    """The later call of the same tool that succeeded; None: none did, or nothing failed."""
    derived: bool = True

    def to_json(self) -> DecisionItem:
        """Return it as an object of plain values."""
        return {
            "question": self.question or None,
            "type": self.type or None,
            "chosen": self.chosen,
            "options": self.options,
            "rejected": [{"option": one, "reason": reason or None} for one, reason in self.rejected],
            "rules": self.rules,
            "reason": self.reason or None,
            "method": self.method or None,
            "confidence": self.confidence,
            "step": self.step,
            "time_ns": self.time_ns,
            "thought": self.thought or None,
            "actions": self.actions,
            "outcome": self.outcome or None,
            "failed": self.failed,
            "recovered_by": self.recovered_by,
            "derived": self.derived,
            "version": VERSION if self.derived else None,
        }


@once_per_run
def decisions_of(run: Run) -> list[Decision]:
    """Return the decisions of a run by time.

    A decision that a program reports takes the place of the derived one in the same step that chooses
    the same.
    """
    calls = tool_calls_of(run)
    by_step: dict[int, list[ToolCallStep]] = defaultdict(list)
    for call in calls:
        by_step[call.step.number].append(call)
    reported = [_reported(one) for one in run.reports if one.kind == "decision"]
    derived: list[Decision] = []
    history = GrowingHistory()
    for step in run.calls:
        messages = run.messages(step, history)
        found = _derived(run, step, messages, by_step[step.number])
        if found is None:
            continue
        same = [at for at, one in enumerate(reported) if one.step == step.number and _agree(one, found)]
        for at in same:  # what follows is known from the messages alone
            reported[at] = replace(reported[at], thought=found.thought, actions=found.actions)
        derived += [] if same else [found]
    decisions = sorted([*reported, *derived], key=lambda one: one.time_ns)
    by_number = {call.number: call for call in calls}
    return [_with_outcome(one, by_number, calls) for one in decisions]


def _agree(reported: Decision, derived: Decision) -> bool:
    return reported.chosen == derived.chosen


def _reported(report: ProgramReport) -> Decision:
    confidence = report.fields.get("confidence")
    return Decision(
        report.text("question"),
        report.text("type"),
        report.text("chosen"),
        report.texts("options"),
        report.rejected,
        report.texts("rules"),
        report.text("reason"),
        report.text("method"),
        confidence if isinstance(confidence, float) else None,
        report.step,
        report.time_ns,
        derived=False,
    )


def _derived(run: Run, step: Step, messages: Messages, calls: Sequence[ToolCallStep]) -> Decision | None:
    """Return what a model decides about its tools in an answer; None if it is not offered any."""
    called = list(dict.fromkeys(call.name for call in calls))
    offered = list(dict.fromkeys([*(tool.name for tool in messages.tools), *called]))
    if not offered or not messages.output:
        return None
    ended_ns = step.span.ended_ns or step.span.started_ns
    return Decision(
        "",
        "tool_selection",
        ", ".join(called) or NO_TOOL,
        offered[:MOST_OPTIONS],
        method="llm_based",
        confidence=_confidence(run, step),
        step=step.number,
        time_ns=ended_ns,
        thought=_thought(messages) if called else _thought(messages, reasoning_only=True),
        actions=[call.number for call in calls],
    )


def _thought(messages: Messages, *, reasoning_only: bool = False) -> str:
    """Return the reasoning and the text of an answer."""
    kinds = Reasoning if reasoning_only else (Reasoning, Text)
    parts = (part for message in messages.output for part in message.parts if isinstance(part, kinds))
    return " ".join(" ".join(part.content.split()) for part in parts if part.content)[:LONGEST]


def _confidence(run: Run, step: Step) -> float | None:
    exchanges = run.exchanges_of(step)
    if not exchanges:
        return None
    try:
        body = decode_body(exchanges[-1].response_headers, [exchanges[-1].response])[0]
    except TapeError:
        return None
    return confidence_in(body)


def _with_outcome(
    decision: Decision, by_number: dict[str, ToolCallStep], calls: Sequence[ToolCallStep]
) -> Decision:
    """Return a decision with the outcome of its actions, and the later call that made good for one."""
    own = [by_number[number] for number in decision.actions if number in by_number]
    failed = next((call for call in own if _error_of(call)), None)
    if failed is None:
        ended = next((call for call in own if call.ended_ns is not None), None)
        outcome = "" if ended is None else text_of(ended.result)
        return replace(decision, outcome=" ".join(outcome.split())[:LONGEST])
    later = (
        call.number
        for call in calls
        if call.step.number > failed.step.number
        and call.name == failed.name
        and call.ended_ns is not None
        and not _error_of(call)
    )
    said = " ".join(_error_of(failed).split())[:LONGEST]
    return replace(decision, outcome=said, failed=True, recovered_by=next(later, None))


def _error_of(call: ToolCallStep) -> str:
    return call.error or (call.span.error if call.span is not None else "")


MOST_BYTES: Final = 1 << 20
"""Larger responses are not searched."""
_PARTS: Final = ("choices", "candidates", "output", "content", "item", "response", "delta", "logprobs")
"""Fields in which log probabilities are, from the outside in; others repeat them, as alternatives."""


def confidence_in(body: bytes) -> float | None:
    """Return the geometric mean of the probabilities of the tokens in a response; None without any.

    >>> confidence_in(b'{"choices": [{"logprobs": {"content": [{"logprob": -1.0}]}}]}')
    0.3679
    """
    if len(body) > MOST_BYTES or b"ogprob" not in body:
        return None
    try:
        found = [one for document in _documents(body) for one in _logarithms(document)]
    except RecursionError:
        return None
    return round(math.exp(min(sum(found) / len(found), 0.0)), 4) if found else None


def _documents(body: bytes) -> Iterator[Any]:
    """Yield the JSON documents of a response: the whole, or its server-sent events."""
    try:
        yield json.loads(body)
        return
    except (ValueError, RecursionError):
        pass
    for line in body.splitlines():
        if line.startswith(b"data:"):
            try:
                yield json.loads(line[5:])
            except (ValueError, RecursionError):
                continue


def _logarithms(value: Any) -> Iterator[float]:
    if isinstance(value, list):
        for one in cast("list[Any]", value):
            yield from _logarithms(one)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        for name in ("logprob", "avgLogprobs"):
            number = fields.get(name)
            if (
                isinstance(number, int | float)
                and not isinstance(number, bool)
                and math.isfinite(number)
            ):
                yield float(number)
        for name in _PARTS:
            if isinstance(fields.get(name), dict | list):
                yield from _logarithms(fields[name])
