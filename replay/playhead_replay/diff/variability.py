"""Compares many runs of one agent: which paths they take, where these split, and how far they differ."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from playhead_replay.diff.rundiff import SCHEMA_VERSION, Totals
from playhead_replay.diff.side import Side
from playhead_replay.run.run import Run


@dataclass(frozen=True, slots=True)
class Path:
    """One way through an agent, and the runs that took it."""

    steps: list[str]
    runs: list[str]


@dataclass(frozen=True, slots=True)
class Split:
    """A step at which runs split that had taken the same path until then."""

    step: int
    """Number of the first step that differs, from 1."""
    ways: dict[str, list[str]]
    """What the step was → names of the runs that took it. ``(end)``: the run had ended."""


@dataclass(frozen=True, slots=True)
class Spread:
    """Minimum, median and maximum."""

    least: float
    middle: float
    most: float

    def to_json(self) -> dict[str, float]:
        """As an object of plain values."""
        return {"min": self.least, "median": self.middle, "max": self.most}


@dataclass(slots=True)
class Variability:
    """How much the flow of an agent varies between its runs."""

    runs: list[str]
    paths: list[Path]
    """Distinct flows, the most frequent first."""
    forks: list[Split]
    """In order of their steps."""
    distances: list[list[int]]
    """Edit distance between the tool sequences of each pair of runs."""
    statuses: dict[str, int]
    spreads: dict[str, Spread]
    """Keys: steps, input_tokens, output_tokens, duration_ns."""

    @property
    def mean_distance(self) -> float:
        """Mean over all pairs of runs; 0 for one run."""
        count = len(self.runs)
        total = sum(self.distances[i][j] for i in range(count) for j in range(i))
        return total / (count * (count - 1) / 2) if count > 1 else 0.0

    def to_json(self) -> dict[str, Any]:
        """As an object of plain values."""
        return {
            "schema_version": SCHEMA_VERSION,
            "runs": self.runs,
            "distinct_paths": len(self.paths),
            "paths": [{"steps": path.steps, "runs": path.runs} for path in self.paths],
            "forks": [{"step": fork.step, "ways": fork.ways} for fork in self.forks],
            "tool_distances": self.distances,
            "mean_tool_distance": self.mean_distance,
            "statuses": self.statuses,
            "spreads": {name: spread.to_json() for name, spread in self.spreads.items()},
        }


def variability(runs: Sequence[Run]) -> Variability:
    """Compare the flows of ``runs``. `ValueError` if there are none."""
    if not runs:
        raise ValueError("no run to compare")
    sides = [Side(run) for run in runs]
    flows = {side.run.name: side.path for side in sides}
    taken: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, flow in flows.items():
        taken[tuple(flow)].append(name)
    totals = [Totals.of(run) for run in runs]
    figures: dict[str, list[float]] = {
        "steps": [one.steps for one in totals],
        "input_tokens": [one.input_tokens for one in totals],
        "output_tokens": [one.output_tokens for one in totals],
        "duration_ns": [one.duration_ns for one in totals if one.duration_ns is not None],
    }
    return Variability(
        list(flows),
        sorted((Path(list(flow), names) for flow, names in taken.items()), key=lambda p: -len(p.runs)),
        _forks(flows),
        [[edit_distance(one.tools, other.tools) for other in sides] for one in sides],
        dict(Counter(run.status for run in runs)),
        {
            name: Spread(min(values), median(values), max(values))
            for name, values in figures.items()
            if values
        },
    )


def _forks(flows: dict[str, list[str]]) -> list[Split]:
    forks: list[Split] = []
    together = [list(flows)]
    for index in range(max(len(flow) for flow in flows.values()) + 1):
        parted: list[list[str]] = []
        for names in together:
            ways: dict[str, list[str]] = defaultdict(list)
            for name in names:
                flow = flows[name]
                ways[flow[index] if index < len(flow) else "(end)"].append(name)
            if len(ways) > 1:
                forks.append(Split(index + 1, dict(ways)))
            parted += [group for way, group in ways.items() if way != "(end)" and len(group) > 1]
        together = parted
    return forks


def edit_distance(left: Sequence[str], right: Sequence[str]) -> int:
    """Number of insertions, deletions and replacements that turn one into the other (Levenshtein).

    >>> edit_distance(["search", "refund"], ["search", "search", "refund"])
    1
    """
    line = list(range(len(right) + 1))
    for row, one in enumerate(left, 1):
        corner, line[0] = line[0], row
        for column, other in enumerate(right, 1):
            corner, line[column] = (
                line[column],
                min(line[column] + 1, line[column - 1] + 1, corner + (one != other)),
            )
    return line[-1]
