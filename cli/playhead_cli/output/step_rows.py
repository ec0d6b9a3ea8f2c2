"""The lines of a run's tree: steps, and the frames around them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playhead_cli.output.words import label
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_replay import Run, Span, Step


@dataclass(slots=True)
class Row:
    """A line of the tree: a step, a frame around steps (an agent, a workflow), or any other span."""

    span: Span
    depth: int
    step: Step | None
    label: str
    """What `label` calls the span."""


def rows_of(run: Run, everything: bool = False) -> list[Row]:
    """Steps and the named frames around them, in order of start, without the run root.

    Other spans of the call that a step is have no lines.

    ``everything``: includes all other spans, except attempts of a step, which have lines of their own.
    """
    steps = {step.span.span_id: step for step in run.steps}
    roots = {root.span_id for root in run.roots}
    told = set[str]()
    """Spans that other lines tell of: attempts by those of their steps, the first one by the heading."""
    if everything:
        told = {attempt.span_id for step in run.steps for attempt in step.attempts}
        if run.tapes and (start := next(run.tapes[0].facts(), None)) is not None:
            told.add(start.span_id.hex())
    rows: list[Row] = []

    waiting = [(root, 0) for root in reversed(run.roots)]
    while waiting:
        span, depth = waiting.pop()
        step = steps.get(span.span_id)
        shown = step is not None
        if not shown:
            marked = span.operation != "" or a.PLAYHEAD_STEP_NAME in span.attributes
            frame = marked and span.span_id not in roots and not run.told_by(span)
            shown = frame or (everything and span.span_id not in told)
        if shown:
            rows.append(Row(span, depth, step, label(span)))
        if span.children:
            waiting += [(child, depth + shown) for child in reversed(span.children)]
    return rows
