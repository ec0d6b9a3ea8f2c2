"""Executes a run that names no program: one without a tape, or one with traffic of another tool."""

from __future__ import annotations

import os
import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.running.program import Program
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_core.errors import TapeMissing, UsageError
from playhead_core.untrusted.shown_text import visible
from playhead_replay import ReplayConfiguration
from playhead_replay.semantic import (
    command_of,
    has_program,
    named_program,
    rebuilt_for_fork,
    rebuilt_for_golden,
    replay_spans,
    semantic_junit_xml,
    with_program,
)
from playhead_replay.tape_files.tape_file import SHARED, written

if TYPE_CHECKING:
    from playhead_replay import Rules, Run, Step
    from playhead_replay.run.command import Command
    from playhead_replay.semantic import SemanticReport

STYLES = {"semantic": "green", "diverged": "yellow", "blocked": "red"}


def replay_from_spans(
    session: Session,
    run: Run,
    command_line: str,
    program: Program,
    rules: Rules,
    *,
    output: bool,
    junitxml: Path | None = None,
) -> int:
    """Replay ``run`` with the command that the user names. Returns the exit status. `UsageError`.

    ``output``: print what the program printed. ``junitxml``: file for the report as JUnit XML.
    """
    began = time.monotonic()
    command = _named(run, command_line, program, "replay")
    session.progress(f"replaying {run.name} from its spans")
    around = program.surroundings(foreign=False)
    done = replay_spans(run, command, ReplayConfiguration(around, rules, say=session.say))
    if junitxml is not None:
        words = ["playhead", "replay", run.name, "--program", command_line, *program.words()]
        with written(junitxml, SHARED) as file:
            lasted_s = time.monotonic() - began
            file.write(semantic_junit_xml(done.report, shlex.join(words), lasted_s))
    if output:
        for said in (done.stderr, done.stdout):
            text = said.decode(errors="replace")
            session.err.file.write(visible(text) if sys.stderr.isatty() else text)
    if session.as_json:
        session.print_json(done.report.to_json())
    else:
        _print(session, done.report)
    return done.report.exit_code


def is_only_spans(run: Run) -> bool:
    """Whether nothing but spans was recorded of ``run``."""
    return not any(map(len, run.tapes))


def rebuilt_run(
    session: Session,
    run: Run,
    command_line: str,
    program: Program,
    at: Step | None = None,
    *,
    golden: bool = False,
) -> tuple[Run, list[str]]:
    """Return a run of spans with a tape that a semantic replay made, and notes on its answers.

    ``at``: the step from which a fork goes live. ``golden``: it becomes a golden. `UsageError`.
    """
    command = _named(run, command_line, program, "golden add" if golden else "fork")
    session.progress(f"replaying {run.name} from its spans")
    configuration = ReplayConfiguration(program.surroundings(foreign=False), say=session.say)
    if golden:
        made, report = rebuilt_for_golden(run, command, configuration)
    else:
        made, report = rebuilt_for_fork(run, command, configuration, at)
    return made, list(report.rebuilt_up_to(None if at is None else at.number))


def _named(run: Run, command_line: str, program: Program, what: str) -> Command:
    if not command_line:
        suggested = shlex.quote(named_program(run) or "python agent.py")
        raise TapeMissing(
            f"{run.name} has no tape: only its spans were recorded",
            cause="its model calls can be answered from its spans, if you name its program",
            hint=f"playhead {what} {run.name} --program {suggested}",
        )
    return command_of(command_line, program.cwd or os.getcwd())


def with_named_program(run: Run, command_line: str, program: Program) -> Run:
    """Return a run with a tape, with ``command_line`` if its tape names no program. `UsageError`."""
    if has_program(run):
        if command_line:
            raise UsageError(
                f"{run.name} has a tape, which names its program",
                hint=f"playhead replay {run.name}",
            )
        return run
    if not command_line:
        raise TapeMissing(
            f"{run.name} names no program: it is HTTP traffic that another tool recorded",
            cause="its requests can be answered from the traffic, if you name the program",
            hint=f"playhead replay {run.name} --program 'python agent.py'",
        )
    return with_program(run, command_of(command_line, program.cwd or os.getcwd()))


def _print(session: Session, report: SemanticReport) -> None:
    lines = [Text(line) for line in report.lines()]
    lines[-1].stylize(f"bold {STYLES[report.verdict]}")
    print_lines(session, lines, cut=False)
