"""A run as a tree of steps."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.columns import padded, width_of
from playhead_cli.output.message_text import answer_of
from playhead_cli.output.outcome import (
    failure_lines,
    loop_lines,
    outcome_lines,
    request_lines,
    signal_lines,
)
from playhead_cli.output.report_text import report_lines, state_line, task_lines
from playhead_cli.output.step_folds import StepFold, StepFolds
from playhead_cli.output.step_rows import Row, rows_of
from playhead_cli.output.styles import ERROR, FAINT, NUMBER, STATUS_STYLES, StyledLine
from playhead_cli.output.words import (
    AGAIN,
    FOLD,
    count,
    gist,
    offset,
    one_line,
    seconds,
    tokens,
    took,
    tool_label,
)
from playhead_genai.readable_text import arguments_of, last_question, text_of
from playhead_replay.derived.loops import loops_of
from playhead_replay.derived.signals import signals_of
from playhead_replay.failures.find import failures_of, status_reason
from playhead_replay.timeline.tool_calls import tool_calls_of
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

if TYPE_CHECKING:
    from playhead_core.reports import ProgramReport
    from playhead_replay import RecordedExchange, Run, Step
    from playhead_replay.failures.find import Failure
    from playhead_replay.timeline.tool_calls import ToolCallStep

LABEL_WIDTH = 34
"""Largest column at which the details of a step begin."""
SAID_CHARS = 120
"""Characters of text on a line if the width is unknown."""
LEAST_CHARS = 16
"""Smallest width for the text; if less is left, it gets a line of its own."""
WIDE = 100
"""Columns from which on the line of a request has its host."""
_FAILED, _PENDING, _ENDED = "✗ ", "… ", "  "
_NO_ANSWER = hash(""), ""


def heading(run: Run, reason: str = "") -> Text:
    """``refund-7 failure, 24 steps, 41.2s, 812→64 tok``. ``reason``: of a success that is none."""
    text = Text(run.name, style="bold")
    text.append(" ")
    text.append(run.status, style="yellow" if reason else STATUS_STYLES.get(run.status, ""))
    text.append(f" ({reason})" if reason else "", style="yellow")
    end_ns = run.ended_ns if run.ended_ns is not None else _last_ns(run)
    parts = [count(len(run.steps), "step"), seconds(max(end_ns - run.started_ns, 0))]
    if used := tokens(run.usage):
        parts.append(f"{used} tok")
        if cost := str(run.cost):
            parts.append(cost)
    if tokens(run.played_usage):
        parts.append(f"{tokens(run.played_usage)} tok from the tape")
    if models := " ".join(dict.fromkeys(_models(run))):
        parts.append(models)
    text.append(", " + ", ".join(parts))
    return text


def _models(run: Run) -> Iterator[str]:
    """Yield the model of each step: that of the answer, else that of the request."""
    for step in run.steps:
        at = step.span.attributes
        if a.GEN_AI_RESPONSE_MODEL in at:
            yield str(at[a.GEN_AI_RESPONSE_MODEL])
        elif a.GEN_AI_REQUEST_MODEL in at:
            yield str(at[a.GEN_AI_REQUEST_MODEL])


def _last_ns(run: Run) -> int:
    return max((span.ended_ns or span.started_ns for span in run.spans), default=run.started_ns)


def tree_lines(
    run: Run, everything: bool = False, width: int | None = None
) -> Iterator[Text | StyledLine]:
    """Yield the lines of the tree. ``everything``: includes all spans, and nothing is folded.

    ``width``: columns of the terminal; None if the lines do not go to one.
    """
    calls = tool_calls_of(run)
    failures = failures_of(run)
    yield heading(run, status_reason(run, failures))
    origin = f"  replay of {run.origin}" if run.mode == "replay" and run.origin else ""
    if run.tapes and any(True for _ in run.tapes[0].facts()):
        yield Text(f"  {run.command}{origin}", style=FAINT)
    came = list(request_lines(run))
    yield from came or _question(run)
    yield from failure_lines(failures)
    yield from loop_lines(loops_of(run))
    yield from signal_lines(signals_of(run))
    yield from _Tree(run, everything, width, calls, failures).lines()
    yield from state_line(run, everything)
    yield from task_lines(run)
    yield from outcome_lines(run)


def _question(run: Run) -> Iterator[Text]:
    """Return the first prompt of the run."""
    calls = (step for step in run.steps if step.span.operation not in ("", Operation.EXECUTE_TOOL))
    first = next(calls, None)
    asked = "" if first is None else last_question(run.messages(first).input)
    if asked:
        yield Text(f"→ {one_line(asked, SAID_CHARS)}")


class _Tree:
    """The lines of a run's steps."""

    def __init__(
        self,
        run: Run,
        everything: bool,
        width: int | None,
        calls: Sequence[ToolCallStep],
        failures: Sequence[Failure],
    ) -> None:
        self._run = run
        self._everything = everything
        self._width = width
        self._is_wide = width is None or width >= WIDE
        self._rows = rows_of(run, everything)
        self._tools: dict[int, list[ToolCallStep]] = defaultdict(list)
        self._tool_of: dict[str, ToolCallStep] = {}
        """Tool calls by the span that reports them."""
        for call in calls:
            if call.span is None:
                self._tools[call.step.number].append(call)
            else:
                self._tool_of[call.span.span_id] = call
        numbers = [call.number for calls in self._tools.values() for call in calls]
        self._failures: dict[str, list[str]] = defaultdict(list)
        """Codes of failures by the number of their step or tool call."""
        for failure in failures:
            if failure.source != "status":  # the line shows the status already
                self._failures[failure.place].append(failure.code)
        self._failing = {one.step for one in failures if one.step is not None}
        self._digits = max(map(len, [str(len(run.steps)), *numbers]))
        longest = max(map(self._label_width, self._rows), default=0)
        most = LABEL_WIDTH if width is None else min(LABEL_WIDTH, width * 2 // 5)
        self._labels = min(longest, most)
        self._reports: dict[int, list[ProgramReport]] = defaultdict(list)
        """Reports by step; 0: before the first step."""
        for report in run.reports:
            self._reports[report.step or 0].append(report)
        self._answers: dict[int, tuple[int, str]] = {}
        self._own: dict[str, list[RecordedExchange]] = defaultdict(list)
        for exchange in run.exchanges:
            if exchange.id.kind != "process":
                self._own[exchange.span_id].append(exchange)

    def _label_width(self, row: Row) -> int:
        longest = width_of(row.label)
        if self._tools and row.step is not None:
            for call in self._tools.get(row.step.number, ()):
                longest = max(longest, width_of(tool_label(call)))
        return longest + 2 * row.depth

    def lines(self) -> Iterator[Text | StyledLine]:
        """Yield a line per step, and one line for repeated steps."""
        rows = self._rows
        yield from report_lines(self._reports.get(0, ()), "  ", self._everything)
        at, shown = 0, iter(() if self._everything else self._folds())
        fold = next(shown, None)
        while at < len(rows):
            if fold is None or at < fold.hidden:
                yield from self._row(rows[at])
                at += 1
                continue
            yield Text(f"{FOLD} {fold.text} (--all)", style=FAINT)
            at, fold = fold.end, next(shown, None)

    def _folds(self) -> list[StepFold]:
        return StepFolds(
            self._run,
            self._rows,
            self._tools,
            lambda step: self._answer(step)[0],
            self._exchanges,
            self._failing,
        ).find()

    def _answer(self, step: Step) -> tuple[int, str]:
        """Return the hash of a step's response, and its beginning in one line. Computed once."""
        found = self._answers.get(step.number)
        if found is None:
            said = answer_of(step, self._exchanges(step))
            if not said:
                return _NO_ANSWER
            found = self._answers[step.number] = hash(said), one_line(said, SAID_CHARS)
        return found

    def _row(self, row: Row) -> Iterator[Text | StyledLine]:
        span, step = row.span, row.step
        failed, pending, ended_ns = span.status == "error", span.ended_ns is None, span.ended_ns
        error = ERROR if failed else ""
        number = str(step.number) if step is not None else ""
        parts = [
            (_FAILED if failed else _PENDING if pending else _ENDED, error),
            (number.rjust(self._digits), NUMBER),
            (f" {offset(span.started_ns - self._run.started_ns):>6} ", FAINT),
            (padded("  " * row.depth + row.label, self._labels), ""),
        ]
        if pending:
            told = self._progress(step) if step is not None else "not ended"
        else:
            told = gist(step, self._is_wide) if step is not None else span.error
        if self._is_wide and self._tool_of and not span.operation:
            call = self._tool_of.get(span.span_id)
            if call is not None:
                parts.append((f"  {call.number} {one_line(call.name, 40)}", FAINT))
        if told:
            parts.append((f"  {one_line(told, SAID_CHARS)}", error))
        if ended_ns is not None and step is not None:
            parts.append((f"  {took(ended_ns - span.started_ns)}", FAINT))
        if self._is_wide and number in self._failures:
            parts += self._failed(number)
        line = StyledLine(parts)
        said = self._said(step) if step is not None and not failed else ""
        room = SAID_CHARS
        if said and self._width is not None:
            room = self._width - line.cell_len - 2
        if said and room >= LEAST_CHARS:
            line.append(f"  {one_line(said, room)}")
        yield line
        if step is None:
            return
        indent = " " * (self._digits + 11 + 2 * row.depth)
        if said and room < LEAST_CHARS:
            yield Text(f"{indent}{said}")
        if step.attempts:
            yield from self._attempts(row, step, indent)
        for call in self._tools.get(step.number, ()):
            yield self._tool(call, row.depth)
        if reports := self._reports.get(step.number):
            yield from report_lines(reports, indent, self._everything)

    def _failed(self, place: str) -> list[tuple[str, str]]:
        """Return the failures of a step or tool call, once each."""
        found = self._failures.get(place)
        return [(f"  {', '.join(dict.fromkeys(found))}", ERROR)] if place and found else []

    def _tool(self, call: ToolCallStep, depth: int) -> StyledLine:
        """Return the line of a tool call that only the messages report."""
        error = ERROR if call.error else ""
        pending = call.ended_ns is None
        parts = [
            (f"{'✗' if call.error else '…' if pending else ' '} ", error),
            (f"{call.number:>{self._digits}}", NUMBER),
            (f" {offset(call.started_ns - self._run.started_ns):>6} ", FAINT),
            (padded("  " * depth + tool_label(call), self._labels), ""),
        ]
        if told := one_line(arguments_of(call.arguments), SAID_CHARS):
            parts.append((f"  {told}", ""))
        if call.attempt > 1:
            parts.append((f"  attempt {call.attempt}", FAINT))
        lasted = "" if call.duration_ns is None else f"  {took(call.duration_ns)}"
        parts.append((f"{lasted}  derived", FAINT))
        parts += self._failed(call.number)
        line = StyledLine(parts)
        said = "no result" if pending else call.error or text_of(call.result)
        room = SAID_CHARS if self._width is None else self._width - line.cell_len - 2
        if said and room >= LEAST_CHARS:
            line.append(f"  {one_line(said, room)}", style=error)
        return line

    def _said(self, step: Step) -> str:
        """Return the response, else the request."""
        _, said = self._answer(step)
        if said or step.span.ended_ns is not None:
            return said
        return one_line(last_question(self._run.messages(step).input), SAID_CHARS)

    def _attempts(self, row: Row, step: Step, indent: str) -> Iterator[Text]:
        """Yield the attempts of a step that were repeated; equal ones that follow each other once."""
        retried = step.retries or any(one.failed for one in step.attempts[:-1])
        if not retried and not (self._everything and step.attempts != [row.span]):
            return
        told: list[tuple[str, list[str]]] = []
        for attempt in step.attempts:
            status = attempt.attributes.get(a.HTTP_RESPONSE_STATUS_CODE)
            outcome = str(status) if status is not None else attempt.error or "not answered"
            lasted = took(attempt.duration_ns) if attempt.duration_ns is not None else "not ended"
            what = f"{attempt.name} {outcome}"
            if not told or told[-1][0] != what or self._everything:
                told.append((what, []))
            told[-1][1].append(lasted)
        for what, lasted in told:
            times = f" ×{len(lasted)}" if len(lasted) > 1 else ""
            yield Text(f"{indent}{AGAIN} {what}{times}  {', '.join(lasted)}", style=FAINT)

    def _exchanges(self, step: Step) -> list[RecordedExchange]:
        if not self._own:
            return []
        spans = dict.fromkeys((step.span.span_id, *(one.span_id for one in step.attempts)))
        return [exchange for span_id in spans for exchange in self._own.get(span_id, ())]

    def _progress(self, step: Step) -> str:
        """Return the progress of a step that has not ended."""
        exchanges = self._exchanges(step)
        if not exchanges:
            return "not ended"
        last = exchanges[-1]
        received = sum(last.chunk_sizes)
        if last.status_code is None:
            return "sent, not answered"
        so_far = (
            f"{last.status_code}, {count(received, 'byte')} in {count(len(last.chunk_sizes), 'chunk')}"
        )
        return f"{so_far}, {'not ended' if last.end is None else last.end.how}"
