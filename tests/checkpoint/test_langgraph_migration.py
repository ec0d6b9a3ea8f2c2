import sqlite3
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from checkpoint import graph_program
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.checkpoint.sqlite import SqliteSaver
from support.servers.postgres import PostgresServer

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver
from playhead_checkpoint.langgraph.migration import migrate
from playhead_core.errors import StoreError

START = {"messages": [], "numbers": [1], "rounds": 0}


@pytest.fixture(params=["sqlite", "postgres"])
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    """LangGraph's own savers."""
    if request.param == "sqlite":
        database = sqlite3.connect(tmp_path / "theirs.sqlite", check_same_thread=False)
        yield SqliteSaver(database)
        database.close()
        return
    server: PostgresServer = request.getfixturevalue("server")
    name = f"d{uuid.uuid4().hex}"
    with server.connect() as connection:
        connection.execute(f"CREATE DATABASE {name}")  # pyright: ignore
    with PostgresSaver.from_conn_string(server.url(name)) as saver:
        saver.setup()
        yield saver


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 1_000}


class Stopped(Exception):
    pass


def stopped(graph: Any, thread: str, nodes: int) -> None:
    """Run a thread until so many nodes have ended, as if it had died there."""
    for number, _ in enumerate(graph.stream(START, config_of(thread), durability="sync")):
        if number == nodes:
            return


def test_threads_go_on_where_they_were(source: Any, tmp_path: Path):
    theirs = graph_program.graph(source)
    theirs.invoke(START, config_of("done"), durability="sync")
    for thread, nodes in (("a", 3), ("b", 10), ("c", 22)):
        stopped(theirs, thread, nodes)
    expected = theirs.get_state(config_of("done")).values
    with SqliteCheckpoints(tmp_path / "ours.sqlite") as store:
        saver = PlayheadSaver(store)
        came = migrate(source, saver)
        assert came.threads == 4
        assert came.checkpoints == len(list(source.list(None))) > 60
        assert came.writes > came.checkpoints
        assert migrate(source, saver) == came
        assert migrate(source, saver, threads=["a"]).threads == 1
        for thread in ("done", "a", "b", "c"):
            mine, other = (list(one.list(config_of(thread))) for one in (saver, source))
            assert [one.checkpoint for one in mine] == [one.checkpoint for one in other]
            assert [one.metadata for one in mine] == [one.metadata for one in other]
            assert [one.parent_config for one in mine] == [one.parent_config for one in other]
            ours = graph_program.graph(saver)
            assert ours.get_state(config_of(thread)).next == theirs.get_state(config_of(thread)).next
            if thread != "done":
                assert ours.invoke(None, config_of(thread), durability="sync") == expected
        assert store.damages() == []


def test_what_came_over_as_something_else_is_said(
    source: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    stopped(graph_program.graph(source), "a", 3)
    with SqliteCheckpoints(tmp_path / "ours.sqlite") as store:
        saver = PlayheadSaver(store)
        put = saver.put
        monkeypatch.setattr(
            saver,
            "put",
            lambda config, checkpoint, metadata, new: put(config, checkpoint, {"step": 99}, new),
        )
        with pytest.raises(StoreError, match="of thread a came back as something else"):
            migrate(source, saver)
