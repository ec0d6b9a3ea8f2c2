"""``playhead workspace``: show, compare or restore the files of a run at a step."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.files import (
    difference_lines,
    note_lines,
    printed_change,
    printed_file,
    printed_snapshot,
    workspace_lines,
)
from playhead_cli.output.words import count, size
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_moment
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_core.errors import UsageError
from playhead_core.untrusted.shown_text import visible
from playhead_replay.workspace.history import WorkspaceHistory, lay, tree_difference

if TYPE_CHECKING:
    from playhead_cli.json_output.files import PrintedWorkspace, PrintedWorkspaceDiff
    from playhead_replay import Run
    from playhead_replay.workspace.history import WorkspaceState


class _FilesAtStep(NamedTuple):
    """A step of a run, and the files after it."""

    step: int
    """The last step that had begun; 0: before the first."""
    found: WorkspaceState


@playhead_command("workspace", short_help="Show, compare or restore the files of a run at a step")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option(
    "--at",
    metavar="POINT",
    help="Step (0: before the first), offset (12.5s) or time. Default: the end.",
)
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write the files to this folder, which must be new or empty.",
)
@click.option(
    "--diff", "since", metavar="POINT", help="Show changes since this point; 0: since the start."
)
def command(
    session: Session, target: str | None, at: str | None, folder: Path | None, since: str | None
) -> None:
    """Show the working folder of a run at a step: after that step, before the next one began.

    Files are known from snapshots (setting workspace) and from file operations on the tape (levels
    causal and strict). Unknown files are named.
    """
    if folder is not None and since is not None:
        raise UsageError("--to and --diff exclude each other")
    asked = parse_target(target, at)
    with opened_run(session, asked) as run:
        history = WorkspaceHistory(run)
        place = _at(session, run, history, asked.point)
        if since is not None:
            _compare(session, run, _at(session, run, history, since), place)
        elif folder is not None:
            _lay(session, run, history, place, folder)
        else:
            _show(session, run, history, place)


def _at(session: Session, run: Run, history: WorkspaceHistory, point: str) -> _FilesAtStep:
    """Return the files at a point."""
    moment, snapped = find_moment(run, point)
    if snapped:
        session.say(visible(snapped))
    last = moment.step == len(run.steps) and not point
    return _FilesAtStep(moment.step, history.after(moment.step) if last else history.at(moment.time_ns))


def _show(session: Session, run: Run, history: WorkspaceHistory, place: _FilesAtStep) -> None:
    if session.as_json:
        session.print_json(_printed(run, history, place))
        return
    print_lines(session, workspace_lines(run.name, place.step, place.found), paged=True)
    session.suggest(f"playhead workspace {run.name} --diff 0")


def _lay(
    session: Session, run: Run, history: WorkspaceHistory, place: _FilesAtStep, folder: Path
) -> None:
    try:
        laid = lay(place.found.tree, folder)
    except OSError as problem:
        raise UsageError(f"{folder} cannot be written", cause=str(problem)) from problem
    missing = [f"{path}: {why}" for path, why in laid.missing]
    if session.as_json:
        printed = _printed(run, history, place)
        printed["to"], printed["missing"] = os.path.abspath(folder), missing
        session.print_json(printed)
        return
    for line in (*place.found.notes, *missing):
        session.say(visible(line))
    session.say(f"wrote {count(laid.files, 'file')} ({size(laid.size_bytes)}) to {folder}")


def _compare(session: Session, run: Run, before: _FilesAtStep, after: _FilesAtStep) -> None:
    changes = tree_difference(before.found.tree, after.found.tree)
    notes = list(dict.fromkeys((*before.found.notes, *after.found.notes)))
    if session.as_json:
        printed: PrintedWorkspaceDiff = {
            "schema_version": 1,
            "run": run.name,
            "since_step": before.step,
            "since_ns": before.found.time_ns,
            "step": after.step,
            "time_ns": after.found.time_ns,
            "exact": before.found.is_exact and after.found.is_exact,
            "notes": notes,
            "changes": [printed_change(one) for one in changes],
        }
        session.print_json(printed)
        return
    lines = [*note_lines(notes), *difference_lines(run.name, before.step, after.step, changes)]
    print_lines(session, lines, paged=True)


def _printed(run: Run, history: WorkspaceHistory, place: _FilesAtStep) -> PrintedWorkspace:
    found = place.found
    return {
        "schema_version": 1,
        "run": run.name,
        "step": place.step,
        "time_ns": found.time_ns,
        "snapshot": None if found.snapshot is None else found.snapshot.label,
        "exact": found.is_exact,
        "notes": list(found.notes),
        "files": [printed_file(item) for item in found.tree.values()],
        "snapshots": [printed_snapshot(one) for one in history.snapshots],
    }
