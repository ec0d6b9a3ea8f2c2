"""Replays a run that names no program: one without a tape, or one with traffic of another tool."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from rich.text import Text

from playhead_cli.running.program import Program
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_core.errors import TapeMissing, UsageError
from playhead_core.untrusted.shown_text import visible
from playhead_replay import ReplayConfiguration
from playhead_replay.semantic import command_of, has_program, named_program, replay_spans, with_program

if TYPE_CHECKING:
    from playhead_replay import Rules, Run
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
) -> int:
    """Replay ``run`` with the command that the user names. Returns the exit status. `UsageError`."""
    if not command_line:
        suggested = shlex.quote(named_program(run) or "python agent.py")
        raise TapeMissing(
            f"{run.name} has no tape: only its spans were recorded",
            cause="its model calls can be answered from its spans, if you name its program",
            hint=f"playhead replay {run.name} --program {suggested}",
        )
    command = command_of(command_line, program.cwd or os.getcwd())
    session.progress(f"replaying {run.name} from its spans")
    around = program.surroundings(foreign=False)
    done = replay_spans(run, command, ReplayConfiguration(around, rules, say=session.say))
    if output:
        for said in (done.stderr, done.stdout):
            text = said.decode(errors="replace")
            session.err.file.write(visible(text) if sys.stderr.isatty() else text)
    if session.as_json:
        session.print_json(done.report.to_json())
    else:
        _print(session, done.report)
    return done.report.exit_code


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
