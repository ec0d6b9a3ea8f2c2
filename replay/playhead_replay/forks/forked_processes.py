"""Processes forked before the cut: each goes on with its own tape, which is cut too."""

from __future__ import annotations

import msgspec

from playhead_core.errors import TapeGap, UsageError
from playhead_core.facts import ExchangeId
from playhead_core.rerun.plans import Unknown
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.forks.cut_tape import (
    CutTape,
    asks_for_fork,
    end_of_life,
    is_fork,
    is_worker,
    unanswered,
)
from playhead_replay.forks.ready_fork import Fork
from playhead_replay.forks.resume import Decide, decisions
from playhead_replay.run.exchanges import RecordedExchange
from playhead_replay.run.held_tapes import gaps_of, held
from playhead_replay.run.run import Run
from playhead_replay.runner.child_processes import begun_in


def with_forked(run: Run, fork: Fork, decide: Decide) -> Fork:
    """Add to ``fork``, a fork of ``run``, the tapes of its forked processes and of their forks.

    Its plan then covers their unanswered requests. `TapeGap` if a tape is not whole, `UsageError` if a
    process had not ended.
    """
    tape, plan = fork.tape, fork.plan
    until_ns = max((fact.time_ns for fact in tape.facts()), default=0)
    found: list[CutTape] = []
    parents: list[IndexedTape] = [held(tape)]
    for parent in parents:  # grows during the loop
        for child in run.tapes:
            by, exchange = begun_in(child)
            if by != parent.instance.hex() or not exchange or not _is_fork(parent, exchange):
                continue
            if gaps := gaps_of(child):
                raise TapeGap(f"a process that {run.name} forked cannot go on: {gaps[0]}")
            cut = CutTape(child, _end(child, until_ns if plan.mode == "fork" else None))
            found.append(cut)
            parents.append(held(cut))
    known = {begun_in(held(cut))[1] for cut in found}
    unknown: dict[str, Unknown] = {}
    for cut in (tape, *found):
        open = unanswered(cut)
        if cut is not tape:
            unknown |= decisions(open, decide)
        for one in open:
            id = str(one.exchange.id)
            if is_worker(one) or (is_fork(one) and id in known):
                raise _not_ended(run, one)
            if is_fork(one):
                unknown[id] = decide(one)
    whole = msgspec.structs.replace(plan, unknown={**unknown, **plan.unknown})
    return Fork(tape, whole, found)


def _not_ended(run: Run, process: RecordedExchange) -> UsageError:
    how = "forked a process" if is_fork(process) else "started a worker"
    before = [
        step.number
        for step in run.steps
        for one in run.exchanges_of(step)[:1]
        if one.instance == process.instance and one.exchange.first_seq < process.exchange.first_seq
    ]
    again = f"go on from the last step before it: playhead fork {run.name}:{max(before, default=0)}"
    return UsageError(
        f"{run.name} had {how} that had not ended: it does not go on from there",
        cause="what it shares with its parent (pipes, queues, locks) is on no tape",
        hint=again if before else "no step comes before it: run the program again",
    )


def _is_fork(parent: IndexedTape, exchange: str) -> bool:
    asked = parent.exchange(ExchangeId.parse(exchange))
    return asked is not None and asks_for_fork(parent.read(asked.ask.body))


def _end(tape: IndexedTape, until_ns: int | None) -> int:
    end = end_of_life(tape)
    if until_ns is None:
        return end
    return next((fact.seq for fact in tape.facts() if fact.time_ns > until_ns and fact.seq < end), end)
