"""Runs as tables of a database, for people who know SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from playhead_analysis.paths import PathStep, RunPath
from playhead_core.errors import UsageError

SCHEMA: Final = """
CREATE TABLE sessions(
    run TEXT PRIMARY KEY, trace_id TEXT, agent TEXT, version TEXT, status TEXT, started_at REAL,
    duration_s REAL, cost_usd REAL, input_tokens INTEGER, output_tokens INTEGER, steps INTEGER);
CREATE TABLE actions(
    run TEXT, place TEXT, step INTEGER, kind TEXT, label TEXT, name TEXT, status TEXT, started_at REAL,
    duration_s REAL, arguments TEXT, failure TEXT, phase TEXT, input_tokens INTEGER,
    output_tokens INTEGER, retries INTEGER, span_id TEXT);
CREATE TABLE transitions(
    run TEXT, sequence INTEGER, from_state TEXT, to_state TEXT, type TEXT, at REAL,
    time_in_state_s REAL);
CREATE INDEX actions_run ON actions(run);
CREATE INDEX transitions_run ON transitions(run);
CREATE VIEW repeats AS
    SELECT run, label, arguments, count(*) AS times FROM actions
    WHERE kind IN ('tool', 'retrieval') AND arguments <> ''
    GROUP BY run, label, arguments HAVING count(*) > 2;
CREATE VIEW now AS
    SELECT run, place, label, kind, started_at FROM actions WHERE status = 'pending';
"""
"""Times are seconds since 1970. ``repeats``: equal calls of a tool, more than twice in a run. ``now``:
what running agents are doing."""
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


def database_of(paths: Iterable[RunPath], location: str = ":memory:") -> sqlite3.Connection:
    """Return a new database with the tables of some runs.

    ``location``: a file that does not exist; by default the tables are in memory.
    """
    database = sqlite3.connect(location)
    database.executescript(SCHEMA)
    with database:
        for path in paths:
            database.execute(
                "INSERT OR IGNORE INTO sessions VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                (
                    *(path.name, path.trace_id, path.agent, path.version, path.status),
                    *(path.started_ns / 1e9, _seconds(path.duration_ns), path.cost_usd),
                    *(path.input_tokens, path.output_tokens, len(path.steps)),
                ),
            )
            database.executemany(
                "INSERT INTO actions VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                (_action(path.name, step) for step in path.steps),
            )
            database.executemany("INSERT INTO transitions VALUES (?,?,?,?,?,?,?)", _transitions(path))
    return database


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


def _allow(action: int, *_: str | None) -> int:
    return sqlite3.SQLITE_OK if action in ALLOWED else sqlite3.SQLITE_DENY


def _refused(problem: Exception) -> UsageError:
    return UsageError(
        f"the statement is refused: {problem}", hint="tables: sessions, actions, transitions"
    )


def _action(run: str, step: PathStep) -> tuple[Any, ...]:
    return (
        *(run, step.place, step.number, step.kind, step.label, step.name, step.status),
        *(step.started_ns / 1e9, _seconds(step.duration_ns), step.arguments, step.failure, step.phase),
        *(step.input_tokens, step.output_tokens, step.retries, step.span_id),
    )


def _transitions(path: RunPath) -> Iterator[tuple[Any, ...]]:
    """Yield each change of state: what the agent waits for, in words that all runs share.

    ``thinking`` is a call of a model; ``retrieving``, ``requesting`` and ``tool NAME`` are the others.
    """
    before, since, number = "started", path.started_ns, 0
    for step in path.steps:
        state = _state(step)
        if state == before:
            continue
        number += 1
        kind = "error" if step.status == "error" else "retry" if step.retries else "normal"
        spent = max(step.started_ns - since, 0) / 1e9
        yield path.name, number, before, state, kind, step.started_ns / 1e9, spent
        before, since = state, step.started_ns
    if path.duration_ns is not None:
        end = path.started_ns + path.duration_ns
        spent = max(end - since, 0) / 1e9
        kind = "error" if path.failed else "normal"
        yield path.name, number + 1, before, path.status, kind, end / 1e9, spent


def _state(step: PathStep) -> str:
    if step.kind == "tool":
        return f"tool {step.label}"
    return {"model": "thinking", "retrieval": "retrieving", "request": "requesting"}.get(
        step.kind, step.label
    )


def _seconds(ns: int | None) -> float | None:
    return None if ns is None else ns / 1e9
