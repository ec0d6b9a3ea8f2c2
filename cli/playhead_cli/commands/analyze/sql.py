"""``playhead sql``: ask runs in SQL."""

from __future__ import annotations

import csv
import io
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_analysis.tables import ask, database_of
from playhead_cli.commands.analyze.flow import report_selection, select
from playhead_cli.completion.arguments import complete_query
from playhead_cli.session.options import limit_option, playhead_command, runs_option
from playhead_cli.session.session import Session
from playhead_core.errors import UsageError
from playhead_core.untrusted.shown_text import in_one_line

if TYPE_CHECKING:
    from playhead_analysis.tables import Rows


@playhead_command("sql", short_help="Ask runs in SQL")
@click.argument("statement", metavar="STATEMENT")
@click.argument("words", metavar="[QUERY]", nargs=-1, shell_complete=complete_query)
@limit_option(1000, "rows")
@runs_option()
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option(
    "--into",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write the tables to a new SQLite file as well.",
)
def command(
    session: Session,
    statement: str,
    words: tuple[str, ...],
    limit: int,
    runs: int,
    as_csv: bool,
    into: Path | None,
) -> None:
    """Ask the runs of QUERY in SQL. STATEMENT is one SELECT in the dialect of SQLite; - reads stdin.

    Tables: sessions(run, trace_id, agent, version, status, started_at, duration_s, cost_usd,
    input_tokens, output_tokens, steps), actions(run, place, step, kind, label, name, status,
    started_at, duration_s, arguments, failure, phase, input_tokens, output_tokens, retries, span_id),
    transitions(run, sequence, from_state, to_state, type, at, time_in_state_s), and the views repeats
    and now.
    """
    if into is not None and into.exists():
        raise UsageError(f"{into} exists already", hint="--into takes a new file")
    selected = select(session, words, runs)
    with closing(database_of(selected.paths, ":memory:" if into is None else str(into))) as database:
        found = ask(database, sys.stdin.read() if statement == "-" else statement, limit)
    if session.as_json:
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        session.print_json({"schema_version": 1, "columns": found.columns, "rows": rows})
        return
    click.echo(_csv(found) if as_csv else _table(found), nl=False)
    report_selection(session, selected, runs)


def _csv(found: Rows) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(found.columns)
    writer.writerows(found.rows)
    return text.getvalue()


def _table(found: Rows) -> str:
    """Return the rows in columns; numbers are aligned to the right."""
    rows = [found.columns, *([_cell(value) for value in row] for row in found.rows)]
    shown = [[in_one_line(cell) for cell in row] for row in rows]
    wide = [max(map(len, column)) for column in zip(*shown, strict=True)]
    numeric = [
        all(isinstance(row[at], int | float | None) for row in found.rows) for at in range(len(wide))
    ]
    lines = (
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, wide, numeric, strict=True)
        ).rstrip()
        for row in shown
    )
    return "".join(f"{line}\n" for line in lines)


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) and abs(value) < 1e9 else str(value)
