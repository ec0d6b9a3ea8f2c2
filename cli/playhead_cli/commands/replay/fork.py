"""``playhead fork`` and ``playhead rollback``: replay up to a step and continue live."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from pathlib import Path
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
from playhead_cli.running.from_spans import is_only_spans, rebuilt_run, with_named_program
from playhead_cli.running.program import Program, program_option
from playhead_cli.session.options import (
    check_option,
    header_option,
    option_groups,
    playhead_command,
    run_instead,
)
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import CHECKPOINT, find_point
from playhead_cli.targets.run_argument import parse_target
from playhead_cli.targets.trust import require_trust, trust_option
from playhead_core.errors import UsageError
from playhead_replay.forks.edits_in_words import REQUEST, edit_by_hand, parse_edit, patch_file
from playhead_replay.forks.fork import ForkCheckpoint, ForkPoint, fork_of, request_of
from playhead_replay.forks.forked_processes import with_forked
from playhead_replay.forks.ready_fork import folder_of
from playhead_replay.forks.resume import GoingOn
from playhead_replay.forks.workspace import copied, folder_of_fork, looks, settled
from playhead_replay.runner.requirements import require_headers
from playhead_replay.timeline import checkpoint_named

if TYPE_CHECKING:
    from playhead_cli.targets.point_argument import Point
    from playhead_core.rerun.plans import Edit, Reopen
    from playhead_replay import Run


BY_HAND = "\0"
"""``--edit`` without a value."""

REFUSED = 3


@dataclass(frozen=True, slots=True)
class EditOptions:
    """Options for the step at which a fork begins, and its edits."""

    at: str | None
    edits: tuple[str, ...]
    patch: Path | None


@dataclass(frozen=True, slots=True)
class ForkOptions:
    """Options for the live part."""

    times: int
    offline: bool
    in_place: bool
    on_unknown: str
    reopen: Reopen | None
    program: str
    """Command of a run that names none."""


@playhead_command("fork", short_help="Replay up to a step, change something, continue live")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option(
    "--at",
    "--checkpoint",
    metavar="POINT",
    help="Step or checkpoint (c1, or its id in a store); same as RUN:POINT.",
)
@click.option(
    "--edit",
    "edits",
    metavar="PATH=VALUE",
    multiple=True,
    is_flag=False,
    flag_value=BY_HAND,
    help="Edit request.…, response.…, tool_result, function.… or state.… there. Without a "
    "value: in $EDITOR.",
)
@click.option("--patch", type=click.Path(path_type=Path, dir_okay=False), help="File with edits.")
@click.option("--times", type=click.IntRange(1), default=1, help="Number of forks, one after the other.")
@click.option("--offline", is_flag=True, help="Refuse live requests and effects.")
@click.option("--in-place", is_flag=True, help="Run in the original working folder, not in a copy.")
@on_unknown_option
@reopen_option
@program_option
@header_option
@check_option
@trust_option
@click.option("--python", default="", help="Python interpreter of the agent. Default: the recorded one.")
@click.option("--cwd", default="", help="Working folder of the program. Default: the recorded one.")
@option_groups(program=Program, changes=EditOptions, way=ForkOptions)
def command(
    session: Session, target: str | None, program: Program, changes: EditOptions, way: ForkOptions
) -> int:
    """Replay a run up to a step, change something there, and continue live.

    Without POINT, the run is replayed for as long as the changed program matches the tape. The fork
    is a new run; the original is not changed. docs/forks.md describes edits. The exit status is that
    of the program, or 3 if something was refused.
    """
    decide = unknown_decider(session, way.on_unknown)
    headers = program.headers()
    wanted = parse_target(target, changes.at)
    status = 0
    with open_origin(session, wanted) as (receiver, run):
        notes: list[str] = []
        if is_only_spans(run):
            _, point = _place(session, run, wanted.point)
            at_step = None if point is None else point.step
            run, notes = rebuilt_run(session, run, way.program, program, at_step)
        else:
            run = with_named_program(run, way.program, program)
        own = bool(way.program)
        foreign = not own and require_trust(session, wanted, run, trust=program.trust, live=True)
        at, point = _place(session, run, wanted.point)
        going_on = GoingOn(decide, way.reopen)
        edits = _edits(run, point, changes)
        fork = fork_of(run, at, edits, going_on, offline=way.offline)
        require_headers(run, headers)
        fork = with_forked(run, fork, decide)
        last = None if program.cwd else folder_of_fork(session.data_dir, run.name)
        place = last or folder_of(run.command, program.cwd)
        for _ in range(way.times):
            session.progress(f"forking {run.name}")
            folder = place if way.in_place else copied(place, run.tape, fork.tape, session.data_dir)
            before = {} if way.in_place else looks(folder)
            around = program.surroundings(foreign=foreign, folder=folder)
            status, made = run_fork(session, receiver, fork, around, program.checks, run.agent)
            left = None if way.in_place else settled(folder, before, "" if made is None else made.name)
            lines, refused = ([], False) if made is None else fork_notes(made)
            lines = [*notes, *lines]
            if made is not None:
                lines += [*rejected_requests(run, made, headers), *check_failures(made)]
                status = REFUSED if refused else status
            if session.as_json:
                where = None if left is None else str(left)
                told = branch_object(made, run, status, folder=where, notes=lines)
                session.print_json(told, to_stderr=True)
                continue
            if made is None:
                session.say("nothing was recorded")
                continue
            for line in lines:
                session.say(line)
            session.say(f"{made.name} {made.status}, {len(made.steps)} steps; origin unchanged")
            if left is not None:
                session.say(f"its files are in {left}")
            session.suggest(shlex.join(["playhead", "diff", run.name, made.name]))
    return die_as(status)


def _place(
    session: Session, run: Run, text: str
) -> tuple[ForkPoint | ForkCheckpoint | None, Point | None]:
    """Return the point at which the fork goes live, and its step if it was named by one."""
    if not text:
        return None, None
    if CHECKPOINT.match(text):
        found = checkpoint_named(run, text)
        if found.tape is not run.tape:
            raise UsageError(
                f"{found.name} of {run.name} was created in a child process: a fork cannot start there",
                hint=f"playhead checkpoints {run.name}",
            )
        return ForkCheckpoint(found.name, found.seq), None
    point = find_point(run, text)
    if point.snapped:
        session.say(point.snapped)
    return ForkPoint(point.step, point.exchange), point


def _edits(run: Run, point: Point | None, changes: EditOptions) -> list[tuple[str, Edit]]:
    found: list[tuple[str, Edit]] = []
    for text in changes.edits:
        if text != BY_HAND:
            found.append(parse_edit(text))
            continue
        if point is None:
            raise UsageError("an edit needs a step", hint=f"playhead fork {run.name}:STEP --edit")
        attempts = run.exchanges_of(point.step)
        if not attempts:
            raise UsageError(
                f"step {point.step.number} has no request to edit", hint=f"playhead show {run.name}"
            )
        made = edit_by_hand(request_of(attempts[0]), os.environ)
        found += [(REQUEST, edit) for edit in made]
    return found + (patch_file(changes.patch) if changes.patch is not None else [])


@playhead_command("rollback", short_help="Return to a checkpoint and continue live")
@click.argument("target", metavar="RUN", shell_complete=complete_run)
@click.option(
    "--to",
    metavar="CHECKPOINT",
    required=True,
    help="Checkpoint: c1, c2, …, or its id in a store; or a step.",
)
@click.option("--in-place", is_flag=True, help="Run in the original working folder, not in a copy.")
@click.option(
    "--trust", is_flag=True, help="Run the program of a tape that was recorded on another machine."
)
@click.pass_context
def rollback_command(
    ctx: click.Context, session: Session, target: str, to: str, in_place: bool, trust: bool
) -> int:
    """Replay a run up to a checkpoint and continue live from there, as a new run.

    Nothing is deleted: the original run keeps what followed. Same as playhead fork RUN:CHECKPOINT.
    """
    wanted = parse_target(target)
    if wanted.point:
        raise UsageError(
            "name the checkpoint once", hint=f"playhead rollback {wanted.run} --to {wanted.point}"
        )
    words = [wanted.run, "--at", to]
    words += ["--in-place"] * in_place + ["--trust"] * trust
    return run_instead(ctx, session, command, words)
