"""``playhead resume``: resume a crashed run from its tape, then live."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.running.branching import (
    branch_object,
    check_failures,
    fork_notes,
    on_unknown_option,
    open_origin,
    rejected_requests,
    reopen_option,
    run_fork,
    unknown_decider,
)
from playhead_cli.running.child_process import die_as
from playhead_cli.running.program import Program
from playhead_cli.session.options import check_option, header_option, option_groups, playhead_command
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import parse_target
from playhead_cli.targets.trust import require_trust, trust_option
from playhead_core.errors import UsageError
from playhead_replay.forks.forked_processes import with_forked
from playhead_replay.forks.ready_fork import folder_of
from playhead_replay.forks.resume import GoingOn, resume_of
from playhead_replay.forks.workspace import folder_of_fork
from playhead_replay.runner.requirements import require_headers
from playhead_semconv import attributes as a

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Reopen
    from playhead_replay import Run


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """Options for the live part."""

    on_unknown: str
    reopen: Reopen | None
    repeat_effects: bool


@playhead_command("resume", short_help="Resume a crashed run from its tape, then live")
@click.argument("target", metavar="[RUN]", required=False, shell_complete=complete_run)
@on_unknown_option
@reopen_option
@click.option(
    "--repeat-effects",
    is_flag=True,
    help="Repeat file changes that a recording at level exchanges does not contain.",
)
@header_option
@check_option
@trust_option
@click.option("--python", default="", help="Python interpreter of the agent. Default: the recorded one.")
@click.option("--cwd", default="", help="Working folder of the program. Default: the recorded one.")
@option_groups(program=Program, way=ResumeOptions)
def command(session: Session, target: str | None, program: Program, way: ResumeOptions) -> int:
    """Resume a crashed run: replay its tape to the end, then continue live.

    The replayed part has no side effects: no request is sent, and no file is written unless
    --repeat-effects is given. The result is a new run, listed under the crashed one. The exit status
    is that of the program.
    """
    decide = unknown_decider(session, way.on_unknown)
    headers = program.headers()
    wanted = parse_target(target)
    with open_origin(session, wanted) as (receiver, run):
        _require_dead(run)
        foreign = require_trust(session, wanted, run, trust=program.trust, live=True)
        going_on = GoingOn(decide, way.reopen)
        fork = resume_of(run, going_on, repeat_effects=way.repeat_effects)
        require_headers(run, headers)
        fork = with_forked(run, fork, decide)
        session.progress(f"resuming {run.name}")
        own = None if program.cwd else folder_of_fork(session.data_dir, run.name)
        folder = own or folder_of(run.command, program.cwd)
        around = program.surroundings(foreign=foreign, folder=folder)
        status, made = run_fork(session, receiver, fork, around, program.checks, run.agent)
    lines: list[str] = []
    if made is not None:
        lines = [*fork_notes(made)[0], *rejected_requests(run, made, headers), *check_failures(made)]
    if session.as_json:
        told = branch_object(made, run, status, folder=str(folder), notes=lines)
        session.print_json(told, to_stderr=True)
    elif made is None:
        session.say("nothing was recorded")
    else:
        for line in lines:
            session.say(line)
        session.say(f"{made.name} {made.status}, {len(made.steps)} steps; from {run.name}")
        session.suggest(shlex.join(["playhead", "show", made.name]))
    return die_as(status)


def _require_dead(run: Run) -> None:
    """`UsageError` if the process of a run is still running."""
    if run.status != "running":
        return
    start = next(run.tape.facts())
    pid = int(start.attributes.get(a.PLAYHEAD_PROCESS_PID, 0))
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        run.status = "interrupted"
        return
    except PermissionError:
        pass
    raise UsageError(
        f"{run.name} is still running, as process {pid}", hint=f"follow it: playhead tail {run.name}"
    )
