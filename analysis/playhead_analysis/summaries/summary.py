"""A summary of a run: run, phases, repeats, steps. It is computed, not written by a model.

Each line covers a range of steps, and opening it gives a summary of that range. Lines of a summary cover
about equally many steps, whatever their phases are: so 40 lines lead to each of 50,000 steps with three
openings.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final, Literal, NamedTuple

from playhead_analysis.folding import find_folds
from playhead_analysis.paths import PathStep, RunPath

SCHEMA_VERSION: Final = 1
LINES: Final = 40
FEWEST_LINES: Final = 5
MOST_LABELS: Final = 4
"""Labels that a line of several steps names."""
MOST_FAILED: Final = 5
"""Failed steps that a line names."""


@dataclass(frozen=True, slots=True)
class SummaryLine:
    """A range of steps in a line."""

    kind: Literal["step", "repeat", "group"]
    first: int
    last: int
    """Numbers of the first and the last step, as `playhead show` prints them."""
    steps: int
    """Steps and calls that only messages report."""
    phase: str
    """The agent or workflow that they belong to; of several, the first."""
    phases: int
    """Number of phases."""
    text: str
    """What they are: `(chat → search) ×24`, `chat ×12, search ×8 and 2 more`."""
    duration_ns: int | None
    """From the start of the first to the end of the last."""
    cost_usd: float | None
    failed: int
    failed_steps: list[str]
    """The first of them, as `playhead show` prints them."""
    failures: dict[str, int]
    """Codes of the failures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PathSummary:
    """A run, or a range of its steps, in few lines."""

    schema_version: int = SCHEMA_VERSION
    run: str
    agent: str
    status: str
    steps: int
    """Steps of the run, and calls that only messages report."""
    failed: int
    duration_ns: int | None
    cost_usd: float | None
    input_tokens: int
    output_tokens: int
    lines: list[SummaryLine]


class _Unit(NamedTuple):
    """A step or a repeat, which a line never cuts."""

    begin: int
    end: int
    text: str
    is_repeat: bool


def summarize(path: RunPath, first: int = 0, last: int | None = None, lines: int = LINES) -> PathSummary:
    """Return a summary of a run, or of the steps with the numbers from ``first`` to ``last``."""
    whole = first <= 1 and last is None
    steps = (
        path.steps
        if whole
        else tuple(
            step for step in path.steps if first <= step.number and (last is None or step.number <= last)
        )
    )
    units = _units(steps, is_whole=whole)
    groups = [units[begin:end] for begin, end in _parts(units, steps, max(lines, FEWEST_LINES))]
    return PathSummary(
        run=path.name,
        agent=path.agent,
        status=path.status,
        steps=len(path.steps),
        failed=sum(step.status == "error" for step in path.steps),
        duration_ns=path.duration_ns,
        cost_usd=path.cost_usd,
        input_tokens=path.input_tokens,
        output_tokens=path.output_tokens,
        lines=[_line(steps[group[0].begin : group[-1].end], group) for group in groups],
    )


def _units(steps: Sequence[PathStep], *, is_whole: bool) -> list[_Unit]:
    """Return the steps, with repeats of the same steps in a row as one unit each.

    A failed step is equal only to one that failed in the same way.
    """
    keys = [(step.label, step.status, step.failure, step.phase) for step in steps]
    units: list[_Unit] = []
    at = 0
    for fold in find_folds(keys, fewest_hidden=2):
        units += [_Unit(one, one + 1, steps[one].label, False) for one in range(at, fold.first)]
        pattern = " → ".join(step.label for step in steps[fold.first : fold.first + fold.pattern])
        text = f"({pattern}) ×{fold.times}" if fold.pattern > 1 else f"{pattern} ×{fold.times}"
        units.append(_Unit(fold.first, fold.end, text, True))
        at = fold.end
    units += [_Unit(one, one + 1, steps[one].label, False) for one in range(at, len(steps))]
    if len(units) == 1 and not is_whole:  # a repeat that was opened shows its steps
        return [_Unit(one, one + 1, step.label, False) for one, step in enumerate(steps)]
    return units


def _parts(units: Sequence[_Unit], steps: Sequence[PathStep], lines: int) -> list[tuple[int, int]]:
    """Return ranges of units, at most ``lines``, cut where the phase changes, if rarely."""
    if len(units) <= lines:
        return [(at, at + 1) for at in range(len(units))]
    phases: list[tuple[int, int]] = []
    at = 0
    for _, some in groupby(units, key=lambda unit: steps[unit.begin].phase):
        count = sum(1 for _ in some)
        phases.append((at, at + count))
        at += count
    if len(phases) > lines // 2:
        phases = [(0, len(units))]
    size = math.ceil(len(units) / (lines - len(phases)))
    return [
        (begin, min(begin + size, end)) for start, end in phases for begin in range(start, end, size)
    ]


def _line(steps: Sequence[PathStep], units: Sequence[_Unit]) -> SummaryLine:
    failed = [step for step in steps if step.status == "error"]
    ends = [step.started_ns + step.duration_ns for step in steps if step.duration_ns is not None]
    costs = [step.cost_usd for step in steps if step.cost_usd is not None]
    phases = [step.phase for step in steps]
    if len(units) == 1:
        kind, text = ("repeat" if units[0].is_repeat else "step"), units[0].text
    else:
        kind, text = "group", _counted(steps)
    return SummaryLine(
        kind,
        steps[0].number,
        steps[-1].number,
        len(steps),
        phases[0],
        len(set(phases)),
        text,
        max(max(ends) - steps[0].started_ns, 0) if ends else None,
        round(sum(costs), 9) if costs else None,
        len(failed),
        [step.place for step in failed[:MOST_FAILED]],
        dict(Counter(step.failure for step in failed if step.failure).most_common()),
    )


def _counted(steps: Sequence[PathStep]) -> str:
    counts = Counter(step.label for step in steps)
    ranked = sorted(counts.items(), key=lambda one: (-one[1], one[0]))
    said = ", ".join(
        label + (f" ×{count}" if count > 1 else "") for label, count in ranked[:MOST_LABELS]
    )
    return said + (f" and {len(ranked) - MOST_LABELS} more" if len(ranked) > MOST_LABELS else "")
