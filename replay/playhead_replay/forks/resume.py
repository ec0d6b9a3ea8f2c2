"""What a resume is to do: the plan of it, from the tape of a run that has died."""

from __future__ import annotations

from collections.abc import Callable

from playhead_replay.exchanges import RecordedExchange
from playhead_replay.forks.cut import CutTape, end_of_life, unanswered
from playhead_replay.launch import require_whole
from playhead_replay.run import Run
from playhead_semconv.errors import UsageError
from playhead_semconv.plans import Plan, Unknown

Decide = Callable[[RecordedExchange], Unknown]
"""What becomes of something that writes, was sent, and was not answered."""


def resume_of(run: Run, decide: Decide) -> tuple[CutTape, Plan]:
    """The tape that is played, and the plan.

    `UsageError` where ``run`` has come to its end, `TapeGap` and `TapeMissing` where its tape is not
    whole.
    """
    if run.status == "success":
        raise UsageError(
            f"{run.name} has come to its end: there is nothing to resume",
            hint=f"play it and go on from a step: playhead fork {run.name}:STEP",
        )
    require_whole(run)
    tape = CutTape(run.tape, end_of_life(run.tape))
    return tape, Plan("resume", run_id(run), unknown=decisions(unanswered(tape), decide))


def decisions(open: list[RecordedExchange], decide: Decide) -> dict[str, Unknown]:
    """By exchange id, for what writes."""
    return {str(one.exchange.id): decide(one) for one in open if one.exchange.ask.effect == "write"}


def run_id(run: Run) -> str:
    """Trace id and span id of the root, hex, joined by a dash."""
    root = run.roots[0].span_id if run.roots else "0" * 16
    return f"{run.trace_id}-{root}"
