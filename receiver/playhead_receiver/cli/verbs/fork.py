"""``playhead fork``: go back to a step, change something, and go on for real."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_receiver.cli.options import check_option, header_option, verb
from playhead_receiver.cli.running.branching import (
    checked,
    on_unknown_option,
    origin_opened,
    reopen_option,
    said_of,
    started,
    turned_away,
    unknown_decider,
)
from playhead_receiver.cli.running.child_process import die_as
from playhead_receiver.cli.session import Session
from playhead_receiver.cli.targets.run_argument import parse_target
from playhead_receiver.cli.targets.trust import require_trust, trust_option
from playhead_semconv.errors import UsageError
from playhead_semconv.rerun.given_headers import parse_headers

if TYPE_CHECKING:
    from playhead_receiver.cli.targets.point_argument import Point
    from playhead_replay import Run
    from playhead_semconv.rerun.plans import Edit, Reopen

BY_HAND = "\0"
"""``--edit`` without a value."""

REFUSED = 3


@verb("fork", short_help="go back to a step, change something, and go on for real")
@click.argument("target", metavar="[RUN[:POINT]]", required=False)
@click.option("--at", metavar="POINT", help="The step; the same as RUN:POINT.")
@click.option(
    "--edit",
    "edits",
    metavar="PATH=VALUE",
    multiple=True,
    is_flag=False,
    flag_value=BY_HAND,
    help="What is changed there: request.…, response.…, tool_result or state.…; alone: in $EDITOR.",
)
@click.option("--patch", type=click.Path(path_type=Path, dir_okay=False), help="A file of edits.")
@click.option("--times", type=click.IntRange(1), default=1, help="So many forks, one after the other.")
@click.option("--offline", is_flag=True, help="Nothing goes to the world: what would is refused.")
@click.option("--in-place", is_flag=True, help="Work in the run's own folder, not in a copy of it.")
@on_unknown_option
@reopen_option
@header_option
@check_option
@trust_option
@click.option("--python", default="", help="The agent's interpreter. Default: the recorded one.")
@click.option("--cwd", default="", help="Where the program lies. Default: the recorded folder.")
def command(
    session: Session,
    target: str | None,
    at: str | None,
    edits: tuple[str, ...],
    patch: Path | None,
    times: int,
    offline: bool,
    in_place: bool,
    on_unknown: str,
    reopen: Reopen | None,
    header_lines: tuple[str, ...],
    checks: tuple[Path, ...],
    trust: bool,
    python: str,
    cwd: str,
) -> int:
    """Play a run up to a step, change something there, and go on for real.

    Without a step: as far as the program, which has changed, agrees with the tape. It is a new run; its
    origin stays as it is. docs/forks.md says how edits are written. Exit status: the program's; 3 where
    something was refused.
    """
    from playhead_receiver.cli.targets.point_argument import find_point
    from playhead_replay.forks.fork import fork_of
    from playhead_replay.forks.forked_processes import forked_of
    from playhead_replay.forks.start import folder_of
    from playhead_replay.forks.workspace import copied, folder_of_fork, looks, settled
    from playhead_replay.launch.replaying import require_headers

    decide = unknown_decider(session, on_unknown)
    headers = parse_headers(header_lines)
    wanted = parse_target(target, at)
    status = 0
    with origin_opened(session, wanted) as (house, run):
        foreign = require_trust(session, wanted, run, trust=trust, live=True)
        point = find_point(run, wanted.point) if wanted.point else None
        if point is not None and point.snapped:
            session.say(point.snapped)
        tape, plan = fork_of(
            run,
            None if point is None else point.step,
            _edits(run, point, edits, patch),
            exchange=None if point is None else point.exchange,
            decide=decide,
            offline=offline,
            reopen=reopen,
        )
        require_headers(run, headers)
        forks, plan = forked_of(run, tape, plan, decide)
        own = None if cwd else folder_of_fork(session.data_dir, run.name)
        place = own or folder_of(run.command, cwd)
        for _ in range(times):
            session.progress(f"forking {run.name}")
            folder = place if in_place else copied(place, run.tape, tape, session.data_dir)
            before = {} if in_place else looks(folder)
            status, made = started(
                session,
                house,
                tape,
                plan,
                python=python,
                folder=folder,
                forks=forks,
                headers=headers,
                checks=checks,
                foreign=foreign,
            )
            left = None if in_place else settled(folder, before, "" if made is None else made.name)
            if made is None:
                session.say("nothing was recorded")
                continue
            lines, refused = said_of(made)
            for line in [*lines, *turned_away(run, made, headers), *checked(made)]:
                session.say(line)
            session.say(f"{made.name} {made.status}, {len(made.steps)} steps; origin unchanged")
            if left is not None:
                session.say(f"its files are in {left}")
            session.suggest(shlex.join(["playhead", "diff", run.name, made.name]))
            if refused:
                status = REFUSED
    return die_as(status)


def _edits(
    run: Run, point: Point | None, edits: tuple[str, ...], patch: Path | None
) -> list[tuple[str, Edit]]:
    from playhead_replay.forks.edits_in_words import REQUEST, edit_by_hand, parse_edit, patch_file
    from playhead_replay.forks.fork import request_of

    found: list[tuple[str, Edit]] = []
    for text in edits:
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
    return found + (patch_file(patch) if patch is not None else [])
