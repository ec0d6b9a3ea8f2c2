"""Scores in lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.styles import FAINT, TITLE
from playhead_cli.output.words import FOLD, count, one_line

if TYPE_CHECKING:
    from playhead_genai.scores import Score
    from playhead_replay import Run

MOST = 20
"""Scores that are shown if not all are wanted."""
LONGEST = 300
"""Most characters of an explanation."""


def run_scores(run: Run, everything: bool = False) -> Iterator[Text]:
    """Yield the scores of a run, each with the number of its step."""
    if run.scores:
        yield Text()
        yield from score_lines(run.scores, everything, run.steps_of_spans())


def score_lines(
    scores: Sequence[Score],
    everything: bool = False,
    steps: dict[str, int] | None = None,
    title: str = "Scores",
) -> Iterator[Text]:
    """Yield a heading and scores. ``steps``: numbers of the steps that are named, by span id."""
    yield Text(title, TITLE)
    for score in scores if everything else scores[:MOST]:
        line = Text(f"  {one_line(score.name, LONGEST)}")
        if score.value is not None:
            line.append(f" {score.value:g}")
        if score.label:
            line.append(f" {one_line(score.label, LONGEST)}")
        step = (steps or {}).get(score.span_id)
        if step is not None:
            line.append(f"  step {step}", FAINT)
        if score.evaluator:
            line.append(f"  by {one_line(score.evaluator, LONGEST)}", FAINT)
        if score.explanation:
            line.append(f"  {one_line(score.explanation, LONGEST)}", FAINT)
        yield line
    if not everything and len(scores) > MOST:
        yield Text(f"  {FOLD} {count(len(scores) - MOST, 'more score')} (--all)", FAINT)
