"""The lines of ``playhead summary``."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Final

from rich.text import Text

from playhead_analysis.summaries.summary import PathSummary, SummaryLine
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, STATUS_STYLES, TITLE, StyledLine
from playhead_cli.output.words import count, one_line, took
from playhead_genai.prices import dollars

WIDTH: Final = 76
"""Columns of the words of a model."""


def summary_lines(summary: PathSummary) -> Iterator[Text | StyledLine]:
    """Yield a summary: the run, then its parts, each with the numbers of its steps."""
    more = [count(summary.steps, "step")]
    more += [took(summary.duration_ns)] if summary.duration_ns is not None else []
    more += [f"{summary.input_tokens}→{summary.output_tokens} tokens"] if summary.input_tokens else []
    more += [dollars(summary.cost_usd)] if summary.cost_usd else []
    yield StyledLine(
        [
            (summary.run, TITLE),
            (f"  {summary.status}", STATUS_STYLES.get(summary.status, "")),
            (f"  {', '.join(more)}", ""),
            (f"  {summary.failed} failed" if summary.failed else "", ERROR),
        ]
    )
    width = max((len(_numbers(line)) for line in summary.lines), default=0)
    phase = ""
    for line in summary.lines:
        said = line.phase if line.phases == 1 else f"{line.phases} phases" if line.phases > 1 else ""
        if said and said != phase:
            yield StyledLine([(f"  {said}", FAINT)])
        phase = said
        yield _line(line, width)
    if summary.words is not None:
        yield StyledLine([(f"  Written by {one_line(summary.words.model)}, not checked:", FAINT)])
        for paragraph in summary.words.text.splitlines():
            yield from (StyledLine([(f"  {line}", "")]) for line in wrap(paragraph, WIDTH))


def _line(line: SummaryLine, width: int) -> Text | StyledLine:
    times = [took(line.duration_ns)] if line.duration_ns else []
    times += [dollars(line.cost_usd)] if line.cost_usd else []
    failed = ""
    if line.failed:
        places = ", ".join(line.failed_steps) + (", …" if line.failed > len(line.failed_steps) else "")
        codes = ", ".join(line.failures) or "error"
        failed = f"  {codes}" if line.steps == 1 else f"  {line.failed} failed: {codes} at {places}"
    return StyledLine(
        [
            (f"  {_numbers(line).rjust(width)}  ", NUMBER),
            (line.text, ""),
            (f"  {' '.join(times)}" if times else "", FAINT),
            (failed, ERROR),
        ]
    )


def _numbers(line: SummaryLine) -> str:
    return str(line.first) if line.first == line.last else f"{line.first}–{line.last}"
