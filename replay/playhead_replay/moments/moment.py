"""A point in the time of a run, folded from its tapes. Nothing runs, and no checkpoint is needed.

>>> from playhead_replay import Run, read_tape_file
>>> from playhead_replay.moments import moment_after
>>> recorded = read_tape_file(example_tape)
>>> moment = moment_after(Run.of_tape(recorded.tape, recorded.spans), 1)
>>> moment.step, moment.stdout, [one.step.span.name for one in moment.conversations]
(1, b'', ['chat gpt-4o'])
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from playhead_replay.moments.checkpoints import MarkedPlace
from playhead_replay.run.messages import Messages
from playhead_replay.run.outputs import Outputs
from playhead_replay.run.run import Run
from playhead_replay.run.states import State
from playhead_replay.run.steps import Step
from playhead_replay.workspace.at import WorkspaceHistory
from playhead_replay.workspace.trees import Tree, TreeItem
from playhead_semconv import attributes as a
from playhead_semconv.errors import PlayheadError, UsageError
from playhead_semconv.tape.indexed_tapes import IndexedTape
from playhead_semconv.tape.span_starts import TELL_STARTS, starts_among

NO_TAPE = "only spans were recorded: no states, no output, no files"


@dataclass(frozen=True, slots=True)
class LastMessages:
    """The last messages that a lane had sent to a model, and the answer if it had come."""

    lane: str
    step: Step
    messages: Messages
    answered: bool


@dataclass(slots=True)
class RunMoment:
    """The conversations, states, files and output of a run at one point."""

    run: Run
    step: int
    """The last step that had begun; 0: before the first."""
    time_ns: int
    """Time of the last fact before it, in its first process."""
    conversations: list[LastMessages] = field(default_factory=list[LastMessages])
    """The last of each lane, the latest first."""
    states: dict[str, State] = field(default_factory=dict[str, State])
    """The last state of each name that the program had reported."""
    stdout: bytes = b""
    """What its first process had printed."""
    stderr: bytes = b""
    files: Tree = field(default_factory=dict[str, TreeItem])
    """The files below the folder of the run, as `WorkspaceHistory` knows them."""
    ends: dict[str, int] = field(default_factory=dict[str, int])
    """Number of the first fact of each process that comes later, by process instance (hex)."""
    left_out: list[str] = field(default_factory=list[str])
    """What the level of the recording did not keep, in sentences."""


def moment_after(run: Run, number: int) -> RunMoment:
    """The moment before the step after ``number`` began, with all that followed from step ``number``.

    0: before the first step. `UsageError` if the run has fewer steps.
    """
    if not 0 <= number <= len(run.steps):
        raise UsageError(
            f"{run.name} has steps 1 to {len(run.steps)}, not {number}", hint=f"playhead show {run.name}"
        )
    following = run.step(number + 1)
    if following is None:
        return _moment(run, number, [_after_all(tape) for tape in run.tapes], None)
    time_ns = following.span.started_ns
    ends: list[int] = []
    for tape in run.tapes:
        starts = {fact.span_id.hex(): fact for fact in starts_among(tape.named(*TELL_STARTS))}
        found = starts.get(following.span.span_id)
        ends.append(_first_from(tape, time_ns) if found is None else found.seq)
    return _moment(run, number, ends, time_ns)


def moment_at(run: Run, time_ns: int) -> RunMoment:
    """The moment at a time (ns since the epoch), between the first and the last fact of the run."""
    number = max((step.number for step in run.steps if step.span.started_ns <= time_ns), default=0)
    return _moment(run, number, [_first_from(tape, time_ns + 1) for tape in run.tapes], time_ns + 1)


def moment_of_checkpoint(run: Run, checkpoint: MarkedPlace) -> RunMoment:
    """The moment at which a checkpoint was made."""
    ends = [
        checkpoint.seq + 1 if tape is checkpoint.tape else _first_from(tape, checkpoint.time_ns)
        for tape in run.tapes
    ]
    return _moment(run, checkpoint.step, ends, checkpoint.time_ns + 1)


def _moment(run: Run, number: int, ends: list[int], before_ns: int | None) -> RunMoment:
    """``ends``: number of the first fact of each tape that comes later; ``before_ns``: its time."""
    found = RunMoment(run, number, before_ns or run.ended_ns or run.started_ns)
    found.ends = {tape.instance.hex(): end for tape, end in zip(run.tapes, ends, strict=True)}
    found.conversations = list(_conversations(run, number, before_ns))
    if not run.tapes:
        found.left_out.append(NO_TAPE)
        return found
    for state in run.states:
        if state.seq < found.ends[state.tape.instance.hex()]:
            found.states[state.name] = state
    first, end = run.tapes[0], ends[0]
    outputs = Outputs.of_tape(first)
    found.stdout, found.stderr = (
        b"".join(data for seq, data in stream.pieces if seq < end)
        for stream in (outputs.stdout, outputs.stderr)
    )
    found.time_ns = max(
        (fact.time_ns for fact in first.facts() if fact.seq < end), default=run.started_ns
    )
    try:
        history = WorkspaceHistory(run)
        then = history.after(len(run.steps)) if before_ns is None else history.at(before_ns - 1)
    except PlayheadError as problem:
        found.left_out.append(f"no files: {problem.what}")
        return found
    found.files = then.tree
    found.left_out += then.notes
    return found


def _conversations(run: Run, number: int, before_ns: int | None) -> Iterator[LastMessages]:
    lanes: set[str] = set()
    for step in reversed(run.steps[:number]):
        if a.GEN_AI_OPERATION_NAME not in step.span.attributes:
            continue
        exchanges = run.exchanges_of(step)
        lane = exchanges[0].lane_name if exchanges else ""
        if lane in lanes:
            continue
        messages = run.messages(step)
        if not messages.input and not messages.output:
            continue
        lanes.add(lane)
        ended_ns = step.span.ended_ns
        answered = ended_ns is not None and (before_ns is None or ended_ns <= before_ns)
        if not answered:
            messages = Messages(messages.system, messages.input, [], messages.tools)
        yield LastMessages(lane, step, messages, answered)


def _after_all(tape: IndexedTape) -> int:
    return tape.last_seq + 1


def _first_from(tape: IndexedTape, time_ns: int) -> int:
    """Number of the first fact of ``tape`` that is not earlier than ``time_ns``."""
    return next((fact.seq for fact in tape.facts() if fact.time_ns >= time_ns), _after_all(tape))
