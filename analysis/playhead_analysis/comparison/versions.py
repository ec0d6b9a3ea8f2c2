"""Compares two groups of runs: outcome, tools, failures, ways, cost and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, sqrt
from statistics import median
from typing import Final, Literal, TypeAlias

from playhead_analysis.comparison.permutation import Measure, adjusted_p_values, cliffs_delta
from playhead_analysis.paths import RunPath

Family: TypeAlias = Literal["outcome", "tools", "other"]
Verdict: TypeAlias = Literal["difference", "no difference found", "too few runs"]

LEVELS: Final[dict[Family, float]] = {"outcome": 0.025, "tools": 0.015, "other": 0.01}
"""Largest adjusted p value of a difference. Together 0.05: of 100 comparisons of equal groups, at most
five find a difference. The outcome has half of it: many other measures do not hide it."""
SMALLEST_SHARE: Final[dict[Family, float]] = {"outcome": 0.05, "tools": 0.1, "other": 0.1}
"""Smallest difference of two shares that is reported."""
SMALLEST_DELTA: Final = 0.147
"""Smallest Cliff's delta of two figures that is reported; below, the effect is called negligible."""
WORST_DETECTABLE: Final = 0.3
"""If only larger differences of the outcome would be found, there are too few runs."""
_Z_POWER: Final = 0.8416  # a power of 80 %
_Z_LEVEL: Final = 2.2414  # a level of 0.025, two-sided
MOST_MEASURES: Final = 200
"""Shares of a family that are compared, the most frequent ones."""


@dataclass(frozen=True, slots=True)
class Compared:
    """A measure of both groups."""

    family: Family
    name: str
    """``success``, ``calls search``, ``fails with tool timeout``, ``duration``."""
    unit: Literal["share", "ns", "usd", "count"]
    left: float
    """Share of the runs from 0 to 1, or median."""
    right: float
    left_p95: float | None
    """None of a share."""
    right_p95: float | None
    effect: float
    """Of shares the difference, right less left; of figures Cliff's delta, from -1 to 1."""
    p: float
    """Adjusted for the number of measures of the family."""
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupComparison:
    """What two groups of runs have in common, and what not."""

    schema_version: int = 1
    verdict: Verdict
    left_runs: int
    right_runs: int
    detectable: float
    """Difference of the shares of successful runs that would be found in four of five comparisons."""
    runs_needed: int
    """Runs of each group that are needed to find a difference of ten points in the same way."""
    measures: list[Compared]
    """Differences first, the clearest first; the others in order of family and name."""

    @property
    def differences(self) -> list[Compared]:
        """The measures that differ."""
        return [one for one in self.measures if one.differs]


def compare(left: Sequence[RunPath], right: Sequence[RunPath]) -> GroupComparison:
    """Compare two groups of runs. Runs that have not ended are left out.

    The result depends on the runs alone: the same runs in any order give the same result.
    """
    sides = [
        sorted((path for path in side if path.status != "running"), key=lambda path: path.trace_id)
        for side in (left, right)
    ]
    runs, first = [*sides[0], *sides[1]], len(sides[0])
    found: list[Compared] = []
    if sides[0] and sides[1]:
        measures: dict[Family, list[_Named]] = {
            family: list(_measures(family, runs)) for family in LEVELS
        }
        asked = [[Measure(one.values, one.unit == "share") for one in of] for of in measures.values()]
        for (family, named), values in zip(
            measures.items(), adjusted_p_values(asked, first), strict=True
        ):
            found += [_compared(family, one, first, p) for one, p in zip(named, values, strict=True)]
    found.sort(key=lambda one: (not one.differs, one.p if one.differs else 0.0))
    detectable = _detectable(first, len(runs) - first)
    verdict: Verdict = "no difference found"
    if any(one.differs for one in found):
        verdict = "difference"
    elif detectable > WORST_DETECTABLE:
        verdict = "too few runs"
    successful = sum(run.status == "success" for run in runs) / len(runs) if runs else 0.5
    return GroupComparison(
        verdict=verdict,
        left_runs=first,
        right_runs=len(runs) - first,
        detectable=detectable,
        runs_needed=_needed(successful),
        measures=found,
    )


@dataclass(frozen=True, slots=True)
class _Named:
    """A measure before it is compared."""

    name: str
    unit: Literal["share", "ns", "usd", "count"]
    values: tuple[float, ...]


def _measures(family: Family, runs: Sequence[RunPath]) -> Iterator[_Named]:
    if family == "outcome":
        yield _Named("success", "share", tuple(float(run.status == "success") for run in runs))
    elif family == "tools":
        yield from _shares(runs, lambda run: (f"calls {label}" for label in _tools(run)))
    else:
        yield from _shares(runs, _failures)
        yield from _shares(runs, _orders)
        yield from _figures(runs)


def _shares(runs: Sequence[RunPath], names: Callable[[RunPath], Iterable[str]]) -> Iterator[_Named]:
    """Yield what some runs have and others do not have; not what a single run does."""
    sets = [set(names(run)) for run in runs]
    counts = Counter(name for one in sets for name in one)
    usual = [name for name, count in counts.items() if 1 < count < len(runs)]
    for name in sorted(sorted(usual), key=counts.__getitem__, reverse=True)[:MOST_MEASURES]:
        yield _Named(name, "share", tuple(float(name in one) for one in sets))


def _tools(run: RunPath) -> list[str]:
    return [step.label for step in run.steps if step.kind in ("tool", "retrieval")]


def _failures(run: RunPath) -> Iterator[str]:
    return (f"{step.label} fails with {step.failure}" for step in run.steps if step.failure)


def _orders(run: RunPath) -> Iterator[str]:
    """Yield the decisions of a run: which tool it called first, after which other, and last."""
    tools = _tools(run)
    if tools:
        yield f"begins with {tools[0]}"
        yield f"ends with {tools[-1]}"
    yield from (f"{one} → {other}" for one, other in pairwise(tools))


def _figures(runs: Sequence[RunPath]) -> Iterator[_Named]:
    def of(kinds: Sequence[str]) -> tuple[float, ...]:
        return tuple(float(sum(step.kind in kinds for step in run.steps)) for run in runs)

    durations = [run.duration_ns for run in runs]
    if all(one is not None for one in durations):
        yield _Named("duration", "ns", tuple(float(one or 0) for one in durations))
    costs = [run.cost_usd for run in runs]
    if all(one is not None for one in costs):
        yield _Named("cost", "usd", tuple(one or 0.0 for one in costs))
    yield _Named("input tokens", "count", tuple(float(run.input_tokens) for run in runs))
    yield _Named("output tokens", "count", tuple(float(run.output_tokens) for run in runs))
    yield _Named("model calls", "count", of(("model",)))
    yield _Named("tool calls", "count", of(("tool", "retrieval")))
    yield _Named(
        "retries", "count", tuple(float(sum(step.retries for step in run.steps)) for run in runs)
    )


def _compared(family: Family, one: _Named, first: int, p: float) -> Compared:
    left, right = one.values[:first], one.values[first:]
    if one.unit == "share":
        shares = sum(left) / len(left), sum(right) / len(right)
        effect = shares[1] - shares[0]
        large = abs(effect) >= SMALLEST_SHARE[family]
        differs = large and p <= LEVELS[family]
        return Compared(family, one.name, one.unit, *shares, None, None, effect, p, differs)
    effect = cliffs_delta(left, right)
    differs = abs(effect) >= SMALLEST_DELTA and p <= LEVELS[family]
    middle = median(left), median(right)
    return Compared(family, one.name, one.unit, *middle, _p95(left), _p95(right), effect, p, differs)


def _p95(values: Sequence[float]) -> float:
    return sorted(values)[ceil(0.95 * len(values)) - 1]


def _detectable(left: int, right: int) -> float:
    if not left or not right:
        return 1.0
    return min((_Z_LEVEL + _Z_POWER) * sqrt(0.25 / left + 0.25 / right), 1.0)


def _needed(share: float) -> int:
    variance = max(share * (1 - share), 0.0475)  # as if 5 % failed, where none did
    return ceil(2 * (_Z_LEVEL + _Z_POWER) ** 2 * variance / 0.1**2)
