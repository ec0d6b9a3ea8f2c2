"""Prepares a fork: the tape up to a step, the edits, and the plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from playhead_core.errors import UsageError
from playhead_core.rerun.edits import applied
from playhead_core.rerun.plans import Edit, Plan, Unknown
from playhead_core.rerun.state_documents import edited
from playhead_replay.forks.cut_tape import CutTape, end_of_life, unanswered
from playhead_replay.forks.edited_answer import answer_of, edited_answer
from playhead_replay.forks.edits_in_words import FUNCTION, REQUEST, RESPONSE, STATE, TOOL_RESULT
from playhead_replay.forks.ready_fork import Fork
from playhead_replay.forks.resume import GoingOn, decisions, reopened, run_id
from playhead_replay.forks.tools_in_bodies import in_function_call, in_tool_message, require_fitting
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.run import Run
from playhead_replay.run.states import State
from playhead_replay.run.steps import Step
from playhead_replay.runner.requirements import require_whole
from playhead_semconv import events as e


@dataclass(frozen=True, slots=True)
class ForkPoint:
    """The place where a fork goes live, or which it edits."""

    step: Step
    exchange: RecordedExchange | None = None
    """A single attempt of the step; None: all attempts."""


@dataclass(frozen=True, slots=True)
class ForkCheckpoint:
    """A place on the tape of the first process where a fork goes live, between two steps."""

    name: str
    """Of the checkpoint that marks it."""
    seq: int
    """The last fact that is played."""


def fork_of(
    run: Run,
    at: ForkPoint | ForkCheckpoint | None,
    edits: Sequence[tuple[str, Edit]],
    going_on: GoingOn,
    *,
    offline: bool = False,
) -> Fork:
    """The part of a run that is played, and the plan; without the processes that the run forked.

    ``at``: what goes live, or whose answer is edited; None: play as long as the program agrees with the
    tape. ``edits``: each with its root. ``offline``: requests to the world are refused. `UsageError` if
    the combination is not valid, `TapeGap` and `TapeMissing` if the tape is not whole.
    """
    require_whole(run)
    if at is None:
        return _of_all(run, edits, going_on, offline=offline)
    if isinstance(at, ForkCheckpoint):
        return _of_place(run, at, edits, going_on, offline=offline)
    of_state = [edit for root, edit in edits if root == STATE]
    if len(of_state) < len(edits) and of_state:
        raise UsageError(
            "a fork edits either a state or a request: requests after the state are sent again",
            hint="to edit both, fork the fork",
        )
    if of_state:
        return _of_state(run, at.step, of_state, going_on, offline=offline)
    attempts = [at.exchange] if at.exchange is not None else run.exchanges_of(at.step)
    _require_boundary(run, at.step, attempts)
    first, last = attempts[0], attempts[-1]
    of_request, of_answer = _sorted(edits, last)
    if of_answer:
        end = _end_of(last)
        tape = CutTape(run.tape, end + 1, edited_answer(last, of_answer))
        changed = [last.exchange.first_seq]
        own: dict[str, list[Edit]] = {}
    else:
        tape, changed = CutTape(run.tape, first.exchange.first_seq + 1), []
        own = {str(first.exchange.id): of_request} if of_request else {}
        if of_request:
            request = request_of(first)
            changed_request = applied(request, of_request)
            require_fitting(changed_request, request, changed_request)
    open = [one for one in unanswered(tape) if one.exchange.id != first.exchange.id]
    unknown: dict[str, Unknown] = {
        **decisions(open, going_on.decide),
        str(first.exchange.id): "resend",
    }
    how = reopened(tape, going_on.reopen, f"playhead fork {run.name}:{at.step.number}")
    origin = f"{run_id(run)}:{at.step.number}"
    return Fork(tape, Plan("fork", origin, True, unknown, own, changed, offline, how))


def _of_all(run: Run, edits: Sequence[tuple[str, Edit]], going_on: GoingOn, *, offline: bool) -> Fork:
    """A fork that plays as long as the program agrees with the tape."""
    if edits:
        raise UsageError("an edit needs a step", hint=f"playhead fork {run.name}:STEP --edit PATH=VALUE")
    whole = CutTape(run.tape, end_of_life(run.tape))
    open = unanswered(whole)
    how = reopened(whole, going_on.reopen, f"playhead fork {run.name}")
    unknown = decisions(open, going_on.decide)
    return Fork(whole, Plan("fork", run_id(run), unknown=unknown, offline=offline, reopen=how))


def _of_state(run: Run, at: Step, edits: list[Edit], going_on: GoingOn, *, offline: bool) -> Fork:
    """A fork from the last state that the program reported before a step."""
    said = state_before(run, at)
    place = ForkCheckpoint(str(at.number), said.seq)
    return _from_place(run, place, said, edits, going_on, offline=offline)


def _of_place(
    run: Run,
    at: ForkCheckpoint,
    edits: Sequence[tuple[str, Edit]],
    going_on: GoingOn,
    *,
    offline: bool,
) -> Fork:
    """A fork from a checkpoint; edits are of the last state that the program reported for it."""
    if any(root != STATE for root, _ in edits):
        raise UsageError(
            "at a checkpoint a fork can only edit a state: there is no request",
            hint=f"playhead fork {run.name}:{at.name} --edit state.PATH=VALUE",
        )
    said = [one for one in run.states if one.tape is run.tape and one.seq <= at.seq and one.has_content]
    if edits and not said:
        raise UsageError(
            f"{run.name} says nothing of its state before {at.name}",
            hint="a program reports it with playhead.state(…), or playhead.checkpoint(…)",
        )
    of_state = [edit for _, edit in edits]
    return _from_place(run, at, said[-1] if edits else None, of_state, going_on, offline=offline)


def _from_place(
    run: Run,
    at: ForkCheckpoint,
    said: State | None,
    edits: list[Edit],
    going_on: GoingOn,
    *,
    offline: bool,
) -> Fork:
    if said is not None:
        edited(said.document, edits)
    tape = CutTape(run.tape, at.seq + 1 if said is None else said.seq + 1)
    how = reopened(tape, going_on.reopen, f"playhead fork {run.name}:{at.name}")
    plan = Plan(
        "fork",
        f"{run_id(run)}:{at.name}",
        agrees=True,
        unknown=decisions(unanswered(tape), going_on.decide),
        offline=offline,
        states={} if said is None else {str(said.id): edits},
        reopen=how,
    )
    return Fork(tape, plan)


def state_before(run: Run, at: Step) -> State:
    """The last state that the program reported before a step. `UsageError` if there is none."""
    said = [one for one in run.states if one.tape is run.tape and one.has_content]
    before = [one for one in said if one.step < at.number]
    if before:
        return before[-1]
    later = next((step.number for step in run.steps if said and step.number > said[0].step), 0)
    raise UsageError(
        f"{run.name} says nothing of its state before step {at.number}",
        cause="" if said else "a program reports it with playhead.state(…)",
        hint=f"the first step after it did: {later}" if later else f"playhead show {run.name}",
    )


def request_of(exchange: RecordedExchange) -> Any:
    """The request of an exchange as a document that can be edited. `UsageError` if it is not one."""
    try:
        return json.loads(exchange.request)
    except (ValueError, RecursionError):
        raise UsageError(
            f"the request of {exchange.name} is not JSON and cannot be edited",
            cause=exchange.key,
            hint="edit its answer: --edit response.PATH=VALUE",
        ) from None


def _sorted(
    edits: Sequence[tuple[str, Edit]], exchange: RecordedExchange
) -> tuple[list[Edit], list[Edit]]:
    """Edits of the request, and edits of the answer. `UsageError` if there are both."""
    of_request = [edit for root, edit in edits if root == REQUEST]
    of_answer = [edit for root, edit in edits if root == RESPONSE]
    for root, edit in edits:
        if root == TOOL_RESULT and exchange.exchange.id.kind == "tool":
            of_answer.append(edit)
        elif root == TOOL_RESULT:
            of_request.append(in_tool_message(request_of(exchange), edit))
        elif root == FUNCTION:
            of_answer.append(in_function_call(answer_of(exchange), edit))
    if of_request and of_answer:
        raise UsageError(
            "a fork edits either a request or a response: an edited request gets a new response",
            hint="to edit both, fork the fork",
        )
    return of_request, of_answer


def _require_boundary(run: Run, at: Step, attempts: list[RecordedExchange]) -> None:
    if not attempts:
        others = [step.number for step in run.steps if run.exchanges_of(step)]
        after = next((number for number in others if number >= at.number), others[-1] if others else 0)
        raise UsageError(
            f"step {at.number} of {run.name} has no recorded request: a fork cannot begin there",
            hint=f"the next that did: playhead fork {run.name}:{after}" if after else "playhead show",
        )
    if attempts[0].instance != run.tape.instance.hex():
        raise UsageError(
            f"step {at.number} of {run.name} belongs to another process: a fork cannot begin there",
            hint=f"playhead show {run.name}",
        )


def _end_of(exchange: RecordedExchange) -> int:
    for fact in exchange.tape.facts():
        if fact.exchange == exchange.exchange.id and fact.name == e.PLAYHEAD_EXCHANGE_END:
            return fact.seq
    raise UsageError(
        f"{exchange.name} has no response to edit",
        hint="edit its request: --edit request.PATH=VALUE",
    )
