"""The request of a run and its outcome: missing data, failures, reasons."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.output.message_text import text_in
from playhead_cli.output.plain import LAST_LINES
from playhead_cli.output.styles import ERROR, FAINT
from playhead_cli.output.words import AGAIN, one_line
from playhead_core.errors import TapeError
from playhead_core.tape.folds import is_inbound
from playhead_replay.run.outputs import Outputs, unrecorded_traffic
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_core.tape.indexed_tapes import IndexedTape
    from playhead_replay import Run
    from playhead_replay.derived.loops import RunLoop
    from playhead_replay.derived.signals import DerivedSignal
    from playhead_replay.failures.find import Failure
    from playhead_replay.run.inbound_requests import InboundRequest

MOST_PLACES = 8
"""Steps that the line of a failure names."""
SHOWN_SIGNALS = ("instruction_from_data", "fallback_used")
READ_LINES = 200
"""Lines of stderr in which a traceback is looked for."""
COLUMN_MARKS, GROUP_MARKS = " \t~^", " |+-"
"""Characters of a line that marks columns of the line above, and of the margin of an exception group."""
INSTALLED = ("/site-packages/", "/dist-packages/", "/lib/python")
"""Parts of paths of files that do not belong to the program."""
_FRAME = re.compile(r'File "(.+)", line \d+')
LONGEST = 200
"""Characters of an error, or of a line of stderr, that a line shows."""


def request_lines(run: Run) -> Iterator[Text]:
    """Yield ``POST /ask → 200`` and the body for each incoming request of the run."""
    for request in requests_of(run):
        yield Text(f"  {request.key} → {answer_of(request)}")
        sent = _text(lambda one=request: one.body)
        if sent:
            yield Text(f"→ {one_line(sent, LONGEST)}")


def outcome_lines(run: Run) -> Iterator[Text]:
    """Yield missing data, failed checks, responses of a service, and the reason of a failure."""
    if run.aged_out:
        yield Text(f"{run.aged_out} facts that belong to no request have aged out", style=FAINT)
    for gap in run.lost:
        yield Text(f"! {gap}, process {gap.instance[:8]}", style="yellow")
    yield from _unrecorded_lines(run)
    for one in run.failed_checks:
        where = one.span if one.step is None else f"step {one.step}"
        yield Text(f"✗ check {one.name} failed at {where}  {one_line(one.said, 120)}", style=ERROR)
    requests = requests_of(run)
    for request in requests:
        yield from _answered(request)
    error = "" if requests else _error_at_the_end(run)
    if error:
        yield Text(f"✗ {one_line(error, LONGEST)}", style=ERROR)
    if (error or any(one.failed for one in requests)) and run.tapes:
        yield from _stderr(run, run.tapes[0])
    if run.status == "interrupted":
        yield Text("interrupted: the process died before it could say how it ended", style="yellow")


def failure_lines(failures: Sequence[Failure]) -> Iterator[Text]:
    """Yield a line for each kind of failure in steps, with the steps and the evidence of the first."""
    kinds: dict[tuple[str, str, str, bool], list[Failure]] = {}
    for one in failures:
        if one.step is not None and one.source != "check":  # the other lines are at the end
            kinds.setdefault((one.type, one.code, one.name, one.recovered), []).append(one)
    for (kind, code, name, recovered), alike in kinds.items():
        places = list(dict.fromkeys(one.place for one in alike))
        where = ", ".join([*places[:MOST_PLACES], *(["…"] if len(places) > MOST_PLACES else [])])
        times = sum(one.times for one in alike)
        line = Text(f"{AGAIN if recovered else '✗'} {kind} {code}", FAINT if recovered else ERROR)
        line.append(f" ×{times}" if times > 1 else "")
        line.append(f"  {one_line(name, 40)} at {where}  {one_line(alike[0].evidence, 120)}", FAINT)
        yield line.append("  recovered" if recovered else "", FAINT)


def loop_lines(loops: Sequence[RunLoop]) -> Iterator[Text]:
    """Yield a line for each loop. Calls that repeat with other results, as polls do, are not loops."""
    for one in loops:
        if one.same_result:
            names = one_line(", ".join(dict.fromkeys(one.names)), 60)
            round_of = f", {one.period} calls each" if one.period > 1 else ""
            line = Text(f"{AGAIN} loop ×{one.times}", ERROR)
            place = f"{one.first}–{one.last}{round_of}, the same results"
            yield line.append(f"  {names} at {place}", FAINT)


def signal_lines(signals: Sequence[DerivedSignal]) -> Iterator[Text]:
    """Yield a line for each signal that the steps do not show: instructions from data, fallbacks."""
    for one in signals:
        if one.type in SHOWN_SIGNALS:
            line = Text(f"! {one.type.replace('_', ' ')}", "yellow")
            yield line.append(
                f"  {one_line(one.name, 40)} at {one.place}  {one_line(one.evidence, LONGEST)}", FAINT
            )


def _unrecorded_lines(run: Run) -> Iterator[Text]:
    """Yield a line for each library that connected to something where nothing recorded its traffic."""
    for library, targets in unrecorded_traffic(run.tapes).items():
        said = one_line(f"{library or 'the program'} with {', '.join(targets)}", LONGEST)
        line = Text(f"! not recorded: traffic of {said}", style="yellow")
        yield line.append(f"  playhead doctor {run.name}", FAINT)


def requests_of(run: Run) -> Sequence[InboundRequest]:
    """Return the requests that the run of a service is about; none for the run of a program."""
    asks = run.tapes[0].named(e.PLAYHEAD_EXCHANGE_REQUEST) if run.tapes else ()
    return run.requests if any(map(is_inbound, asks)) else ()


def _stderr(run: Run, tape: IndexedTape) -> Iterator[Text]:
    """Yield the frames of the program in the last traceback on stderr; the last lines if there is none.

    Without lines that mark a column of the line above, and with short paths.
    """
    written = [line for line in Outputs.last_of_stderr(tape, READ_LINES) if line.strip(COLUMN_MARKS)]
    cwd = f"{run.command.cwd}/"
    for line in (own_frames(written, cwd) or written)[-LAST_LINES:]:
        yield Text(f"  {one_line(line.replace(cwd, ''), LONGEST)}", style=FAINT)


def own_frames(lines: Sequence[str], folder: str) -> list[str]:
    """Return the last traceback's frames in files of the program, each with its line of code.

    Files of the program are those in ``folder`` but outside of installed packages.
    """
    frames: list[str] = []
    is_own = False
    for line in lines:
        text = line.lstrip(GROUP_MARKS)
        if text.startswith("Traceback (most recent call last)"):
            frames, is_own = [], False
        elif found := _FRAME.match(text):
            path = found[1]
            is_own = (path.startswith(folder) or not path.startswith(("/", "<"))) and not any(
                part in path for part in INSTALLED
            )
            frames += [line] if is_own else []
        elif is_own:
            frames.append(line)
            is_own = False
    return frames


def _answered(request: InboundRequest) -> Iterator[Text]:
    """Yield the response; for a failure also its route and status."""
    said = one_line(_text(lambda: b"".join(request.pieces)), LONGEST)
    if request.failed or request.exchange.end is None:
        yield Text(f"✗ {request.key} → {answer_of(request)}  {said}".rstrip(), style=ERROR)
        if request.status_code is not None and request.how.startswith("error: "):
            yield Text(f"  {one_line(request.how.removeprefix('error: '), LONGEST)}", style=ERROR)
    elif said:
        yield Text(f"← {said}")


def answer_of(request: InboundRequest) -> str:
    """Return the status of an answer; how the request ended if it was not answered."""
    return request.how if request.status_code is None else str(request.status_code)


def _text(read: Callable[[], bytes]) -> str:
    """Return the text that is read; empty if it is none, or not on the tape."""
    try:
        return text_in(read()) or ""
    except TapeError:
        return ""


def _error_at_the_end(run: Run) -> str:
    """Return the exception that ended the program if no step has the same error; else empty."""
    ended = Outputs.exit_of(run.tapes[0]) if run.tapes else None
    if ended is not None and ended.error is not None:
        status = "" if ended.code is None else f"exit status {ended.code}"
        if ended.error.qualname == "SystemExit" and ended.error.message == str(ended.code):
            return status
        said = f"{ended.error.qualname}: {ended.error.message}"
        return f"{said} ({status})" if status else said
    return next((root.error for root in run.roots if root.failed), "")
