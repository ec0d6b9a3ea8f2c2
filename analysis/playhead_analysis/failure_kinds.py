"""Kinds of failures: failed runs grouped by what they have in common, the most frequent first."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from rapidfuzz import fuzz

from playhead_analysis.paths import RunPath
from playhead_core.untrusted.shown_text import in_one_line
from playhead_replay.failures.find import Failure

ALIKE: Final = 0.8
"""Similarity from which two failures are of one kind; the mean of all pairs of two groups."""
LONGEST_MESSAGE: Final = 300
TAIL: Final = 3
"""Steps before the failure that are compared."""
MOST_SHAPES: Final = 150
"""Different failures that are compared with each other; the rarest beyond stay kinds of their own."""
TYPICAL, RARE = 0.9, 0.5
"""A step explains a kind if so many of its runs took it, and less than so many of the others."""
_VOLATILE: Final = re.compile(
    r"https?://\S+"
    r"|'[^']{0,200}'|\"[^\"]{0,200}\"|`[^`]{0,200}`"
    r"|\b[0-9a-f]{8}-[0-9a-f-]{27}\b|\b0x[0-9a-f]+\b|\b(?=\w*\d)[\w-]{6,}\b|\d+(?:[.,:]\d+)*",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class FailedRun:
    """A failed run and the failure that explains it."""

    path: RunPath
    failure: Failure | None
    """None: nothing of the record says why."""


@dataclass(frozen=True, slots=True)
class FailureKind:
    """Failed runs with the same cause, as far as the record shows."""

    type: str
    code: str
    """Empty if nothing says why the runs failed."""
    name: str
    """Tool, model or exception."""
    message: str
    """Of one of the runs, with the parts that differ from run to run replaced by ``…``."""
    runs: list[str]
    """Names, the newest first."""
    share: float
    """Of all failed runs."""
    cost_usd: float | None
    """What these runs cost together; None if a price is not known."""
    explained_by: list[str]
    """Steps that nearly all of these runs took, and few of the others: ``search → refund``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FailureKinds:
    """The kinds of failures of some runs."""

    schema_version: int = 1
    runs: int
    """Runs that were read, failed or not."""
    failed: int
    truncated: bool
    """Whether more runs match, and only the newest were read."""
    kinds: list[FailureKind]


def cause_of(failures: Iterable[Failure]) -> Failure | None:
    """Return the failure that explains why a run failed: the first that it did not recover from.

    An exception that ended the program is what a step before led to, so it comes last.
    """
    left = [one for one in failures if not one.recovered]
    ranked = sorted(left, key=lambda one: (one.code == "uncaught_exception", one.step is None))
    return ranked[0] if ranked else None


def kinds_of(failed: Sequence[FailedRun], others: Sequence[RunPath] = ()) -> list[FailureKind]:
    """Group failed runs by their cause. The kind with most runs is first, of equal ones the dearest.

    ``others``: runs that did not fail, to tell what only the failed ones did. The order of the runs does
    not matter.
    """
    groups: dict[_Shape, list[FailedRun]] = {}
    for one in sorted(failed, key=lambda one: (-one.path.started_ns, one.path.trace_id)):
        groups.setdefault(_shape(one), []).append(one)
    ordered = sorted(groups.items(), key=lambda group: (-len(group[1]), group[0].key))
    clusters = _clustered([shape for shape, _ in ordered[:MOST_SHAPES]])
    clusters += [[shape] for shape, _ in ordered[MOST_SHAPES:]]
    usual = Counter(way for path in others for way in _ways(path))
    kinds = [
        _kind(
            cluster[0], [run for shape in cluster for run in groups[shape]], len(failed), usual, others
        )
        for cluster in clusters
    ]
    return sorted(kinds, key=lambda kind: (-len(kind.runs), -(kind.cost_usd or 0.0), kind.runs[:1]))


@dataclass(frozen=True, slots=True)
class _Shape:
    """What of a failure is equal in all runs with the same cause."""

    type: str
    code: str
    name: str
    message: str
    phase: str
    tail: tuple[str, ...]

    @property
    def key(self) -> tuple[Any, ...]:
        """Order of shapes that depends on nothing else."""
        return (self.type, self.code, self.name, self.message, self.phase, self.tail)


def _shape(one: FailedRun) -> _Shape:
    failure, path = one.failure, one.path
    at = len(path.steps)
    if failure is not None and failure.place:
        places = [step.place for step in path.steps]
        at = places.index(failure.place) if failure.place in places else at
    tail = tuple(step.label for step in path.steps[max(at - TAIL, 0) : at])
    phase = path.steps[at].phase if at < len(path.steps) else ""
    if failure is None:
        return _Shape("", "", "", "", phase, tail)
    message = shape_of(failure.evidence)
    return _Shape(failure.type, failure.code, in_one_line(failure.name[:200]), message, phase, tail)


def shape_of(message: str) -> str:
    """Return a message with everything that may differ from run to run replaced by ``…``.

    >>> shape_of("order 8127 of 'Ada' not found at http://shop/8127 (request 5f3c9a1e)")
    'order … of … not found at … (request …)'
    """
    return in_one_line(_VOLATILE.sub("…", message[:LONGEST_MESSAGE]))


def _clustered(shapes: Sequence[_Shape]) -> list[list[_Shape]]:
    """Join the two groups that are most alike until none are alike enough."""
    clusters = [[shape] for shape in shapes]
    alike = {(i, j): _likeness(shapes[i], shapes[j]) for j in range(len(shapes)) for i in range(j)}
    members = {at: [at] for at in range(len(shapes))}
    while alike:
        (left, right), best = max(alike.items(), key=lambda pair: (pair[1], -pair[0][0], -pair[0][1]))
        if best < ALIKE:
            break
        clusters[left] += clusters[right]
        sizes = len(members[left]), len(members[right])
        members[left] += members.pop(right)
        del alike[left, right]
        for other in members:
            if other != left:
                near = alike.pop((min(left, other), max(left, other)))
                far = alike.pop((min(right, other), max(right, other)))
                mean = (near * sizes[0] + far * sizes[1]) / sum(sizes)
                alike[min(left, other), max(left, other)] = mean
    return [clusters[at] for at in sorted(members)]


def _likeness(one: _Shape, other: _Shape) -> float:
    """Return how alike two failures are, from 0 to 1; 0 for different types."""
    if one.type != other.type:
        return 0.0
    same = 0.25 * (one.code == other.code) + 0.3 * (one.name == other.name)
    way = 0.1 * (one.tail == other.tail) + 0.05 * (one.phase == other.phase)
    return same + way + 0.3 * fuzz.ratio(one.message, other.message) / 100


def _kind(
    shape: _Shape,
    failed: Sequence[FailedRun],
    total: int,
    usual: Counter[str],
    others: Sequence[RunPath],
) -> FailureKind:
    runs = sorted(failed, key=lambda one: (-one.path.started_ns, one.path.trace_id))
    costs = [one.path.cost_usd for one in runs]
    taken = Counter(way for one in runs for way in _ways(one.path))
    typical = [
        way
        for way, count in sorted(taken.items())
        if count >= TYPICAL * len(runs) and others and usual[way] < RARE * len(others)
    ]
    return FailureKind(
        shape.type,
        shape.code,
        shape.name,
        shape.message,
        [one.path.name for one in runs],
        len(runs) / total,
        None if None in costs else sum(cost or 0.0 for cost in costs),
        _widest(typical)[:5] if len(runs) > 1 else [],
    )


def _ways(path: RunPath) -> set[str]:
    """Return the steps of a run and their pairs, without model calls, which stand between all others."""
    labels = [step.label for step in path.steps if step.kind != "model"]
    pairs = {f"{one} → {other}" for one, other in pairwise(labels)}
    return set(labels) | pairs


def _widest(ways: Sequence[str]) -> list[str]:
    """Leave out the steps that a pair names too."""
    pairs = [way for way in ways if " → " in way]
    named = {part for pair in pairs for part in pair.split(" → ")}
    return pairs + [way for way in ways if " → " not in way and way not in named]
