"""The directly-follows graph of many runs: which step follows which, how often and after what time.

Two measures tell a rule from an accident. The *share* of an edge among the edges of its ends: noise,
such as a lost span, gives many edges with a small share each. The *dependency* of the heuristics miner:
near 1 if B follows A and A never follows B, near 0 if they are concurrent.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median_low
from typing import Final

from playhead_analysis.paths import PathStep, RunPath

START: Final = "(start)"
END: Final = "(end)"

RARE_SHARE: Final = 0.05
"""An edge is rare if it is less than this share of what leaves its source and enters its target, as the
geometric mean of both: the only way to a rare step is not rare."""
RARE_RUNS: Final = 0.015
"""An edge is rare, too, if less than this share of the runs take it, whatever its ends are."""
ACCIDENT_TIMES: Final = 5
MOST_RARE_SHARE: Final = 0.065
MOST_ODD: Final = 0.15
"""If at most `MOST_ODD` of the runs take rare edges, these are accidents. Short runs have few steps at
which accidents can happen, so some of them repeat: an edge is rare, too, if its share is less than
`ACCIDENT_TIMES` the accidents per step, up to `MOST_RARE_SHARE`. Where more are odd, runs choose."""
FEW_RUNS: Final = 10
"""Of fewer runs no edge is called rare: they do not tell noise from a way that few take."""


@dataclass(frozen=True, slots=True)
class FlowNode:
    """A step of a flow, over all runs."""

    label: str
    kind: str
    """`model`, `tool`, `retrieval`, `request` or `other`; `start` and `end` for the ends of runs."""
    count: int
    runs: int
    """Runs that have it."""
    failures: int
    failure_codes: dict[str, int]
    """How often it failed in each way."""
    median_ns: int | None
    """Median duration; null if none is known."""
    p95_ns: int | None


@dataclass(frozen=True, slots=True)
class FlowEdge:
    """A step that directly follows another."""

    source: str
    target: str
    count: int
    runs: int
    share: float
    """Of all that leaves the source, from 0 to 1."""
    dependency: float
    """From -1 to 1: near 1 if the target follows from the source, near 0 if their order is free."""
    median_ns: int | None
    """Median time from the end of the source to the start of the target; null at the ends of runs."""
    p95_ns: int | None
    is_rare: bool
    """Whether it is too rare to tell it from noise."""


def nodes_of(paths: Sequence[RunPath]) -> list[FlowNode]:
    """Return the nodes of the graph: the ends, then the steps, the most frequent first."""
    steps: defaultdict[str, list[PathStep]] = defaultdict(list)
    runs: Counter[str] = Counter()
    for path in paths:
        for step in path.steps:
            steps[step.label].append(step)
        runs.update(set(path.labels))
    found = [
        FlowNode(
            label,
            Counter(step.kind for step in some).most_common(1)[0][0],
            len(some),
            runs[label],
            sum(step.status == "error" for step in some),
            dict(sorted(Counter(step.failure for step in some if step.failure).items())),
            *median_and_p95([step.duration_ns for step in some if step.duration_ns is not None]),
        )
        for label, some in steps.items()
    ]
    count = len(paths)
    ends = [FlowNode(one, one.strip("()"), count, count, 0, {}, None, None) for one in (START, END)]
    return [*ends, *sorted(found, key=lambda node: (-node.count, node.label))]


def edges_of(paths: Sequence[RunPath]) -> list[FlowEdge]:
    """Return the edges of the graph, the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    runs: Counter[tuple[str, str]] = Counter()
    taken: list[set[tuple[str, str]]] = []
    returns: Counter[tuple[str, str]] = Counter()
    gaps: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for path in paths:
        labels = (START, *path.labels, END)
        pairs = list(pairwise(labels))
        counts.update(pairs)
        taken.append(set(pairs))
        runs.update(taken[-1])
        returns.update((one, other) for one, other, again in _triples(labels) if one == again != other)
        for one, other in pairwise(path.steps):
            if one.duration_ns is not None:
                gap = other.started_ns - one.started_ns - one.duration_ns
                gaps[one.label, other.label].append(max(gap, 0))
    leaving, entering = Counter[str](), Counter[str]()
    for (source, target), count in counts.items():
        leaving[source] += count
        entering[target] += count
    shares = {
        (source, target): count / math.sqrt(leaving[source] * entering[target])
        for (source, target), count in counts.items()
    }
    rare = _rare_edges(shares, runs, taken)
    found = [
        FlowEdge(
            source,
            target,
            count,
            runs[source, target],
            round(count / leaving[source], 4),
            round(dependency(source, target, counts, returns), 4),
            *median_and_p95(gaps.get((source, target), ())),
            (source, target) in rare,
        )
        for (source, target), count in counts.items()
    ]
    return sorted(found, key=lambda edge: (-edge.count, edge.source, edge.target))


def dependency(
    source: str,
    target: str,
    counts: Mapping[tuple[str, str], int],
    returns: Mapping[tuple[str, str], int],
) -> float:
    """Return the dependency measure of the heuristics miner, also for loops of one and two steps.

    ``returns``: how often A, B, A follow each other, by (A, B).

    >>> dependency("a", "b", {("a", "b"): 9}, {}), dependency("a", "a", {("a", "a"): 9}, {})
    (0.9, 0.9)
    """
    there, back = counts.get((source, target), 0), counts.get((target, source), 0)
    if source == target:
        return there / (there + 1)
    loops = returns.get((source, target), 0) + returns.get((target, source), 0)
    return max((there - back) / (there + back + 1), loops / (loops + 1) if loops else -1.0)


def _rare_edges(
    shares: Mapping[tuple[str, str], float],
    runs: Mapping[tuple[str, str], int],
    taken: Sequence[set[tuple[str, str]]],
) -> set[tuple[str, str]]:
    """Return the edges that are too rare to tell them from noise.

    ``shares``: of what their ends have. ``runs``: that take each. ``taken``: the edges of each run.
    """
    count = len(taken)
    if count < FEW_RUNS:
        return set()
    least = max(2, math.ceil(RARE_RUNS * count))
    rare = {edge for edge, share in shares.items() if share < RARE_SHARE or runs[edge] < least}
    odd = sum(not edges.isdisjoint(rare) for edges in taken) / count
    if odd > MOST_ODD:
        return rare
    accidents_per_step = odd * count / sum(map(len, taken))
    limit = min(ACCIDENT_TIMES * accidents_per_step, MOST_RARE_SHARE)
    return rare | {edge for edge, share in shares.items() if share < limit}


def median_and_p95(values: Sequence[int]) -> tuple[int | None, int | None]:
    """Return the lower median and the 95th percentile by nearest rank; None without values."""
    if not values:
        return None, None
    ascending = sorted(values)
    return median_low(ascending), ascending[math.ceil(len(ascending) * 0.95) - 1]


def _triples(labels: Sequence[str]) -> Iterable[tuple[str, str, str]]:
    return zip(labels, labels[1:], labels[2:], strict=False)
