"""``playhead delete``: delete runs."""

from __future__ import annotations

import shlex
import time
from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.words import age, count
from playhead_cli.session.options import playhead_command
from playhead_cli.session.session import Session
from playhead_cli.store_changes import carry_out, confirm_deletion, report_deleted, user
from playhead_cli.targets.run_argument import parse_target, reading
from playhead_core.errors import UsageError
from playhead_receiver.maintenance.jobs import Delete
from playhead_receiver.storage.retention import named_to_go

if TYPE_CHECKING:
    from playhead_cli.json_output.changes import PrintedPreview


@playhead_command("delete", short_help="Delete runs")
@click.argument("runs", metavar="RUN…", nargs=-1, required=True, shell_complete=complete_run)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--dry-run", is_flag=True, help="List the runs without deleting them.")
def command(session: Session, runs: tuple[str, ...], yes: bool, dry_run: bool) -> int:
    """Delete runs, with all data that only they use, and overwrite it.

    Data shared with other runs is kept. If one of the runs is held or running, no run is deleted. A
    receiver running on the data folder does the work.
    """
    targets = [parse_target(one) for one in runs]
    for target in targets:
        if target.is_file:
            raise UsageError(f"{target.run} is a file", hint=f"rm {shlex.quote(target.run)}")
        if target.point:
            raise UsageError(
                f"a run can only be deleted as a whole, not its step {target.point}",
                hint=f"playhead delete {target.run}",
            )
    with reading(session) as store:
        found = named_to_go(store, [target.run for target in targets])
    names = [run.name for run in found]
    if dry_run:
        if session.as_json:
            printed: PrintedPreview = {"schema_version": 1, "would_delete": names}
            session.print_json(printed)
        for name in names if not session.as_json else ():
            click.echo(name)
        return 0
    if not yes:
        now_ns = time.time_ns()
        lines = [
            f"{run.name}  {run.status}  {age(now_ns - run.started_ns)}  {count(run.steps, 'step')}"
            for run in found
        ]
        again = f"playhead delete {' '.join(names)} --yes"
        if not confirm_deletion(session, lines, count(len(found), "run"), again):
            return 1
    done = carry_out(session, Delete([run.trace_id for run in found], user())).deleted
    report_deleted(session, done, names)
    return 0
