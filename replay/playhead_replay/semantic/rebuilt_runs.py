"""Gives a run that is known only from spans a tape, so that it can be forked and kept as a golden.

Its program is replayed semantically. The tape of that replay has the requests that the program makes and
the answers that were rebuilt for them, which stay marked as ``semantic``. It takes the place of the
missing tape.
"""

from __future__ import annotations

import shlex
from collections.abc import Container, Iterator
from itertools import chain

import msgspec

from playhead_core.errors import UsageError
from playhead_core.facts import Fact, Fidelity
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_genai.rebuilding.calls import asked_in
from playhead_genai.steps import Role
from playhead_replay.goldens.golden_file import as_recorded
from playhead_replay.run.command import Command
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step, role_of
from playhead_replay.runner.configuration import ReplayConfiguration
from playhead_replay.semantic.calls_of_run import calls_of
from playhead_replay.semantic.replaying import SemanticResult, replay_spans
from playhead_replay.semantic.report import SemanticReport
from playhead_semconv import attributes as a
from playhead_semconv import events as e

NO_SPAN = bytes(8)


def rebuilt_for_fork(
    run: Run, command: Command, configuration: ReplayConfiguration, at: Step | None
) -> tuple[Run, SemanticReport]:
    """Return ``run`` with a rebuilt tape up to the request of the step ``at``, and how it was rebuilt.

    ``at``: the step from which a fork goes live; None: all is answered that can be. Its request is on
    the tape also if its answer cannot be rebuilt. `UsageError` if the program does not get to it;
    otherwise the errors of `replay_spans`.
    """
    done = replay_spans(run, command, configuration, at)
    lacking = at if any(one.step is at and one.why_not for one in calls_of(run)) else None
    facts = _facts(run, done, lacking, configuration.environment.inherited)
    made = run.with_tape(MemoryTape(list(facts), done.now.instance))
    if at is not None and role_of(at.span) >= Role.CALL and not made.exchanges_of(at):
        raise UsageError(
            f"the program does not get to step {at.number} of {run.name} with the answers of its spans",
            cause=_cause(done),
            hint=_again(run, command),
        )
    return made, done.report


def rebuilt_for_golden(
    run: Run, command: Command, configuration: ReplayConfiguration
) -> tuple[Run, SemanticReport]:
    """Return the semantic replay of ``run`` as a run, and its report.

    `UsageError` if the program did something else than ``run``; otherwise the errors of `replay_spans`.
    """
    done = replay_spans(run, command, configuration)
    if done.report.verdict != "semantic":
        raise UsageError(
            f"no golden can be made of {run.name}: the program does something else than its spans say",
            cause=_cause(done),
            hint=_again(run, command),
        )
    return Run.of_tape(done.now, name=run.name), done.report


def _cause(done: SemanticResult) -> str:
    """Say what the program did otherwise, in one line."""
    report = done.report
    differs = (str(one) for one in report.answered if one.differs)
    refused = (f"refused: {one}" for one in report.refused)
    unused = (f"not requested: {one}" for one in report.unused)
    return next(chain(differs, refused, unused), f"it ended with status {done.returncode}")


def _again(run: Run, command: Command) -> str:
    program = shlex.quote(shlex.join(["python", *command.words()]))
    return f"playhead replay {run.name} --program {program}"


def _facts(
    run: Run, done: SemanticResult, lacking: Step | None, variables: Container[str]
) -> Iterator[Fact]:
    """Yield the facts of the replay as if ``run`` had been recorded.

    They end before the first request that was refused, or that asks for something else than ``run``.
    ``lacking``: the step whose answer cannot be rebuilt: its request is the last fact. ``variables``:
    those that the program inherits, as far as they are on the tape; a replay adds credentials.
    """
    trace_id = bytes.fromhex(run.trace_id)
    differing = {one.seq for one in done.report.answered if one.differs}
    spans = {fact.seq: fact.span_id for fact in done.recorded.facts()}
    for fact in done.now.facts():
        at = as_recorded(fact.attributes)
        span_id = NO_SPAN
        if fact.name == e.PLAYHEAD_PROCESS_START:
            at[a.PLAYHEAD_RUN_MODE] = "record"
            words = at.get(a.PLAYHEAD_RUN_ENVIRONMENT, [])
            at[a.PLAYHEAD_RUN_ENVIRONMENT] = [one for one in words if one.partition("=")[0] in variables]
        elif fact.name == e.PLAYHEAD_SPAN_START:  # the spans of the run are known
            fact, at = msgspec.structs.replace(fact, name=e.PLAYHEAD_PROCESS_HEARTBEAT, body=None), {}
        elif fact.name == e.PLAYHEAD_EXCHANGE_REQUEST:
            at.pop(a.PLAYHEAD_ASK_SPANS, None)
            fidelity = fact.attributes.get(a.PLAYHEAD_FIDELITY)
            if fidelity == Fidelity.SEMANTIC:
                span_id = spans.get(int(fact.attributes[a.PLAYHEAD_ORIGIN_SEQ]), NO_SPAN)
            if fact.seq in differing:
                return
            if fidelity == Fidelity.BLOCKED:
                if lacking is not None and _is_call(done, fact):
                    span_id = bytes.fromhex(lacking.span.span_id)
                    ids = {"trace_id": trace_id, "span_id": span_id}
                    yield msgspec.structs.replace(fact, **ids, attributes=at)
                return
        yield msgspec.structs.replace(fact, trace_id=trace_id, span_id=span_id, attributes=at)


def _is_call(done: SemanticResult, request: Fact) -> bool:
    key = str(request.attributes.get(a.PLAYHEAD_ASK_KEY, ""))
    body = b"" if request.body is None else done.now.read(request.body)
    return asked_in(key, body) is not None
