"""Prepares a resume: its plan, made from the tape of a run that has died."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

from playhead_core.boundaries import had
from playhead_core.errors import TapeError, UsageError
from playhead_core.rerun.open_connections import STDIO, is_server, may_not_repeat
from playhead_core.rerun.plans import Plan, Reopen, Unknown
from playhead_core.tape.protocols import Tape
from playhead_genai.providers import may_be_sent_again
from playhead_replay.forks.cut_tape import CutTape, end_of_life, is_fork, is_worker, unanswered
from playhead_replay.forks.ready_fork import Fork
from playhead_replay.run.exchanges import RecordedExchange, exchanges_of
from playhead_replay.run.held_tapes import held
from playhead_replay.run.run import Run
from playhead_replay.runner.requirements import require_whole

CHANGES = ("files", "sqlite")
"""Boundaries that record what a run has changed."""

Decide = Callable[[RecordedExchange], Unknown]
"""Decides what happens to a write that was sent and not answered."""


@dataclass(frozen=True, slots=True)
class GoingOn:
    """How a fork or a resume continues with what is open at the end of its tape."""

    decide: Decide
    reopen: Reopen | None = None
    """How servers go live; None: again, unless one was told something that must not be repeated."""


def resume_of(run: Run, going_on: GoingOn, *, repeat_effects: bool = False) -> Fork:
    """The part of a dead run that is played, and the plan; without the processes that the run forked.

    ``repeat_effects``: whether changes to files and databases that no tape keeps may be made again.
    `UsageError` if ``run`` has ended, or if changes would be made again that must not be; `TapeGap` and
    `TapeMissing` if its tape is not whole.
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
    how = reopened(tape, going_on.reopen, f"playhead resume {run.name}")
    unknown = decisions(unanswered(tape), going_on.decide)
    return Fork(tape, Plan("resume", run_id(run), unknown=unknown, reopen=how))


def decisions(open: list[RecordedExchange], decide: Decide) -> dict[str, Unknown]:
    """Decisions on unanswered writes, by exchange id.

    A call of a model that was made without an SDK is sent again, as one of an SDK is. Forks and workers
    are decided in `forked_processes.with_forked`.
    """
    return {
        str(one.exchange.id): "resend" if _may_be_sent_again(one) else decide(one)
        for one in open
        if one.exchange.ask.effect == "write"
        and not (is_server(one.exchange) or is_fork(one) or is_worker(one))
    }


def _may_be_sent_again(one: RecordedExchange) -> bool:
    """Whether a request says by itself that it asks a model, and leaves nothing behind."""
    if one.exchange.id.kind != "http":
        return False
    method, _, url = one.key.partition(" ")
    try:
        return may_be_sent_again(method, url, one.request)
    except TapeError:  # its body was not kept
        return False


def reopened(tape: Tape, reopen: Reopen | None, command: str) -> Reopen:
    """How servers go live that are open at the end of ``tape``. ``command``: name of the command for
    the hint.

    `UsageError` if ``reopen`` is not given and one of them was told something that must not be repeated.
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
                f"{one.key} may not be repeated, and its server {label} is still open there",
                cause="a live server is started again and gets the earlier messages again",
                hint=f"resend everything: {command} --reopen again; or nothing: --reopen fresh",
            )
    return "again"


def run_id(run: Run) -> str:
    """Trace id and span id of the root, hex, joined by a dash."""
    root = run.roots[0].span_id if run.roots else "0" * 16
    return f"{run.trace_id}-{root}"
