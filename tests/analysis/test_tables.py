"""Runs in SQL: the questions that operators ask, and nothing but reading."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.analysis.made_paths import path

from playhead_analysis import RunPath
from playhead_analysis.tables import ask, database_of
from playhead_core.errors import UsageError


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
            "WITH RECURSIVE n(i) AS (VALUES(1) UNION ALL SELECT i + 1 FROM n WHERE i < 3)"
            " SELECT i FROM n",
            [(1,), (2,), (3,)],
        ),
    ],
)
def test_what_operators_ask(statement: str, rows: list[tuple[object, ...]]):
    with closing(database_of(RUNS)) as database:
        assert ask(database, statement).rows == rows


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
    monkeypatch.setattr("playhead_analysis.tables.MOST_STEPS", 100_000)
    with closing(database_of(RUNS)) as database:
        with pytest.raises(UsageError):
            ask(database, statement)
        assert ask(database, "SELECT count(*) FROM sessions").rows == [(3,)]
    assert not list(tmp_path.iterdir())
