"""What a resume is to do: the plan of it, from the tape of a run that has died."""

from __future__ import annotations

import json
from collections.abc import Callable

from playhead_replay.forks.cut_tape import CutTape, end_of_life, is_fork, is_worker, unanswered
from playhead_replay.launch.replaying import require_whole
from playhead_replay.run.exchanges import RecordedExchange, exchanges_of
from playhead_replay.run.run import Run, held
from playhead_semconv.boundaries import had
from playhead_semconv.errors import UsageError
from playhead_semconv.rerun.held_connections import STDIO, is_server, may_not_repeat
from playhead_semconv.rerun.plans import Plan, Reopen, Unknown
from playhead_semconv.tape.protocols import Tape

CHANGES = ("files", "sqlite")
"""Boundaries that know what a run has changed."""

Decide = Callable[[RecordedExchange], Unknown]
"""What becomes of something that writes, was sent, and was not answered."""


def resume_of(
    run: Run, decide: Decide, reopen: Reopen | None = None, *, repeat_effects: bool = False
) -> tuple[CutTape, Plan]:
    """The tape that is played, and the plan.

    ``repeat_effects``: whether changes to files and databases may be made again that no tape holds.
    `UsageError` where ``run`` has come to its end, or changes would be made again that may not be;
    `TapeGap` and `TapeMissing` where its tape is not whole.
    """
    if run.status == "success":
        raise UsageError(
            f"{run.name} has come to its end: there is nothing to resume",
            hint=f"play it and go on from a step: playhead fork {run.name}:STEP",
        )
    require_whole(run)
    start = next(run.tape.facts()).attributes
    left_out = [name for name in CHANGES if name not in had(start)]
    if left_out and not repeat_effects:
        raise UsageError(
            f"what {run.name} has changed in files and databases would be changed again",
            cause=f"it was recorded without {' and '.join(left_out)}: level causal has them",
            hint=f"where that does no harm: playhead resume {run.name} --repeat-effects",
        )
    tape = CutTape(run.tape, end_of_life(run.tape))
    how = reopened(tape, reopen, f"playhead resume {run.name}")
    unknown = decisions(unanswered(tape), decide)
    return tape, Plan("resume", run_id(run), unknown=unknown, reopen=how)


def decisions(open: list[RecordedExchange], decide: Decide) -> dict[str, Unknown]:
    """By exchange id, for what writes. Of forks and workers `forked_processes.forked_of` decides."""
    return {
        str(one.exchange.id): decide(one)
        for one in open
        if one.exchange.ask.effect == "write"
        and not (is_server(one.exchange) or is_fork(one) or is_worker(one))
    }


def reopened(tape: Tape, reopen: Reopen | None, command: str) -> Reopen:
    """How servers go live that are open where ``tape`` ends. ``command``: of the fork, for the hint.

    `UsageError` where nobody has said, and one was told what may not be told again.
    """
    if reopen is not None:
        return reopen
    whole = held(tape)
    asked = exchanges_of(whole)
    open = {
        one.key.removeprefix(STDIO): one for one in asked if one.end is None and is_server(one.exchange)
    }
    for one in asked:
        if one.end is None or not may_not_repeat(one.exchange):
            continue
        label = str(json.loads(one.request).get("server"))
        if label in open:
            raise UsageError(
                f"{one.key} may not be repeated, and {label}, which was told so, is still open there",
                cause="a server that goes live is started anew, and told again what it was told",
                hint=f"tell it all again: {command} --reopen again; or nothing: --reopen fresh",
            )
    return "again"


def run_id(run: Run) -> str:
    """Trace id and span id of the root, hex, joined by a dash."""
    root = run.roots[0].span_id if run.roots else "0" * 16
    return f"{run.trace_id}-{root}"
