"""The flow of many runs: graph, distinct ways, and the points at which runs part."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from playhead_analysis.flows.graph import (
    END,
    START,
    FlowEdge,
    FlowNode,
    edges_of,
    median_and_p95,
    nodes_of,
)
from playhead_analysis.paths import RunPath

SCHEMA_VERSION: Final = 1
Z: Final = 1.96
"""Standard deviations of a confidence of 95 %."""
MARGIN: Final = 0.05
"""Margin of error of a share, by default: five percentage points."""
EXAMPLES: Final = 3
"""Names of runs that a way has."""

PointKind: TypeAlias = Literal["decision", "variation"]


@dataclass(frozen=True, slots=True)
class Way:
    """A distinct way through an agent: runs with the same labels."""

    steps: list[str]
    count: int
    share: float
    failed: int
    """Runs of it that failed or were interrupted."""
    median_ns: int | None
    examples: list[str]
    """Names of some of its runs."""


@dataclass(frozen=True, slots=True)
class BranchTarget:
    """What follows at a point."""

    target: str
    count: int
    share: float
    runs_needed: int
    """Runs that are needed to know the share within the margin, at a confidence of 95 %."""


@dataclass(frozen=True, slots=True)
class BranchPoint:
    """A step after which runs go on in different ways."""

    kind: PointKind
    """`decision`: a model chose, so differences are meant; `variation`: no model did."""
    after: str
    """The step before it, for a model: what it knew when it chose. Empty for other steps."""
    at: str
    count: int
    """How often runs passed it."""
    branches: list[BranchTarget]
    """The most frequent first."""
    runs_needed: int
    """Runs needed for all its shares."""
    is_known: bool
    """Whether there were as many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """What many runs did."""

    schema_version: int = SCHEMA_VERSION
    runs: int
    failed: int
    steps: int
    distinct_ways: int
    nodes: list[FlowNode]
    edges: list[FlowEdge]
    ways: list[Way]
    """The most frequent first; perhaps not all."""
    points: list[BranchPoint]
    """Points at which runs part, the most frequent first."""
    margin: float
    """Margin of error of the shares."""
    unseen_share: float
    """A way that this share of all runs takes would have been seen, at a confidence of 95 %."""
    truncated: bool
    """Whether more runs match than were read."""


def flow_of(
    paths: Sequence[RunPath], most_ways: int = 20, margin: float = MARGIN, truncated: bool = False
) -> Flow:
    """Return the flow of some runs. The order of the runs makes no difference."""
    paths = sorted(paths, key=lambda path: (path.started_ns, path.trace_id))
    ways = _ways_of(paths)
    count = len(paths)
    return Flow(
        runs=count,
        failed=sum(path.failed for path in paths),
        steps=sum(len(path.steps) for path in paths),
        distinct_ways=len(ways),
        nodes=nodes_of(paths),
        edges=edges_of(paths),
        ways=ways[:most_ways],
        points=_points_of(paths, margin),
        margin=margin,
        unseen_share=round(1 - 0.05 ** (1 / count), 4) if count else 1.0,
        truncated=truncated,
    )


def runs_needed(share: float, margin: float = MARGIN) -> int:
    """Return how many runs are needed to know a share within a margin: n = Z²p(1-p)/E².

    >>> runs_needed(0.5), runs_needed(0.95), runs_needed(1.0)
    (385, 73, 0)
    """
    return math.ceil(round(Z * Z * share * (1 - share) / (margin * margin), 6))


def missed(share: float, runs: int) -> float:
    """Return the probability that none of some runs takes a branch with a share: (1-p)ⁿ.

    >>> round(missed(0.05, 20), 2)
    0.36
    """
    return (1 - share) ** runs


def _ways_of(paths: Sequence[RunPath]) -> list[Way]:
    taken: defaultdict[tuple[str, ...], list[RunPath]] = defaultdict(list)
    for path in paths:
        taken[path.labels].append(path)
    found = [
        Way(
            list(labels),
            len(some),
            round(len(some) / len(paths), 4),
            sum(path.failed for path in some),
            median_and_p95([path.duration_ns for path in some if path.duration_ns is not None])[0],
            [path.name for path in some[:EXAMPLES]],
        )
        for labels, some in taken.items()
    ]
    return sorted(found, key=lambda way: (-way.count, way.steps))


def _points_of(paths: Sequence[RunPath], margin: float) -> list[BranchPoint]:
    followers: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    kinds: dict[tuple[str, str], PointKind] = {}
    for path in paths:
        before = START
        for step, after in zip(path.steps, (*path.labels[1:], END), strict=False):
            chose = step.kind == "model"
            # An agent asks its model after every step: only what came before tells its choices apart.
            point = (before if chose else "", step.label)
            kinds[point] = "decision" if chose else "variation"
            followers[point][after] += 1
            before = step.label
    found = [
        _point(kinds[point], point, counts, margin)
        for point, counts in followers.items()
        if len(counts) > 1
    ]
    return sorted(found, key=lambda point: (-point.count, point.after, point.at))


def _point(kind: PointKind, point: tuple[str, str], counts: Counter[str], margin: float) -> BranchPoint:
    total = counts.total()
    branches = [
        BranchTarget(target, count, round(count / total, 4), runs_needed(count / total, margin))
        for target, count in sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    ]
    needed = max(branch.runs_needed for branch in branches)
    return BranchPoint(kind, *point, total, branches, needed, total >= needed)
