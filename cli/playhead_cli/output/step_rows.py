"""The lines of a run's tree: steps, and the frames around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_replay import Run, Span, Step


@dataclass(slots=True)
class Row:
    """A line of the tree: a step, a frame around steps (an agent, a workflow), or any other span."""

    span: Span
    depth: int
    step: Step | None


def rows_of(run: Run, everything: bool = False) -> list[Row]:
    """Steps and the named frames around them, in order of start, without the run root.

    ``everything``: includes all other spans, except attempts of a step, which have lines of their own.
    """
    steps = {step.span.span_id: step for step in run.steps}
    start = next(run.tapes[0].facts(), None) if run.tapes else None
    heading = "" if start is None else start.span_id.hex()
    attempts = {attempt.span_id for step in run.steps for attempt in step.attempts}
    rows: list[Row] = []

    def add(span: Span, depth: int) -> None:
        step = steps.get(span.span_id)
        marked = span.operation != "" or a.PLAYHEAD_STEP_NAME in span.attributes
        frame = marked and span not in run.roots
        other = everything and span.span_id not in attempts and span.span_id != heading
        shown = step is not None or frame or other
        if shown:
            rows.append(Row(span, depth, step))
        for child in span.children:
            add(child, depth + 1 if shown else depth)

    for root in run.roots:
        add(root, 0)
    return rows
