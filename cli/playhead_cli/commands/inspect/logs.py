"""``playhead logs``: list the log records of a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from playhead_cli.completion.arguments import complete_run
from playhead_cli.output.plain import log_object
from playhead_cli.output.step.log_text import log_text
from playhead_cli.session.options import playhead_command
from playhead_cli.session.printing import print_lines
from playhead_cli.session.session import Session
from playhead_cli.targets.point_argument import find_point
from playhead_cli.targets.run_argument import opened_run, parse_target
from playhead_core.otlp.log_records import LEVELS
from playhead_receiver.queries.language import has_fields, read_log_filter

if TYPE_CHECKING:
    from playhead_cli.json_output.shown import PrintedLog
    from playhead_core.otlp.log_records import LogLine
    from playhead_replay import Run


@playhead_command("logs", short_help="List the log records of a run")
@click.argument("target", metavar="[RUN[:POINT]]", required=False, shell_complete=complete_run)
@click.argument("query", nargs=-1)
@click.option("--level", type=click.Choice(list(LEVELS)), help="Only records of this level or above.")
@click.option("--event", "events", multiple=True, help="Only events of this name.")
def command(
    session: Session,
    target: str | None,
    query: tuple[str, ...],
    level: str | None,
    events: tuple[str, ...],
) -> None:
    """List the log records of a run by time, or, with POINT, those of one step.

    QUERY is a level and words that must occur: level:error, level>=warning "cache miss".

    Programs and instrumentations send them as OTLP. Records without a trace id belong to no run and are
    not stored. --json prints one record per line.
    """
    if target and has_fields(target):
        target, query = None, (target, *query)
    words = (one if has_fields(one) or " " not in one else f'"{one}"' for one in query)
    selected = read_log_filter(" ".join(words))
    wanted = parse_target(target)
    with opened_run(session, wanted) as run:
        least = LEVELS[level] if level else 0
        step = find_point(run, wanted.point).step if wanted.point else None
        found = run.logs.lines(level=least) if step is None else run.log_lines(step)
        lines = (
            one
            for one in found
            if one.level >= least and (not events or one.event in events) and selected.selects(one)
        )
        if session.as_json:
            for one in _objects(run, lines):
                session.print_json(one)
            return
        print_lines(session, (log_text(run, one) for one in lines), paged=True)


def _objects(run: Run, lines: Iterator[LogLine]) -> Iterator[PrintedLog]:
    numbers = run.steps_of_spans()
    for line in lines:
        step = numbers.get(line.span_id)
        yield {"schema_version": 1, "run": run.name, "step": step, **log_object(line)}
