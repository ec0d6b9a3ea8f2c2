"""The lines of ``playhead compare``."""

from __future__ import annotations

from collections.abc import Iterator

from rich.text import Text

from playhead_analysis.comparison.versions import LEVELS, Compared, GroupComparison
from playhead_cli.output.styles import ERROR, FAINT, TITLE, StyledLine
from playhead_cli.output.words import count, took
from playhead_core.untrusted.shown_text import in_one_line
from playhead_genai.prices import dollars

TITLES = {"outcome": "OUTCOME", "tools": "TOOLS", "other": "FAILURES, ORDER, COST AND TIME"}


def comparison_lines(
    found: GroupComparison, names: tuple[str, str], everything: bool
) -> Iterator[Text | StyledLine]:
    """Yield a comparison as lines: the verdict, then what differs, or everything that was compared."""
    left, right = (in_one_line(name) for name in names)
    yield StyledLine(
        [
            (found.verdict, ERROR if found.verdict == "difference" else TITLE),
            (
                f"  {left}: {count(found.left_runs, 'run')}, {right}: {count(found.right_runs, 'run')}",
                "",
            ),
        ]
    )
    yield Text(_power(found), style=FAINT)
    shown = found.measures if everything else found.differences
    for family in LEVELS:
        of = [one for one in shown if one.family == family]
        if of:
            yield Text("")
            yield Text(TITLES[family], style=FAINT)
            yield from _table(of)


def _power(found: GroupComparison) -> str:
    points = f"{found.detectable * 100:.0f} points"
    compared = f"{count(len(found.measures), 'measure')} compared"
    if found.verdict == "too few runs":
        return (
            f"{compared}; {found.runs_needed} runs of each are needed to see a difference of 10 points"
        )
    return f"{compared}; a difference of {points} in success would be seen in 4 of 5 comparisons"


def _table(measures: list[Compared]) -> Iterator[Text | StyledLine]:
    rows = [(in_one_line(one.name), *_values(one)) for one in measures]
    wide = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for one, (name, left, right, effect) in zip(measures, rows, strict=True):
        yield StyledLine(
            [
                (f"  {name:<{wide[0]}}  ", ""),
                (f"{left:>{wide[1]}} → {right:<{wide[2]}}  {effect:<{wide[3]}}", ""),
                (f"  p {one.p:.2g}", FAINT),
                ("  differs" if one.differs else "", ERROR),
            ]
        )


def _values(one: Compared) -> tuple[str, str, str]:
    """Return both values and the effect as text."""
    if one.unit == "share":
        return f"{one.left * 100:.0f} %", f"{one.right * 100:.0f} %", f"{one.effect * 100:+.0f} points"
    tails = ""
    if one.left_p95 is not None and one.right_p95 is not None:
        tails = f", p95 {_figure(one, one.left_p95)} → {_figure(one, one.right_p95)}"
    return _figure(one, one.left), _figure(one, one.right), f"effect {one.effect:+.2f}{tails}"


def _figure(one: Compared, value: float) -> str:
    if one.unit == "ns":
        return took(round(value))
    return dollars(value) if one.unit == "usd" else f"{value:.0f}"
