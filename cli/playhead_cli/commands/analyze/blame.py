"""``playhead blame``: where the arguments of a call come from."""

from __future__ import annotations

import click
import msgspec

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.analysis.blame import blame_lines
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import opened_run, parse_target, searchable
from playhead_core.errors import UsageError
from playhead_receiver.queries.runs_with_value import blamed_with_runs
from playhead_replay.derived.blame import blame


@playhead_command("blame", short_help="Show where the arguments of a call come from")
@click.argument("target", metavar="RUN:POINT", shell_complete=complete_run)
@click.argument("argument", metavar="[ARGUMENT]", default="")
@click.option("--value", metavar="TEXT", default="", help="Look for this text instead of arguments.")
@click.option("--runs", is_flag=True, help="Also list the other runs that hold each value.")
def command(session: Session, target: str, argument: str, value: str, runs: bool) -> None:
    """Show where the arguments of a call come from: the earliest source that holds each of them.

    \b
      playhead blame last:8         all arguments of the calls of step 8
      playhead blame last:8.2 to    the argument "to" of its second call

    Sources are what the program was given before: its command line, requests to it, input, files, rows
    of SQLite databases, responses, results of tools, messages and answers of the model.
    """
    asked = parse_target(target)
    if not asked.point:
        raise UsageError("name a step", hint=f"playhead blame {asked.run}:8")
    point, dot, place = asked.point.partition(".")
    if dot and not (place.isdecimal() and len(place) < 8):
        hint = f"playhead blame {asked.run}:8.2"
        raise UsageError(f"{asked.point} is not a call of a step", hint=hint)
    with opened_run(session, asked) as run:
        found = blame(
            run,
            find_point(run, point).step,
            place=int(place) if dot else None,
            path=argument,
            text=value,
        )
        trace_id = run.trace_id
    if runs:
        store = searchable(session)
        try:
            found = blamed_with_runs(store, found, trace_id)
        finally:
            store.close()
    if session.as_json:
        session.print_json(msgspec.to_builtins(found))
        return
    print_lines(session, blame_lines(found), paged=True)
