"""`playhead sql`: the tables of stored runs, asked, typed, and written to PostgreSQL and to files."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.servers.postgres import PostgresServer
from support.starting.cli import CommandLine, store_run
from support.tapes.handmade import HandMade

from playhead_analysis.sql.tables import COLUMNS
from playhead_semconv import events as e

TABLES = ("sessions", "actions", "transitions", "decisions", "communications", "step_times")
QUESTIONS = {
    "stuck": "SELECT run, label FROM now WHERE started_at < 2000000000 - 300",
    "loops": "SELECT run, label, times FROM repeats ORDER BY times DESC",
    "current state": "SELECT run, state FROM current_states ORDER BY run",
    "failures": "SELECT run, label, failure FROM failures",
    "who asked whom": "SELECT run, from_agent, to_agent, channel, kind, step FROM communications",
    "why": "SELECT chosen, rules, rejected, confidence FROM decisions WHERE derived = 0",
    "goals": "SELECT DISTINCT agent, goal, trigger FROM sessions WHERE goal <> ''",
    "times": "SELECT run, part FROM run_times ORDER BY run, part",
    "sums": "SELECT s.run, CASE WHEN abs(s.duration_s - sum(t.time_s)) <= 0.01 * s.duration_s THEN 1"
    " ELSE 0 END FROM sessions s JOIN run_times t ON t.run = s.run GROUP BY s.run, s.duration_s"
    " ORDER BY s.run",
}
"""What operators ask, in SQL that both databases understand."""


TIMES = [("loop-1", "code"), ("loop-1", "tool"), ("refund-1", "code"), ("refund-1", "model")]


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    running = PostgresServer()
    running.start()
    yield running
    running.remove()


def reported(made: HandMade, event: str, **fields: Any) -> None:
    made.fact(event, attributes={f"{event}.{name}": value for name, value in fields.items()})


@pytest.fixture
def two(playhead: CommandLine) -> CommandLine:
    """A run that reports everything, and one that calls a tool five times, fails and then waits."""
    made = HandMade(b"\1" * 16, b"\1" * 16).start(**{"playhead.run.agent": "refund"})
    reported(made, e.PLAYHEAD_GOAL, text="refund\0 81")
    reported(made, e.PLAYHEAD_TRIGGER, type="user")
    reported(made, e.PLAYHEAD_PHASE, name="specification")
    made.chat(name="chat gpt-4o")
    rejected = {"rejected": ["wait"], "rejected_reasons": ["late"]}
    reported(made, e.PLAYHEAD_DECISION, chosen="refund", rules=["below 100"], confidence=0.5, **rejected)
    reported(made, e.PLAYHEAD_MESSAGE, to="billing", kind="question", channel="slack")
    reported(made, e.PLAYHEAD_PHASE, name="completion", previous="specification", reason="known")
    store_run(playhead.data_dir, made.exit())
    looping = HandMade(b"\2" * 16, b"\2" * 16).start(**{"playhead.run.agent": "loop"})
    for number in range(5):
        looping.tool("search", '{"q": 1}', error="TimeoutError: slow" if number == 4 else "")
    store_run(playhead.data_dir, looping.exit(1))
    return playhead


def test_the_same_questions_have_the_same_answers_in_sqlite_and_postgresql(
    two: CommandLine, server: PostgresServer, tmp_path: Path
):
    url = f"{server.url()}&schema=own"
    written = two("sql", "--into", url)
    assert (written.status, "own_tables" in written.err) == (0, True), written.err
    answers = {
        name: [tuple(row.values()) for row in json.loads(two("sql", text, "--json").out)["rows"]]
        for name, text in QUESTIONS.items()
    }
    assert answers["loops"] == [("loop-1", "search", 5)]
    assert answers["current state"] == [("loop-1", "failure"), ("refund-1", "success")]
    assert answers["failures"] == [("loop-1", "search", "timeout")]
    assert answers["who asked whom"] == [("refund-1", "refund", "billing", "slack", "question", 1)]
    assert answers["why"] == [("refund", '["below 100"]', '[["wait", "late"]]', 0.5)]
    assert answers["goals"] == [("refund", "refund\\x00 81", "user")]
    assert answers["times"] == TIMES
    assert answers["sums"] == [("loop-1", 1), ("refund-1", 1)], "the parts add up to the duration"
    assert two("sql", "--into", url).status == 0, "it is made again"
    with closing(psycopg.connect(server.url(), autocommit=True)) as database:
        database.execute("SET search_path TO own_tables")
        for name, text in QUESTIONS.items():
            assert database.execute(text.encode()).fetchall() == answers[name], name
        columns = database.execute(
            "SELECT table_name, column_name FROM information_schema.columns"
            " WHERE table_schema = 'own_tables' ORDER BY table_name, ordinal_position"
        ).fetchall()
        assert columns == [(name, one) for name in sorted(COLUMNS) for one, _ in COLUMNS[name]]
        database.execute("CREATE SCHEMA other_tables")
    refused = two("sql", "--into", f"{server.url()}&schema=other")
    assert (refused.status, "not of playhead sql" in refused.err) == (2, True)


def test_transitions_are_phases_and_statements_can_be_typed(
    two: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    passed = "SELECT from_state, to_state, reason, source FROM transitions WHERE run = 'refund-1'"
    assert two("sql", passed, "--csv").lines[1:] == [
        "started,specification,,phase",
        "specification,completion,known,phase",
        "completion,success,,run",
    ]
    text = "SELECT count(*) AS n\nFROM actions;\n\nSELECT 2 AS two"
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    typed = two("sql", "agent:loop")
    assert [line.strip() for line in typed.lines] == ["n", "5", "two", "2"]
    monkeypatch.setattr("sys.stdin", io.StringIO("DROP TABLE sessions;"))
    wrong = two("sql")
    assert (wrong.status, "refused" in wrong.err) == (2, True)
    file = tmp_path / "flow.toml"
    file.write_text('name = "short"\nallow_other = true\n[bounds]\nsteps = 2\n')
    found = two("sql", "SELECT run, conforms FROM completeness ORDER BY run", "-w", str(file), "--csv")
    assert found.lines[1:] == ["loop-1,no", "refund-1,yes"]


def test_tables_are_written_to_parquet_files(two: CommandLine, tmp_path: Path):
    folder = tmp_path / "new" / "tables"
    assert two("sql", "--parquet", str(folder)).status == 0
    assert sorted(file.stem for file in folder.iterdir()) == sorted(COLUMNS)
    for file in folder.iterdir():
        data = file.read_bytes()
        assert data[:4] == data[-4:] == b"PAR1"
        footer = int.from_bytes(data[-8:-4], "little")
        for name, _ in COLUMNS[file.stem]:
            assert name.encode() in data[-8 - footer : -8]
    again = two("sql", "--parquet", str(folder))
    assert (again.status, "exists already" in again.err) == (2, True)
