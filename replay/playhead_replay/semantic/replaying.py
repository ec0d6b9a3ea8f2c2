"""Starts the program of a run without a tape, with model calls answered from its spans."""

from __future__ import annotations

from dataclasses import dataclass

from playhead_core.errors import TapeMissing
from playhead_core.tape.indexed_tapes import IndexedTape
from playhead_replay.run.command import Command
from playhead_replay.run.run import Run
from playhead_replay.run.steps import Step
from playhead_replay.runner.configuration import ReplayConfiguration
from playhead_replay.runner.replaying import Replayer
from playhead_replay.semantic.calls_of_run import calls_of, semantic_tape, taking_part
from playhead_replay.semantic.report import SemanticReport, semantic_report
from playhead_replay.semantic.tools_of_run import tools_of


@dataclass(frozen=True, slots=True)
class SemanticResult:
    """The result of a semantic replay."""

    report: SemanticReport
    recorded: IndexedTape
    """The tape made from the spans; the span of each request on it is the one that answers."""
    now: IndexedTape
    """The tape of the replay, with the rebuilt answers."""
    returncode: int
    stdout: bytes
    stderr: bytes


def replay_spans(
    run: Run, command: Command, configuration: ReplayConfiguration, last: Step | None = None
) -> SemanticResult:
    """Execute ``command`` and answer its model calls and tools from the spans of ``run``.

    ``last``: no model call that started after this step is answered. `TapeMissing` if no span has an
    answer; otherwise the errors of `Replayer.replay`.
    """
    calls = calls_of(run)
    if last is not None:
        calls = [one for one in calls if one.step.span.started_ns <= last.span.started_ns]
    answering = taking_part(calls)
    if all(one.why_not for one in calls):
        raise TapeMissing(
            f"{run.name} has no tape, and no span of it has an answer of a model",
            cause=calls[0].why_not if calls else "none of its spans is a call of a model",
            hint="record the content of messages, or record a tape: playhead record SCRIPT",
        )
    tools = tools_of(run)
    tape = semantic_tape(run, answering, tools, command)
    done = Replayer(configuration).replay(Run.of_tape(tape, (), run.name))
    report = semantic_report(run, calls, answering, tools, done.now)
    report.exit_status = done.returncode
    report.failed_only_now = bool(done.returncode) and run.status == "success"
    report.network, report.files = done.report.network, done.report.files
    allowed = configuration.rules.real()
    report.notes += [f"allowed to run for real: {one}" for one in allowed]
    return SemanticResult(report, tape, done.now, done.returncode, done.stdout, done.stderr)
