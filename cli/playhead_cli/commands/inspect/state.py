"""``playhead state``: show conversation, state, files and output at a step."""

from __future__ import annotations

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.step.moment import moment_lines, moment_object
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_moment
from playhead_cli.targets.run_argument import opened_run, parse_target


@playhead_command("state", short_help="Show conversation, state, files and output at a step")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.option("--at", metavar="POINT|TIME", help="Step, offset (12.5s) or time. Default: the end.")
@click.option("--all", "everything", is_flag=True, help="Show whole messages and all lines.")
def command(session: Session, target: str | None, at: str | None, everything: bool) -> None:
    """Show the state at a point of a run: after that step, before the next one began.

    Shows the last conversation of each thread or task, the states that the program reported, its
    files and its output. All of it comes from the tape: no checkpoint is needed and nothing runs.
    """
    wanted = parse_target(target, at)
    with opened_run(session, wanted) as run:
        moment, snapped = find_moment(run, wanted.point)
        if snapped:
            session.say(snapped)
        if session.as_json:
            session.print_json(moment_object(moment, everything))
            return
        print_lines(session, moment_lines(moment, everything), paged=True, cut=False)
        if moment.step < len(run.steps):
            session.suggest(f"playhead fork {run.name}:{moment.step + 1}")
