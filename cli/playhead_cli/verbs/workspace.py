"""``playhead workspace``: the files of a run after any of its steps."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_cli.completing.arguments import complete_run
from playhead_cli.options import verb
from playhead_cli.printing import print_lines
from playhead_cli.session import Session
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_semconv.errors import UsageError
from playhead_semconv.untrusted.shown_text import visible

if TYPE_CHECKING:
    from playhead_cli.printed.files import PrintedWorkspace, PrintedWorkspaceDiff
    from playhead_replay import Run
    from playhead_replay.workspace.at import WorkspaceAt, WorkspaceHistory

ENDS = ("start", "end")
"""Points that mean the run as a whole, and not its first or last step."""


@verb("workspace", short_help="show, compare or restore the files of a run at a step")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option("--at", metavar="POINT", help="After which step. Default: the end of the run.")
@click.option(
    "--to",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Lay the files into this folder, which is made, or empty.",
)
@click.option("--diff", "since", metavar="POINT", help="What has changed since that step, or the start.")
def command(
    session: Session, target: str | None, at: str | None, folder: Path | None, since: str | None
) -> None:
    """Show the working folder of a run as it was when a step was over.

    It is known from snapshots (the setting workspace) and from what the tape says of files (level causal
    and strict). What is not known is named.
    """
    from playhead_replay.workspace.at import WorkspaceHistory

    if folder is not None and since is not None:
        raise UsageError("--to and --diff exclude each other")
    asked = parse_target(target, at)
    with opened_run(session, asked) as run:
        history = WorkspaceHistory(run)
        named, found = _at(run, history, asked.point or "end")
        if since is not None:
            _compare(session, run, _at(run, history, since), (named, found))
        elif folder is not None:
            _lay(session, run, history, (named, found), folder)
        else:
            _show(session, run, history, (named, found))


def _at(run: Run, history: WorkspaceHistory, point: str) -> tuple[str, WorkspaceAt]:
    """The name of a point, and the files there."""
    if point in ENDS:
        return point, history.at_start() if point == "start" else history.at_end()
    step = find_point(run, point).step
    return str(step.number), history.after(step)


def _show(session: Session, run: Run, history: WorkspaceHistory, found: tuple[str, WorkspaceAt]) -> None:
    if session.as_json:
        session.print_json(_printed(run, history, found))
        return
    from playhead_cli.views.files.workspace import workspace_lines

    print_lines(session, workspace_lines(run.name, *found), paged=True)
    session.suggest(f"playhead workspace {run.name} --diff start")


def _lay(
    session: Session,
    run: Run,
    history: WorkspaceHistory,
    found: tuple[str, WorkspaceAt],
    folder: Path,
) -> None:
    from playhead_replay.workspace.trees import lay

    at = found[1]
    try:
        laid = lay(at.tree, folder)
    except OSError as problem:
        raise UsageError(f"{folder} cannot be written", cause=str(problem)) from problem
    missing = [f"{path}: {why}" for path, why in laid.missing]
    if session.as_json:
        printed = _printed(run, history, found)
        printed["to"], printed["missing"] = os.path.abspath(folder), missing
        session.print_json(printed)
        return
    from playhead_cli.views.words import count, size

    for line in (*at.notes, *missing):
        session.say(visible(line))
    session.say(f"laid {count(laid.files, 'file')}, {size(laid.size_bytes)}, into {folder}")


def _compare(
    session: Session, run: Run, before: tuple[str, WorkspaceAt], after: tuple[str, WorkspaceAt]
) -> None:
    from playhead_cli.views.files.workspace import difference_lines, note_lines, printed_change
    from playhead_replay.workspace.trees import tree_difference

    changes = tree_difference(before[1].tree, after[1].tree)
    notes = list(dict.fromkeys((*before[1].notes, *after[1].notes)))
    if session.as_json:
        printed: PrintedWorkspaceDiff = {
            "schema_version": 1,
            "run": run.name,
            "before": before[0],
            "after": after[0],
            "exact": before[1].is_exact and after[1].is_exact,
            "notes": notes,
            "changes": [printed_change(one) for one in changes],
        }
        session.print_json(printed)
        return
    lines = [*note_lines(notes), *difference_lines(run.name, before[0], after[0], changes)]
    print_lines(session, lines, paged=True)


def _printed(run: Run, history: WorkspaceHistory, found: tuple[str, WorkspaceAt]) -> PrintedWorkspace:
    from playhead_cli.views.files.workspace import printed_file, printed_snapshot

    named, at = found
    return {
        "schema_version": 1,
        "run": run.name,
        "at": named,
        "snapshot": None if at.snapshot is None else at.snapshot.label,
        "exact": at.is_exact,
        "notes": list(at.notes),
        "files": [printed_file(item) for item in at.tree.values()],
        "snapshots": [printed_snapshot(one) for one in history.snapshots],
    }
