"""Runs in SQL: the questions that operators ask, and nothing but reading."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.analysis.made_paths import SECOND, START_NS, path

from playhead_analysis import RunPath
from playhead_analysis.sql.database import ask, database_of, needs_details
from playhead_analysis.sql.tables import COLUMNS, RunDetails
from playhead_analysis.workflows.definition import workflow_of
from playhead_core.errors import UsageError
from playhead_replay.transitions import AgentSession

DETAILS = RunDetails(
    AgentSession("shop", "", "", "g\0oal \ud800", "", "user", "", [], "", "completed", True)
)


def looping() -> RunPath:
    run = path("chat search chat search chat search", "shop-2", status="running", duration_ns=None)
    steps = [replace(step, arguments="5e" * (step.kind == "tool")) for step in run.steps]
    steps[-1] = replace(steps[-1], status="pending", duration_ns=None)
    return replace(run, steps=tuple(steps))


RUNS = (
    path("chat search chat", "shop-1"),
    looping(),
    path("chat refund! chat", "shop-3", status="failure", cost_usd=None),
)


@pytest.mark.parametrize(
    ("statement", "rows"),
    [
        ("SELECT run, place, label FROM now", [("shop-2", "6", "search")]),
        ("SELECT run, label, times FROM repeats", [("shop-2", "search", 3)]),
        (
            "SELECT a.run, a.failure FROM actions a JOIN sessions s USING(run) WHERE s.status='failure'"
            " AND a.failure <> ''",
            [("shop-3", "timeout")],
        ),
        (
            "SELECT to_state, type, time_in_state_s FROM transitions WHERE run='shop-3'",
            [
                ("thinking", "normal", 0.0),
                ("tool refund", "error", 1.5),
                ("thinking", "normal", 1.5),
                ("failure", "error", 1.5),
            ],
        ),
        ("SELECT sum(cost_usd), count(*) FROM sessions", [(0.02, 3)]),
        (
            "SELECT run, state FROM current_states",
            [("shop-1", "success"), ("shop-2", "tool search"), ("shop-3", "failure")],
        ),
        (
            "SELECT run, label, failure, run_status FROM failures",
            [("shop-3", "refund", "timeout", "failure")],
        ),
        (f"SELECT run FROM now WHERE started_at < {START_NS // SECOND + 300} - 280", [("shop-2",)]),
        ("SELECT goal, trigger FROM sessions LIMIT 1", [("g\\x00oal \\ud800", "user")]),
        (
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 3)"
            " SELECT i FROM n",
            [(1,), (2,), (3,)],
        ),
    ],
)
def test_what_operators_ask(statement: str, rows: list[tuple[object, ...]]):
    with closing(database_of((run, DETAILS) for run in RUNS)) as database:
        assert ask(database, statement).rows == rows


def test_a_workflow_fills_definitions_and_completeness():
    workflow = workflow_of(
        b'name="shop"\n[[action]]\nname="search"\nminimum=1\n[[action]]\nname="chat"\n'
        b'[[rule]]\nkind="precedence"\nfirst="chat"\nthen="search"\n[bounds]\nsteps=5'
    )
    runs = ((run, DETAILS) for run in RUNS)
    with closing(database_of(runs, workflow=workflow)) as database:
        defined = ask(database, "SELECT element, name, target, required, maximum FROM definitions").rows
        assert defined == [
            ("action", "search", "", 1, None),
            ("action", "chat", "", 0, None),
            ("rule precedence", "chat", "search", 1, None),
            ("bound", "steps", "", 1, 5),
        ]
        found = ask(database, "SELECT run, conforms, completeness, missing FROM completeness").rows
        assert [row[:2] for row in found] == [("shop-1", "yes"), ("shop-2", "no"), ("shop-3", "no")]
        assert found[2][2:] == (0, '["search"]')


def test_whole_runs_are_read_only_for_what_paths_do_not_have():
    assert not needs_details("SELECT run, label, duration_s FROM now JOIN sessions USING (run)")
    assert not needs_details("SELECT * FROM now")
    for table in ("decisions", "transitions", "current_states", "run_times", "sessions"):
        assert needs_details(f"SELECT * FROM {table}"), table
    with pytest.raises(UsageError, match="no such table"):
        needs_details("SELECT * FROM other")
    with closing(database_of([])) as database:
        for name, columns in COLUMNS.items():
            assert ask(database, f"SELECT * FROM {name}").columns == [one for one, _ in columns]


@pytest.mark.parametrize(
    "statement",
    [
        "ATTACH 'other.db' AS other",
        "DELETE FROM sessions",
        "CREATE TABLE more(x)",
        "PRAGMA journal_mode=DELETE",
        "VACUUM INTO 'copy.db'",
        "SELECT load_extension('x')",
        "SELECT 1; DELETE FROM sessions",
        "SELECT * FROM nothing",
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n",
    ],
)
def test_a_statement_can_only_read(statement: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("playhead_analysis.sql.database.MOST_STEPS", 100_000)
    with closing(database_of((run, DETAILS) for run in RUNS)) as database:
        with pytest.raises(UsageError):
            ask(database, statement)
        assert ask(database, "SELECT count(*) FROM sessions").rows == [(3,)]
    assert not list(tmp_path.iterdir())
