"""Runs like another one, with what they have in common."""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import Final

from rapidfuzz.distance import Indel

from playhead_analysis.paths import RunPath
from playhead_analysis.same_content import ReadContent, SameContent

WEIGHTS: Final = {"way": 0.5, "tools": 0.25, "calls": 0.15, "failure": 0.1}
"""Shares of the likeness: order of steps, tools, calls with equal arguments, and end."""
LONGEST_WAY: Final = 2_000
"""Steps of a run that are compared in order."""


@dataclass(frozen=True, slots=True)
class LikeRun:
    """A run and how alike it is."""

    name: str
    trace_id: str
    status: str
    likeness: float
    """From 0 to 1; 1: the same steps in the same order, with the same arguments and the same end."""
    way: float
    """Share of the steps that both took in the same order."""
    tools: float
    """Share of the tools that both called."""
    same_calls: list[str]
    """Tools that both called with the same arguments."""
    failures: list[str]
    """Failures of both: ``search timeout``."""
    only_here: list[str]
    """Tools that only this run called."""
    only_there: list[str]
    """Tools that only the run it is compared with called."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LikeRuns:
    """A run, and the runs that are most like it."""

    schema_version: int = 1
    run: str
    like: list[LikeRun]
    """The most alike first; empty if only the contents of a step were asked for."""
    contents: list[ReadContent]
    """What the run read, the longest first."""
    same_content: list[SameContent]
    """Other runs that read one of these."""


def runs_like(run: RunPath, others: Iterable[RunPath], limit: int = 20) -> list[LikeRun]:
    """Return the runs that are most like ``run``, which is left out itself."""
    measured = [_compared(run, other) for other in others if other.trace_id != run.trace_id]
    return sorted(measured, key=lambda one: (-one.likeness, one.trace_id))[:limit]


def _compared(run: RunPath, other: RunPath) -> LikeRun:
    way = _order(run.labels[:LONGEST_WAY], other.labels[:LONGEST_WAY])
    tools, other_tools = _tools(run), _tools(other)
    calls, other_calls = _calls(run), _calls(other)
    failures, other_failures = _failures(run), _failures(other)
    shares = {
        "way": way,
        "tools": _overlap(tools, other_tools),
        "calls": _overlap(calls, other_calls),
        "failure": (run.failed == other.failed) * _overlap(failures, other_failures),
    }
    return LikeRun(
        other.name,
        other.trace_id,
        other.status,
        round(sum(WEIGHTS[of] * share for of, share in shares.items()), 4),
        round(way, 4),
        round(shares["tools"], 4),
        sorted({label for label, _ in calls & other_calls}),
        sorted(failures & other_failures),
        sorted(other_tools - tools),
        sorted(tools - other_tools),
    )


def _order(left: Sequence[str], right: Sequence[str]) -> float:
    return Indel.normalized_similarity(left, right)


def _overlap(left: Set[object], right: Set[object]) -> float:
    """Return the share of the members of two sets that both have; 1 for two empty sets."""
    return len(left & right) / len(left | right) if left or right else 1.0


def _tools(run: RunPath) -> set[str]:
    return {step.label for step in run.steps if step.kind in ("tool", "retrieval", "request")}


def _calls(run: RunPath) -> set[tuple[str, str]]:
    return {(step.label, step.arguments) for step in run.steps if step.arguments}


def _failures(run: RunPath) -> set[str]:
    return {f"{step.label} {step.failure}" for step in run.steps if step.failure}
