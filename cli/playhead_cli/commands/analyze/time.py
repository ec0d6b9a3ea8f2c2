"""``playhead time``: what the time of a run was spent on."""

from __future__ import annotations

import click
import msgspec

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.analysis.time import time_lines
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_replay.derived.attribution import attribution_of


@playhead_command("time", short_help="Split the time and cost of a run")
@click.argument("target", metavar="[RUN]", required=False, shell_complete=complete_run)
def command(session: Session, target: str | None) -> None:
    """Split the time of a run: models, tools, retries, waiting for a person, and the program's own code.

    The parts add up to the duration: concurrent calls share the time. The steps that took most follow,
    with their cost, then the steps that the end of the run waited for, and what each failure took.
    """
    with opened_run(session, parse_target(target)) as run:
        found = attribution_of(run)
    if session.as_json:
        session.print_json(msgspec.to_builtins(found))
        return
    print_lines(session, time_lines(found), paged=True)
