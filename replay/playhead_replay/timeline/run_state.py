"""The state of a run at a step, reconstructed from its tapes without running anything.

>>> from playhead_replay import Run, read_tape_file
>>> from playhead_replay.timeline import state_after_step
>>> recorded = read_tape_file(example_tape)
>>> state = state_after_step(Run.of_tape(recorded.tape, recorded.spans), 1)
>>> state.step, state.stdout, [one.step.span.name for one in state.conversations]
(1, b'', ['chat gpt-4o'])
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from operator import itemgetter
from typing import Final

from playhead_core.boundaries import had
from playhead_core.errors import PlayheadError, UsageError
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_core.tape.span_starts import TELL_STARTS, starts_among
from playhead_replay.databases.history import DatabaseHistory, DatabaseState
from playhead_replay.run.messages import Messages
from playhead_replay.run.outputs import Outputs
from playhead_replay.run.run import Run
from playhead_replay.run.states import State
from playhead_replay.run.steps import Step
from playhead_replay.timeline.checkpoints import MarkedCheckpoint
from playhead_replay.timeline.stored_states import StoredStates
from playhead_replay.workspace.history import Tree, TreeItem, WorkspaceHistory
from playhead_semconv import attributes as a

IN_TABLES = "a database: its rows are listed separately"

KEPT = 4
"""Number of states that `RunStates` caches: those that a reader compares, and their neighbours."""

NO_TAPE = "only spans were recorded: no states, no output, no files"


@dataclass(frozen=True, slots=True)
class LastMessages:
    """The last messages that a lane had sent to a model, and the response if it had arrived."""

    lane: str
    step: Step
    messages: Messages
    answered: bool


@dataclass(slots=True)
class RunState:
    """The conversations, states, files and output of a run at one point."""

    run: Run
    step: int
    """The last step that had begun; 0: before the first."""
    time_ns: int
    """Time of the last fact before it, in its first process."""
    conversations: list[LastMessages] = field(default_factory=list[LastMessages])
    """The last messages of each lane, the latest first."""
    states: dict[str, State] = field(default_factory=dict[str, State])
    """The last state of each name that the program had reported or put into a checkpoint store."""
    stdout: bytes = b""
    """The output of its first process."""
    stderr: bytes = b""
    files: Tree = field(default_factory=dict[str, TreeItem])
    """The files below the folder of the run, as `WorkspaceHistory` knows them."""
    databases: list[DatabaseState] = field(default_factory=list[DatabaseState])
    """The SQLite databases that the run had opened, by name."""
    ends: dict[str, int] = field(default_factory=dict[str, int])
    """Number of the first later fact of each process, by process instance (hex)."""
    left_out: list[str] = field(default_factory=list[str])
    """What the recording does not have, one text each."""


def state_after_step(run: Run, number: int) -> RunState:
    """See `RunStates.after`."""
    return RunStates(run).after(number)


def state_at_time(run: Run, time_ns: int) -> RunState:
    """See `RunStates.at`."""
    return RunStates(run).at(time_ns)


def state_at_checkpoint(run: Run, checkpoint: MarkedCheckpoint) -> RunState:
    """See `RunStates.of_checkpoint`."""
    return RunStates(run).of_checkpoint(checkpoint)


class RunStates:
    """The states of a run at any step or time. The tapes are read only once."""

    def __init__(self, run: Run) -> None:
        self.run: Final = run
        self._after: dict[int, RunState] = {}
        """The last requested states, by number of the step."""

    def after(self, number: int) -> RunState:
        """Return the state after step ``number``, just before the next step began.

        0: before the first step. `UsageError` if the run has fewer steps.
        """
        found = self._after.pop(number, None) or self._make_after(number)
        self._after[number] = found
        if len(self._after) > KEPT:
            del self._after[next(iter(self._after))]
        return found

    def _make_after(self, number: int) -> RunState:
        run = self.run
        if not 0 <= number <= len(run.steps):
            raise UsageError(
                f"{run.name} has steps 1 to {len(run.steps)}, not {number}",
                hint=f"playhead show {run.name}",
            )
        following = run.step(number + 1)
        if following is None:
            return self._state_before(number, [one.tape.last_seq + 1 for one in self._tapes], None)
        ends = [one.before(following.span.span_id, following.span.started_ns) for one in self._tapes]
        return self._state_before(number, ends, following.span.started_ns)

    def at(self, time_ns: int) -> RunState:
        """Return the state at a time (ns since the epoch) within the run."""
        number = max(
            (step.number for step in self.run.steps if step.span.started_ns <= time_ns), default=0
        )
        return self._state_before(
            number, [one.first_from(time_ns + 1) for one in self._tapes], time_ns + 1
        )

    def of_checkpoint(self, checkpoint: MarkedCheckpoint) -> RunState:
        """Return the state at which a checkpoint was made."""
        ends = [
            checkpoint.seq + 1 if one.tape is checkpoint.tape else one.first_from(checkpoint.time_ns)
            for one in self._tapes
        ]
        return self._state_before(checkpoint.step, ends, checkpoint.time_ns + 1)

    def _state_before(self, number: int, ends: list[int], before_ns: int | None) -> RunState:
        """``ends``: number of the first later fact of each tape; ``before_ns``: the time of it."""
        run = self.run
        found = RunState(run, number, before_ns or run.ended_ns or run.started_ns)
        found.ends = {one.tape.instance.hex(): end for one, end in zip(self._tapes, ends, strict=True)}
        found.conversations = sorted(
            self._conversations(number, before_ns), key=lambda one: -one.step.number
        )
        if not self._tapes:
            found.left_out.append(NO_TAPE)
            return found
        for (instance, name), states in self._states.items():
            count = bisect_left(states, found.ends[instance], key=lambda one: one.seq)
            if count:
                found.states[name] = states[count - 1]
        for name, state in self._stored.before(found.ends).items():
            if state.has_content:
                found.states[name] = state
            else:
                found.left_out.append(f"no state of {name}: only its store has it")
        found.stdout, found.stderr = (
            b"".join(data for _, data in pieces[: bisect_left(pieces, ends[0], key=itemgetter(0))])
            for pieces in (self._outputs.stdout.pieces, self._outputs.stderr.pieces)
        )
        found.time_ns = self._tapes[0].last_ns(ends[0]) or run.started_ns
        found.databases = self._databases.before(found.ends)
        if "sqlite" not in had(next(run.tape.facts()).attributes):
            found.left_out.append("no databases: they are recorded at the levels causal and strict")
        try:
            history = self._files
            then = history.after(len(run.steps)) if before_ns is None else history.at(before_ns - 1)
        except PlayheadError as problem:
            found.left_out.append(f"no files: {problem.what}")
            return found
        found.files = _with_databases(then.tree, found.databases)
        found.left_out += then.notes
        return found

    @cached_property
    def _tapes(self) -> list[_TapeTimes]:
        return [_TapeTimes(tape) for tape in self.run.tapes]

    def _conversations(self, number: int, before_ns: int | None) -> Iterator[LastMessages]:
        """Yield the last messages of each lane up to a step."""
        run = self.run
        for lane, steps in self._calls.items():
            for step in reversed(steps[: bisect_right(steps, number, key=lambda one: one.number)]):
                messages = run.messages(step)
                if messages.input or messages.output:
                    ended_ns = step.span.ended_ns
                    answered = ended_ns is not None and (before_ns is None or ended_ns <= before_ns)
                    if not answered:
                        messages = Messages(messages.system, messages.input, [], messages.tools)
                    yield LastMessages(lane, step, messages, answered)
                    break

    @cached_property
    def _calls(self) -> dict[str, list[Step]]:
        """The steps that are model calls, by lane."""
        found: dict[str, list[Step]] = {}
        for step in self.run.steps:
            if a.GEN_AI_OPERATION_NAME in step.span.attributes:
                exchanges = self.run.exchanges_of(step)
                found.setdefault(exchanges[0].lane_name if exchanges else "", []).append(step)
        return found

    @cached_property
    def _states(self) -> dict[tuple[str, str], list[State]]:
        """The states by process and name, in the order of processes."""
        found: dict[tuple[str, str], list[State]] = {}
        for state in self.run.states:
            found.setdefault((state.tape.instance.hex(), state.name), []).append(state)
        return found

    @cached_property
    def _stored(self) -> StoredStates:
        return StoredStates(self.run)

    @cached_property
    def _outputs(self) -> Outputs:
        return Outputs.of_tape(self.run.tapes[0])

    @cached_property
    def _files(self) -> WorkspaceHistory:
        return WorkspaceHistory(self.run)

    @cached_property
    def _databases(self) -> DatabaseHistory:
        return DatabaseHistory(self.run)


class _TapeTimes:
    """The times of the facts of a tape, and the facts with which spans begin."""

    def __init__(self, tape: IndexedTape) -> None:
        self.tape = tape
        self._seqs: list[int] = []
        self._latest_ns: list[int] = []
        """The latest time up to each fact: facts of several threads may be out of order."""
        latest_ns = 0
        for fact in tape.facts():
            latest_ns = max(latest_ns, fact.time_ns)
            self._seqs.append(fact.seq)
            self._latest_ns.append(latest_ns)
        self._starts = {fact.span_id.hex(): fact.seq for fact in starts_among(tape.named(*TELL_STARTS))}

    def before(self, span_id: str, time_ns: int) -> int:
        """Return the number of the first fact of a span; as `first_from` for other processes."""
        found = self._starts.get(span_id)
        return self.first_from(time_ns) if found is None else found

    def first_from(self, time_ns: int) -> int:
        """Return the number of the first fact that is not earlier than ``time_ns``."""
        index = bisect_left(self._latest_ns, time_ns)
        return self._seqs[index] if index < len(self._seqs) else self.tape.last_seq + 1

    def last_ns(self, end: int) -> int:
        """Return the latest time of the facts before ``end``; 0 if there are none."""
        index = bisect_left(self._seqs, end)
        return self._latest_ns[index - 1] if index else 0


def _with_databases(files: Tree, databases: list[DatabaseState]) -> Tree:
    """Return ``files``, with a note for databases: their rows are listed separately."""
    noted = {
        one.name: replace(files[one.name], why=IN_TABLES) for one in databases if _has_rows(one, files)
    }
    return {**files, **noted} if noted else files


def _has_rows(database: DatabaseState, files: Tree) -> bool:
    return database.image is not None and database.name in files
