"""A replay from a step on: what was asked, what the tape answered, and what the program printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead_replay.launch.replaying import Replay
from playhead_replay.report.matching import match
from playhead_replay.run.messages import Messages
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step
from playhead_semconv.tape.span_starts import TELL_STARTS, starts_among


@dataclass(frozen=True, slots=True)
class Shown:
    """A step as it went now."""

    step: Step
    """Numbered as the replay counts."""
    fidelity: str
    """Of its last attempt; empty where it asked nobody."""
    recorded: int | None
    """Number of the recorded step that answered it."""
    messages: Messages
    printed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """What the program wrote before the next step: stream and text."""


def shown_from(run: Run, done: Replay, number: int) -> Iterator[Shown]:
    """The steps of a replay of ``run`` from the recorded step ``number`` on, in order.

    The first is the one that this step answered, or a later one; where none did, the one of that number.
    Of a run of several processes: those of the first.
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
        yield Shown(step, fidelity, recorded, now.messages(step), printed)
