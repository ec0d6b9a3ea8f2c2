"""Replays a run without a tape: model calls are answered from its spans."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

from playhead_cli.running.program import Program
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_core.errors import TapeMissing, UsageError
from playhead_core.untrusted.shown_text import visible

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
    from playhead_replay import ReplayConfiguration
    from playhead_replay.semantic import command_of, named_program, replay_spans

    if any(map(len, run.tapes)):
        raise UsageError(
            f"{run.name} has a tape, which names its program",
            hint=f"playhead replay {run.name}",
        )
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


def _print(session: Session, report: SemanticReport) -> None:
    from rich.text import Text

    lines = [Text(line) for line in report.lines()]
    lines[-1].stylize(f"bold {STYLES[report.verdict]}")
    print_lines(session, lines, cut=False)
