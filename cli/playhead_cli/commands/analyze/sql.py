"""``playhead sql``: ask runs in SQL."""

from __future__ import annotations

import csv
import io
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from playhead_analysis.sql.database import ask, database_of, needs_details
from playhead_analysis.sql.parquet import parquet_of
from playhead_analysis.sql.tables import COLUMNS, RunDetails, details_of
from playhead_analysis.workflows.definition import read_workflow
from playhead_cli.commands.analyze.flow import report_selection, select
from playhead_cli.completion.arguments import complete_query
from playhead_cli.output.columns import in_columns
from playhead_cli.session.options import limit_option, option_groups, playhead_command, runs_option
from playhead_cli.session.session import Session
from playhead_cli.targets.run_argument import reading
from playhead_core.errors import RunUnknown, UsageError
from playhead_core.untrusted.shown_text import in_one_line
from playhead_receiver.storage.api.store import OF_ONE_RUN
from playhead_replay import Run
from playhead_replay.tape_files.tape_file import written

if TYPE_CHECKING:
    from playhead_analysis import RunPath
    from playhead_analysis.sql.database import Rows
    from playhead_receiver.queries.run_paths import SelectedPaths

URLS = ("postgresql://", "postgres://")


@dataclass(frozen=True, slots=True)
class SqlOptions:
    """Options for what is printed and written."""

    limit: int
    runs: int
    as_csv: bool
    workflow: str | None
    into: str | None
    parquet: Path | None


@playhead_command("sql", short_help="Ask runs in SQL")
@click.argument("words", metavar="[STATEMENT] [QUERY]", nargs=-1, shell_complete=complete_query)
@limit_option(1000, "rows")
@runs_option()
@click.option("--csv", "as_csv", is_flag=True, help="Print comma-separated values.")
@click.option(
    "--workflow", "-w", metavar="FILE", help="Fill the tables definitions and completeness from this."
)
@click.option(
    "--into",
    metavar="FILE|URL",
    help="Write the tables to a new SQLite file or a PostgreSQL database as well.",
)
@click.option(
    "--parquet",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write a Parquet file of each table and view to this new folder as well.",
)
@option_groups(how=SqlOptions)
def command(session: Session, words: tuple[str, ...], how: SqlOptions) -> None:
    """Ask the runs of QUERY in SQL. STATEMENT is one SELECT in the dialect of SQLite; - reads stdin.

    Without STATEMENT, statements are read from a prompt or stdin, each up to a semicolon. They can only
    read. Tables: sessions, actions, transitions, decisions, communications, definitions, completeness;
    views: repeats, now, current_states, failures. The how-to on SQL lists the columns.
    """
    words = words or ("",)
    is_statement = words[0] == "-" or any(sign in words[0] for sign in " \n\t(")
    statement = (sys.stdin.read() if words[0] == "-" else words[0]) if is_statement else ""
    writes = how.into is not None or how.parquet is not None
    if not is_statement and session.as_json:
        raise UsageError("--json needs a statement")
    whole = writes or not statement or needs_details(statement)
    into_file = how.into is not None and not how.into.startswith(URLS)
    for path in (Path(how.into or "") if into_file else None, how.parquet):
        if path is not None and path.exists():
            raise UsageError(f"{path} exists already", hint="name a new one")
    workflow = None if how.workflow is None else read_workflow(how.workflow)
    query = words[1:] if is_statement else tuple(filter(None, words))
    selected = select(session, query, how.runs, with_states=whole or workflow is not None)
    location = str(how.into) if into_file else ":memory:"
    with closing(database_of(_detailed(session, selected, whole), location, workflow)) as database:
        _write(session, database, how)
        if is_statement:
            _print(session, ask(database, statement, how.limit), how)
        elif not writes:
            _shell(session, database, how)
    report_selection(session, selected, how.runs)


def _detailed(
    session: Session, selected: SelectedPaths, whole: bool
) -> Iterator[tuple[RunPath, RunDetails | None]]:
    """Yield the paths of runs with their details; without, if a run is gone or damaged."""
    if not whole:
        yield from ((path, None) for path in selected.paths)
        return
    with reading(session) as store:
        for path in selected.paths:
            try:
                details = details_of(Run.load(store, path.trace_id))
            except (RunUnknown, *OF_ONE_RUN):
                details = None
            yield path, details


def _write(session: Session, database: sqlite3.Connection, how: SqlOptions) -> None:
    """Write the tables to where the options say."""
    if how.into is not None and how.into.startswith(URLS):
        from playhead_receiver.storage.postgres.run_tables import write_run_tables

        session.say(f"wrote the schema {write_run_tables(how.into, database)}")
    if how.parquet is None:
        return
    how.parquet.mkdir(parents=True)
    for name, columns in COLUMNS.items():
        found = database.execute(f"SELECT * FROM {name}")
        with written(how.parquet / f"{name}.parquet") as file:
            for part in parquet_of(columns, found):
                file.write(part)
    session.say(f"wrote {len(COLUMNS)} files to {how.parquet}")


def _shell(session: Session, database: sqlite3.Connection, how: SqlOptions) -> None:
    """Answer statements of stdin. `UsageError` for a wrong one that no person typed."""
    is_person = sys.stdin.isatty()
    if is_person:
        session.say(f"tables: {', '.join(COLUMNS)}; end a statement with ; and the shell with ^D")
    text = ""
    while True:
        try:
            text += input("sql> " if is_person and not text else "") + "\n"
        except EOFError:
            if not text.strip():
                return
            text += ";"
        if not text.strip():
            text = ""
        elif sqlite3.complete_statement(text):
            statement, text = text, ""
            try:
                _print(session, ask(database, statement, how.limit), how)
            except UsageError as problem:
                if not is_person:
                    raise
                session.say(problem.what)


def _print(session: Session, found: Rows, how: SqlOptions) -> None:
    if session.as_json:
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        session.print_json({"schema_version": 1, "columns": found.columns, "rows": rows})
    else:
        click.echo(_csv(found) if how.as_csv else _table(found), nl=False)


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
    numeric = [
        at
        for at in range(len(found.columns))
        if all(isinstance(row[at], int | float | None) for row in found.rows)
    ]
    return "".join(f"{line}\n" for line in in_columns(shown, numeric))


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) and abs(value) < 1e9 else str(value)
