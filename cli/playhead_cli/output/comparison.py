"""Comparisons of two or more runs as text, and of two as an HTML page."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_analysis.folding import find_folds
from playhead_cli.output.styles import FAINT
from playhead_cli.output.words import FOLD, count, one_line, took
from playhead_core.untrusted.shown_text import visible

if TYPE_CHECKING:
    from playhead_replay.diff import RunDiff, StepDifference, Variability


SIDE_CHARS = 160
LEFT, RIGHT = "red", "green"


def diff_lines(found: RunDiff, everything: bool) -> Iterator[Text]:
    """Yield the comparison of two runs.

    ``everything``: includes repetitions of earlier differences, and folds no steps.
    """
    yield Text.assemble(("- ", LEFT), (found.left, "bold"), "  ", ("+ ", RIGHT), (found.right, "bold"))
    yield Text(_summary(found))
    told = [one for one in found.differences if everything or not one.follows]
    groups = [list(same) for _, same in groupby(told, lambda one: (one.left, one.right))]
    folds = [] if everything else find_folds([_sameness(group) for group in groups])
    repeats = {fold.first + fold.pattern: fold for fold in folds}
    at = 0
    while at < len(groups):
        fold = repeats.get(at)
        if fold is None:
            yield Text(
                f"{_numbers(groups[at][0].left, groups[at][0].right)} {groups[at][0].label}", "bold"
            )
            for one in groups[at]:
                yield from _difference_lines(one)
            at += 1
            continue
        numbers = _range(groups[at][0], groups[fold.end - 1][0])
        yield Text(f"{FOLD} {numbers} same ×{fold.times - 1} (--all)", style=FAINT)
        at = fold.end
    repeated = len(found.differences) - len(told)
    if repeated:
        yield Text(f"{count(repeated, 'more repeat')} (--all)", style=FAINT)
    if found.outcome is not None:
        yield Text(f"outcome {found.outcome.path}", style="bold")
        yield from _sides(found.outcome.tape, found.outcome.now)
    yield Text(_figures(found))


def _sameness(group: Sequence[StepDifference]) -> Hashable:
    """Equal for steps that differ in the same."""
    return tuple((one.kind, one.label, one.path, one.left_value, one.right_value) for one in group)


def _range(first: StepDifference, last: StepDifference) -> str:
    """Return the numbers from one step to another: ``6–23→–``."""
    sides = [
        "–" if one is None else f"{one}–{other}"
        for one, other in ((first.left, last.left), (first.right, last.right))
    ]
    return sides[0] if sides[0] == sides[1] else "→".join(sides)


def _summary(found: RunDiff) -> str:
    if found.identical:
        return f"nothing differs in {count(len(found.pairs), 'step')}"
    same = f"same {ranges(found.same)}" if found.same else "no step is the same"
    first = found.first
    if first is None:
        return f"{same}; the outcome differs"
    what = first.path if first.path and first.path != "error" else f"{first.label} {first.kind}"
    return f"{same}; first difference {_numbers(first.left, first.right)} {what}"


def _numbers(left: int | None, right: int | None) -> str:
    if left == right:
        return f"{left}"
    if right is None:
        return f"{left}→–"
    return f"–→{right}" if left is None else f"{left}→{right}"


def _difference_lines(one: StepDifference) -> Iterator[Text]:
    if one.kind in ("added", "removed"):
        sign, style = ("+ ", RIGHT) if one.kind == "added" else ("- ", LEFT)
        said = one.right_value if one.kind == "added" else one.left_value
        yield Text(f"  {one.kind}")
        yield Text(f"  {sign}{one_line(said, SIDE_CHARS)}", style=style)
        return
    repeats = " (repeats an earlier difference)" if one.follows else ""
    yield Text(f"  {one.path or one.kind}{repeats}")
    yield from _sides(one.left_value, one.right_value)


def _sides(left: str, right: str) -> Iterator[Text]:
    yield Text(f"  - {one_line(left, SIDE_CHARS)}", style=LEFT)
    yield Text(f"  + {one_line(right, SIDE_CHARS)}", style=RIGHT)


def _figures(found: RunDiff) -> str:
    left, right = found.totals
    parts = [f"{name} ×{a} → ×{b}" for name, (a, b) in found.tools.items() if a != b]
    if left.steps != right.steps:
        parts.append(f"steps {left.steps} → {right.steps}")
    sides = [f"{one.input_tokens}→{one.output_tokens}" for one in (left, right)]
    if sides[0] != sides[1]:
        parts.append(f"tokens {sides[0]} → {sides[1]}")
    costs = [str(one.cost) or "unknown" for one in (left, right)]
    if costs[0] != costs[1]:
        parts.append(f"cost {costs[0]} → {costs[1]}")
    times = ["running" if one.duration_ns is None else took(one.duration_ns) for one in (left, right)]
    parts.append(f"time {times[0]} → {times[1]}")
    return "  ".join(parts)


def variability_lines(found: Variability) -> Iterator[Text]:
    """Yield the comparison of many runs: distinct paths, forks, spreads."""
    statuses = ", ".join(f"{number} {status}" for status, number in found.statuses.items())
    yield Text(f"{count(len(found.runs), 'run')} ({statuses}), {count(len(found.paths), 'path')}")
    for number, path in enumerate(found.paths, 1):
        runs = _some(path.runs)
        yield Text(f"path {number}  {count(len(path.runs), 'run')}: {runs}", style="bold")
        yield Text(f"  {' · '.join(_folded(path.steps)) or '(no step)'}")
    for fork in found.forks:
        yield Text(f"they part at step {fork.step}", style="bold")
        for way, runs in fork.ways.items():
            yield Text(f"  {way}  ×{len(runs)}: {_some(runs)}")
    yield Text(f"tool sequences are {found.mean_distance:.1f} edits apart on average")
    for name, spread in found.spreads.items():
        values = (spread.least, spread.middle, spread.most)
        shown = [took(int(one)) if name == "duration_ns" else f"{one:g}" for one in values]
        yield Text(f"{name.removesuffix('_ns').replace('_', ' ')}  {' · '.join(shown)}", style=FAINT)


def _some(names: list[str], limit: int = 5) -> str:
    more = f", … {len(names) - limit} more" if len(names) > limit else ""
    return ", ".join(names[:limit]) + more


def _folded(steps: list[str]) -> list[str]:
    folded: list[str] = []
    times = 0
    for index, step in enumerate(steps):
        times += 1
        if index + 1 == len(steps) or steps[index + 1] != step:
            folded.append(step if times == 1 else f"{step} ×{times}")
            times = 0
    return folded


def ranges(numbers: Iterable[int]) -> str:
    """``1–3, 7``."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and found[-1][1] == number - 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return ", ".join(f"{first}" if first == last else f"{first}–{last}" for first, last in found)


TEMPLATE = Path(__file__).with_name("diff.html")


def diff_page(found: RunDiff) -> str:
    """Return the comparison of two runs as HTML; content of the runs is escaped."""
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, finalize=_shown
    )
    rows = [
        {"left": left, "right": right, "differences": found.of(*numbers)}
        for left, right in found.pairs
        for numbers in [
            (left.number if left is not None else None, right.number if right is not None else None)
        ]
    ]
    durations = ["running" if one.duration_ns is None else took(one.duration_ns) for one in found.totals]
    return environment.from_string(TEMPLATE.read_text(encoding="utf-8")).render(
        diff=found, rows=rows, same=ranges(found.same), durations=durations
    )


def _shown(value: object) -> object:
    """Return the value with characters that hide or reverse text in a page made visible."""
    return visible(value) if isinstance(value, str) else value
