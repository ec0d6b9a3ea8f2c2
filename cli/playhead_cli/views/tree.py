"""A run as a tree of steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.views.folding import find_folds
from playhead_cli.views.plain import LAST_LINES
from playhead_cli.views.words import count, gist, label, one_line, seconds, tokens, took
from playhead_replay.run.outputs import Outputs
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_replay import Run, Span, Step

LABEL_WIDTH = 34
"""Largest column at which the details of a step begin."""

ERROR, FAINT, NUMBER = "bold red", "dim", "cyan"
STATUS_STYLES = {"failure": "red", "interrupted": "yellow", "running": "cyan", "success": "green"}


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
        frame = span.operation != "" and span not in run.roots
        other = everything and span.span_id not in attempts and span.span_id != heading
        shown = step is not None or frame or other
        if shown:
            rows.append(Row(span, depth, step))
        for child in span.children:
            add(child, depth + 1 if shown else depth)

    for root in run.roots:
        add(root, 0)
    return rows


def heading(run: Run) -> Text:
    """``refund-7 failure, 24 steps, 41.2s, 812→64 tok``."""
    text = Text(run.name, style="bold")
    text.append(" ")
    text.append(run.status, style=STATUS_STYLES.get(run.status, ""))
    end_ns = run.ended_ns if run.ended_ns is not None else _last_ns(run)
    parts = [count(len(run.steps), "step"), seconds(max(end_ns - run.started_ns, 0))]
    if tokens(run.usage):
        parts.append(f"{tokens(run.usage)} tok")
        if str(run.cost):
            parts.append(str(run.cost))
    if tokens(run.played_usage):
        parts.append(f"{tokens(run.played_usage)} tok from the tape")
    models = dict.fromkeys(
        str(step.span.attributes[name])
        for step in run.steps
        for name in (a.GEN_AI_RESPONSE_MODEL, a.GEN_AI_REQUEST_MODEL)
        if name in step.span.attributes and not _answered_by_other(step.span, name)
    )
    if models:
        parts.append(" ".join(models))
    text.append(", " + ", ".join(parts))
    return text


def _answered_by_other(span: Span, name: str) -> bool:
    return name == a.GEN_AI_REQUEST_MODEL and a.GEN_AI_RESPONSE_MODEL in span.attributes


def _last_ns(run: Run) -> int:
    return max((span.ended_ns or span.started_ns for span in run.spans), default=run.started_ns)


def tree_lines(run: Run, everything: bool = False) -> Iterator[Text]:
    """The lines of the tree. ``everything``: includes all spans, and nothing is folded."""
    yield heading(run)
    origin = f"  replay of {run.origin}" if run.mode == "replay" and run.origin else ""
    if run.tapes and any(True for _ in run.tapes[0].facts()):
        yield Text(f"  {run.command}{origin}", style=FAINT)
    rows = rows_of(run, everything)
    folds = [] if everything else find_folds([_sameness(row) for row in rows])
    width = min(max((len(label(row.span)) + 2 * row.depth for row in rows), default=0), LABEL_WIDTH)
    digits = len(str(len(run.steps)))
    repeats = {fold.first + fold.pattern: fold for fold in folds}
    at = 0
    while at < len(rows):
        fold = repeats.get(at)
        if fold is None:
            yield from _step_lines(run, rows[at], width, digits, everything)
            at += 1
            continue
        first, last = rows[at].step, rows[fold.end - 1].step
        numbers = f"{first.number}–{last.number}" if first and last else ""
        yield Text(f"⋮ {numbers} same ×{fold.times - 1} (--all)", style=FAINT)
        at = fold.end
    yield from _tail_lines(run)


def _sameness(row: Row) -> tuple[int, str] | None:
    """Equal for rows that can be folded; None for a row that must be shown."""
    if row.step is None or row.span.failed or row.span.pending or row.step.retries:
        return None
    return row.depth, label(row.span)


def _step_lines(run: Run, row: Row, width: int, digits: int, everything: bool) -> Iterator[Text]:
    span, step = row.span, row.step
    mark = "✗" if span.failed else "…" if span.pending else " "
    line = Text(f"{mark} ", style=ERROR if span.failed else "")
    line.append(f"{step.number if step else '':>{digits}}", style=NUMBER)
    line.append(f" {seconds(max(span.started_ns - run.started_ns, 0)):>6} ", style=FAINT)
    line.append(("  " * row.depth + label(span)).ljust(width))
    said = gist(step) if step is not None else span.error
    if span.pending:
        said = _progress(run, step) if step is not None else "not ended"
    if said:
        line.append(f"  {one_line(said, 120)}", style=ERROR if span.failed else "")
    if span.duration_ns is not None and step is not None:
        line.append(f"  {took(span.duration_ns)}", style=FAINT)
    yield line
    retried = step is not None and (step.retries or any(one.failed for one in step.attempts[:-1]))
    if step is not None and (retried or (everything and step.attempts != [span])):
        indent = " " * (digits + 11) + "  " * row.depth
        for attempt in step.attempts:
            status = attempt.attributes.get(a.HTTP_RESPONSE_STATUS_CODE)
            outcome = str(status) if status is not None else attempt.error or "not answered"
            lasted = took(attempt.duration_ns) if attempt.duration_ns is not None else "not ended"
            yield Text(f"{indent}↻ {attempt.name} {outcome}  {lasted}", style=FAINT)


def _progress(run: Run, step: Step) -> str:
    """The progress of a step that has not ended."""
    exchanges = run.exchanges_of(step)
    if not exchanges:
        return "not ended"
    last = exchanges[-1]
    received = sum(last.chunk_sizes)
    if last.status_code is None:
        return "sent, not answered"
    so_far = f"{last.status_code}, {count(received, 'byte')} in {count(len(last.chunk_sizes), 'chunk')}"
    return f"{so_far}, {'not ended' if last.end is None else last.end.how}"


def _error_at_the_end(run: Run) -> str:
    """The exception that ended the program, if it tells more than a step's error; else empty."""
    ended = Outputs.exit_of(run.tapes[0]) if run.tapes else None
    if ended is not None and ended.error is not None:
        status = "" if ended.code is None else f"exit status {ended.code}"
        if ended.error.qualname == "SystemExit" and ended.error.message == str(ended.code):
            return status
        said = f"{ended.error.qualname}: {ended.error.message}"
        return f"{said} ({status})" if status else said
    return next((root.error for root in run.roots if root.failed), "")


def _tail_lines(run: Run) -> Iterator[Text]:
    if run.aged_out:
        yield Text(f"{run.aged_out} facts that belong to no request have aged out", style=FAINT)
    for gap in run.lost:
        yield Text(f"! {gap}, process {gap.instance[:8]}", style="yellow")
    for one in run.failed_checks:
        where = one.span if one.step is None else f"step {one.step}"
        yield Text(f"✗ check {one.name} failed at {where}  {one_line(one.said, 120)}", style=ERROR)
    error = _error_at_the_end(run)
    if error:
        yield Text(f"✗ {one_line(error, 200)}", style=ERROR)
        if run.tapes:
            last = Outputs.last_of_stderr(run.tapes[0], LAST_LINES)
            yield from (Text(f"  {one_line(line, 200)}", style=FAINT) for line in last)
    if run.status == "interrupted":
        yield Text("interrupted: the process died before it could say how it ended", style="yellow")
