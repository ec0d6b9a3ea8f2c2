"""A summary of a run: run, phases, repeats, steps. It is computed; words of a model are kept apart.

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


@dataclass(frozen=True, slots=True)
class ModelWords:
    """What a model wrote about the lines of a summary; it is not checked."""

    model: str
    text: str


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
    words: ModelWords | None = None
    """None unless `playhead summary --words` asked a model for them."""


class _Units(NamedTuple):
    """Steps and repeats, none of which a line cuts."""

    begins: list[int]
    """Index of the first step of each, and the number of steps."""
    repeats: dict[int, str]
    """Texts of those that are repeats, by the index of their first step."""


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
    parts = _parts(units.begins, steps, max(lines, FEWEST_LINES))
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
        lines=[_line(steps, units, begin, end) for begin, end in parts],
    )


def _units(steps: Sequence[PathStep], *, is_whole: bool) -> _Units:
    """Return the steps, with repeats of the same steps in a row as one unit each.

    A failed step is equal only to one that failed in the same way.
    """
    keys = [(step.label, step.status, step.failure, step.phase) for step in steps]
    begins: list[int] = []
    repeats: dict[int, str] = {}
    at = 0
    for fold in find_folds(keys, fewest_hidden=2):
        begins += range(at, fold.first + 1)
        pattern = " → ".join(step.label for step in steps[fold.first : fold.first + fold.pattern])
        repeats[fold.first] = (
            f"({pattern}) ×{fold.times}" if fold.pattern > 1 else f"{pattern} ×{fold.times}"
        )
        at = fold.end
    begins += range(at, len(steps) + 1)
    if len(begins) == 2 and not is_whole:  # a repeat that was opened shows its steps
        return _Units(list(range(len(steps) + 1)), {})
    return _Units(begins, repeats)


def _parts(begins: Sequence[int], steps: Sequence[PathStep], lines: int) -> list[tuple[int, int]]:
    """Return ranges of units, at most ``lines``, cut where the phase changes, if rarely."""
    total = len(begins) - 1
    if total <= lines:
        return [(at, at + 1) for at in range(total)]
    phases: list[tuple[int, int]] = []
    at = 0
    for _, some in groupby(begins[:-1], key=lambda begin: steps[begin].phase):
        count = sum(1 for _ in some)
        phases.append((at, at + count))
        at += count
    if len(phases) > lines // 2:
        phases = [(0, total)]
    size = math.ceil(total / (lines - len(phases)))
    return [
        (begin, min(begin + size, end)) for start, end in phases for begin in range(start, end, size)
    ]


def _line(path: Sequence[PathStep], units: _Units, first: int, last: int) -> SummaryLine:
    """Return the line of the units from ``first`` to before ``last``."""
    begin = units.begins[first]
    steps = path[begin : units.begins[last]]
    failed = [step for step in steps if step.status == "error"]
    ends = [step.started_ns + step.duration_ns for step in steps if step.duration_ns is not None]
    costs = [step.cost_usd for step in steps if step.cost_usd is not None]
    phases = [step.phase for step in steps]
    if last - first == 1:
        kind = "repeat" if begin in units.repeats else "step"
        text = units.repeats.get(begin, steps[0].label)
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
