"""A replay from a given step on: what was asked, how it was answered, and what the program printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead_core.tape.span_starts import TELL_STARTS, starts_among
from playhead_replay.report.matching import match
from playhead_replay.run.messages import Messages
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step
from playhead_replay.runner.configuration import ReplayResult


@dataclass(frozen=True, slots=True)
class ShownStep:
    """A step of the replay, as it is shown."""

    step: Step
    """The step, with its number in the replay."""
    fidelity: str
    """Fidelity of its last attempt; empty if it made no request."""
    recorded: int | None
    """Number of the recorded step that answered it; None if none did."""
    messages: Messages
    printed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What the program wrote before the next step: (stream, text) pairs."""


def shown_from(run: Run, done: ReplayResult, number: int) -> Iterator[ShownStep]:
    """The steps of a replay of ``run`` from the recorded step ``number`` on, in order.

    Begins with the first step that was answered by the recorded step ``number`` or a later one; if there
    is none, with the replay's own step ``number``. For a run with several processes, only steps of the
    first process are given.
    """
    now = Run.of_tape(done.now)
    ours, theirs = now.step_numbers(), run.step_numbers()
    answered: dict[int, tuple[str, int | None]] = {}
    for found in match(run.exchanges, now.exchanges).matches:
        step = ours.get((found.now.instance, str(found.now.id)))
        by = found.recorded
        recorded = None if by is None else theirs.get((by.instance, str(by.id)))
        if step is not None:
            answered[step] = str(found.fidelity), recorded
    first = min(
        (
            step
            for step, (_, recorded) in answered.items()
            if recorded is not None and recorded >= number
        ),
        default=number,
    )
    steps = now.steps[first - 1 :]
    told = done.now.named(*TELL_STARTS)
    starts = {fact.span_id.hex(): fact.seq for fact in starts_among(told)}
    begin = [starts.get(step.span.span_id, 0) for step in steps]
    streams = now.outputs.stdout, now.outputs.stderr
    for at, step in enumerate(steps):
        end = begin[at + 1] if at + 1 < len(steps) else done.now.last_seq + 1
        pieces = sorted(
            (seq, name, data)
            for name, stream in zip(("stdout", "stderr"), streams, strict=True)
            for seq, data in stream.pieces
            if begin[at] <= seq < end
        )
        fidelity, recorded = answered.get(step.number, ("", None))
        printed = [(name, data.decode(errors="replace")) for _, name, data in pieces]
        yield ShownStep(step, fidelity, recorded, now.messages(step), printed)
