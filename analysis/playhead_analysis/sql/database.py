"""A SQLite database of runs, and statements that can only read it."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final

from playhead_analysis.paths import RunPath
from playhead_analysis.sql.tables import (
    DETAILED,
    DETAILED_COLUMNS,
    TABLES,
    VIEWS,
    RunDetails,
    row_of_conformance,
    rows_of,
    rows_of_workflow,
)
from playhead_analysis.workflows.conformance import Conformer
from playhead_analysis.workflows.definition import Workflow
from playhead_core.errors import UsageError

ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
"""What a statement may do: read tables. It cannot attach another database or change a setting."""
MOST_STEPS: Final = 200_000_000
"""Instructions of the database after which a statement is stopped, about ten seconds."""


@dataclass(frozen=True, slots=True)
class Rows:
    """What a statement returns."""

    columns: list[str]
    rows: list[tuple[Any, ...]]


def database_of(
    runs: Iterable[tuple[RunPath, RunDetails | None]],
    location: str = ":memory:",
    workflow: Workflow | None = None,
) -> sqlite3.Connection:
    """Return a new database with the tables of some runs.

    ``location``: a file that does not exist; by default the tables are in memory. ``workflow``: fills
    the tables ``definitions`` and ``completeness``.
    """
    database = _empty(location)
    conformer = None if workflow is None else Conformer(workflow)
    with database:
        for path, details in runs:
            rows = rows_of(path, details)
            if workflow is not None and conformer is not None:
                if not workflow.agents or path.agent in workflow.agents:
                    found = row_of_conformance(conformer.conform(path), workflow.name)
                    rows["completeness"] = [found]
            for table, some in rows.items():
                _insert(database, table, some)
        _insert(database, "definitions", [] if workflow is None else rows_of_workflow(workflow))
    return database


def needs_details(statement: str) -> bool:
    """Return whether a statement reads what only whole runs have. `UsageError` if it is refused."""
    read: set[tuple[str, str]] = set()

    def note(action: int, table: str | None, column: str | None, *_: str | None) -> int:
        if action == sqlite3.SQLITE_READ:
            read.add((table or "", column or ""))
        return _allow(action)

    with closing(_empty(":memory:")) as database:
        database.set_authorizer(note)
        try:
            database.execute(f"EXPLAIN {statement}").close()
        except (sqlite3.Error, sqlite3.Warning) as problem:
            raise _refused(problem) from None
    return any(
        table in DETAILED or (table == "sessions" and column in DETAILED_COLUMNS)
        for table, column in read
    )


def ask(database: sqlite3.Connection, statement: str, most_rows: int = 10_000) -> Rows:
    """Return what a statement that reads returns, at most ``most_rows`` rows. `UsageError`."""
    database.set_authorizer(_allow)
    database.set_progress_handler(lambda: 1, MOST_STEPS)
    try:
        cursor = database.execute(statement)
        rows = cursor.fetchmany(most_rows)
    except sqlite3.OperationalError as problem:
        if "interrupted" in str(problem):
            raise UsageError("the statement takes too long", hint="select fewer runs") from None
        raise _refused(problem) from None
    except (sqlite3.Error, sqlite3.Warning) as problem:
        raise _refused(problem) from None
    finally:
        database.set_authorizer(None)
        database.set_progress_handler(None, 0)
    return Rows([str(column[0]) for column in cursor.description or ()], rows)


def _empty(location: str) -> sqlite3.Connection:
    database = sqlite3.connect(location)
    for table, columns in TABLES.items():
        declared = ", ".join(f"{name} {kind.upper()}" for name, kind in columns)
        database.execute(f"CREATE TABLE {table}({declared})")
    for table in ("sessions", "actions", "transitions"):
        database.execute(f"CREATE INDEX {table}_run ON {table}(run)")
    for view, query in VIEWS.items():
        database.execute(f"CREATE VIEW {view} AS {query}")
    return database


def _insert(database: sqlite3.Connection, table: str, rows: Iterable[tuple[Any, ...]]) -> None:
    places = ",".join("?" * len(TABLES[table]))
    safe = (tuple(_storable(value) for value in row) for row in rows)
    database.executemany(f"INSERT INTO {table} VALUES ({places})", safe)


def _storable(value: Any) -> Any:
    """Return a value as databases take it: text without NUL and surrogates, which they refuse."""
    if not isinstance(value, str):
        return value
    text = value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    return text.replace("\0", "\\x00")


def _allow(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def _refused(problem: Exception) -> UsageError:
    return UsageError(f"the statement is refused: {problem}", hint=f"tables: {', '.join(TABLES)}")
