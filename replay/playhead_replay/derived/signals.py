"""Derive signals of a run: atomic facts about its steps in neutral words, without a score."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from playhead_replay.derived.instructions import followed_instructions
from playhead_replay.failures.find import Failure, failures_of
from playhead_replay.json_objects.findings import SignalItem
from playhead_replay.run.run import Run, once_per_run
from playhead_replay.timeline.tool_calls import ToolCallStep, tool_calls_of
from playhead_semconv import attributes as a

VERSION: Final = 1
"""Changes with the rules below."""


@dataclass(frozen=True, slots=True)
class DerivedSignal:
    """A fact about a step."""

    type: str
    """``tool_success``, ``retry_occurred``, ``schema_valid``, ``empty_retrieval``, …"""
    code: str
    """``first_attempt``, ``after_retry``, ``full_match``, ``validation_failed``, …"""
    value: bool
    step: int
    place: str
    """``3``, or ``3.1`` for a tool call of step 3."""
    name: str
    """Of the model or the tool."""
    evidence: str = ""

    def to_json(self) -> SignalItem:
        """Return it as an object of plain values."""
        return {
            "type": self.type,
            "code": self.code,
            "value": self.value,
            "step": self.step,
            "place": self.place,
            "name": self.name,
            "evidence": self.evidence,
            "derived": True,
            "version": VERSION,
        }


@once_per_run
def signals_of(run: Run) -> list[DerivedSignal]:
    """Return the signals of a run, in order of steps."""
    calls, failures = tool_calls_of(run), failures_of(run)
    found = [
        *_of_calls(calls, failures),
        *_retries(run),
        *_empty(failures),
        *_fallbacks(run),
        *_instructions(run, calls),
    ]
    return sorted(found, key=lambda one: (one.step, one.place, one.type))


def _of_calls(calls: Sequence[ToolCallStep], failures: Sequence[Failure]) -> Iterator[DerivedSignal]:
    """Yield whether each call of a tool succeeded, and whether its arguments fit their schema."""
    invalid = {one.place: one.evidence for one in failures if one.source == "arguments"}
    for call in calls:
        step, place, name = call.step.number, call.number, call.name
        code = "after_retry" if call.attempt > 1 else "first_attempt"
        kind = "tool_failure" if call.error else "tool_success"
        yield DerivedSignal(kind, code, not call.error, step, place, name, call.error)
        if call.schema is not None:
            fits = place not in invalid
            code = "full_match" if fits else "validation_failed"
            yield DerivedSignal("schema_valid", code, fits, step, place, name, invalid.get(place, ""))
    for one in failures:
        if one.source == "output" and one.step is not None:
            yield DerivedSignal(
                "schema_valid", "validation_failed", False, one.step, one.place, one.name, one.evidence
            )


def _retries(run: Run) -> Iterator[DerivedSignal]:
    """Yield the model calls and requests that were sent more than once."""
    for step in run.steps:
        if retries := step.retries:
            code = "after_retry" if not step.span.failed else "max_retries_reached"
            number, text = step.number, f"{retries + 1} attempts"
            name = step.span.operation or step.span.name
            yield DerivedSignal("retry_occurred", code, True, number, str(number), name, text)


def _empty(failures: Sequence[Failure]) -> Iterator[DerivedSignal]:
    for one in failures:
        if one.code == "no_results" and one.step is not None:
            code = "after_retry" if one.recovered else "no_results"
            yield DerivedSignal(
                "empty_retrieval", code, True, one.step, one.place, one.name, one.evidence
            )


def _fallbacks(run: Run) -> Iterator[DerivedSignal]:
    """Yield model calls that another model answered, right after the same kind of call failed."""
    before = None
    for step in run.calls:
        at = step.span.attributes
        if before is not None and before.span.failed and not step.span.failed:
            failed, model = (
                str(one.get(a.GEN_AI_REQUEST_MODEL, "")) for one in (before.span.attributes, at)
            )
            if failed and model and failed != model and before.span.operation == step.span.operation:
                text = f"{failed} failed at step {before.number}"
                number = step.number
                yield DerivedSignal(
                    "fallback_used", "fallback_used", True, number, str(number), model, text
                )
        before = step


def _instructions(run: Run, calls: Sequence[ToolCallStep]) -> Iterator[DerivedSignal]:
    for one in followed_instructions(run, calls):
        text = f"{one.target} stands in the result of {one.source_name} at {one.source}: {one.quote}"
        yield DerivedSignal(
            "instruction_from_data", "argument_from_result", True, one.step, one.place, one.name, text
        )
