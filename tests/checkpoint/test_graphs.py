"""Real graphs of LangGraph on the saver."""

import operator
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Annotated, Any, TypedDict

import pytest
from checkpoint import graph_program
from langgraph.graph import END, START, StateGraph

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver
from playhead_core.errors import StateRefused

PROGRAM = Path(graph_program.__file__)
APART = Path(__file__).parents[2] / ".venv" / "apart-langgraph"


def started(path: Path, thread: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(PROGRAM), str(path), thread]
    environment = os.environ | {"PYTHONPATH": str(APART)}
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


def finished(path: Path, thread: str) -> str:
    """What the program prints in the end, when nothing interrupts it."""
    with started(path, thread) as process:
        assert process.stdout is not None
        *_, last = process.stdout
    assert process.returncode == 0
    return last


def killed(path: Path, kills: int, chance: random.Random) -> None:
    """Run threads, and kill each where it happens to be, until there were so many kills."""
    expected = finished(path, "whole")
    assert expected.startswith("end")
    thread = 0
    while kills:
        with started(path, str(thread)) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randrange(1, 12))]
            process.send_signal(signal.SIGKILL)
            lines += process.stdout
        kills -= 1
        if any(line.startswith("end") for line in lines):
            thread += 1
        elif not kills:
            assert finished(path, str(thread)) == expected
    for done in range(thread):
        assert finished(path, str(done)) == expected
    with SqliteCheckpoints(path) as store:
        assert store.damages() == []


def test_a_graph_that_is_killed_goes_on_to_the_same_end(tmp_path: Path):
    killed(tmp_path / "c.sqlite", 2, random.Random(1))


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_a_graph_that_is_killed_fifty_times_goes_on_to_the_same_end(tmp_path: Path):
    killed(tmp_path / "c.sqlite", 50, random.Random(2))


def config_of(thread: str) -> Any:
    return {"configurable": {"thread_id": thread}, "recursion_limit": 1_000}


def test_an_old_checkpoint_is_edited_and_gone_on_from_and_the_old_line_stays(tmp_path: Path):
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        graph = graph_program.graph(PlayheadSaver(store))
        start = {"messages": [], "numbers": [1], "rounds": 0}
        graph.invoke(start, config_of("t"), durability="sync")
        history = list(graph.get_state_history(config_of("t")))
        end = history[0].values
        old = next(one for one in history if one.values["rounds"] == 5 and "ask" in one.next)
        edited = graph.update_state(old.config, {"numbers": [500]}, as_node="reply")
        again = graph.invoke(None, edited | {"recursion_limit": 1_000}, durability="sync")
        assert again["rounds"] == end["rounds"] and again["numbers"] != end["numbers"]
        assert again["numbers"][: len(old.values["numbers"]) + 1] == [*old.values["numbers"], 500]
        assert graph.get_state(history[0].config).values == end
        assert graph.get_state(old.config).values == old.values
        assert store.damages() == []


@pytest.fixture
def saver(tmp_path: Path) -> Iterator[PlayheadSaver]:
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        yield PlayheadSaver(store)


class Log(TypedDict):
    log: Annotated[list[Any], operator.add]


def graph_of(saver: PlayheadSaver, nodes: dict[str, Any], **options: Any) -> Any:
    """A graph of nodes that all run in its first step."""
    graph = StateGraph(Log)
    for name, node in nodes.items():
        graph.add_node(name, node, **options)
        graph.add_edge(START, name)
        graph.add_edge(name, END)
    return graph.compile(checkpointer=saver)


def decline(state: Log) -> Log:
    raise ValueError("card declined")


def test_the_error_of_a_failed_node_is_in_the_state(saver: PlayheadSaver):
    graph = graph_of(saver, {"charge": decline})
    with pytest.raises(ValueError, match="card declined"):
        graph.invoke({"log": []}, config_of("t"))
    (task,) = graph.get_state(config_of("t")).tasks
    assert task.error == "ValueError('card declined')"


def test_an_interrupted_error_handler_runs_again_and_the_failed_node_does_not(saver: PlayheadSaver):
    calls: list[str] = []

    def charge(state: Log) -> Log:
        calls.append("charge")
        return decline(state)

    def handler(state: Log) -> Log:
        calls.append("handler")
        if calls.count("handler") == 1:
            raise KeyboardInterrupt
        return {"log": ["handled"]}

    graph = graph_of(saver, {"charge": charge}, error_handler=handler)
    with pytest.raises(KeyboardInterrupt):
        graph.invoke({"log": []}, config_of("t"))
    assert graph.invoke(None, config_of("t")) == {"log": ["handled"]}
    assert calls == ["charge", "handler", "handler"]


class Plan:
    """A class that nothing stores."""


class Watched(PlayheadSaver):
    """Reports when writes were refused."""

    def __init__(self, store: SqliteCheckpoints) -> None:
        super().__init__(store)
        self.refused = Event()

    def put_writes(self, config: Any, writes: Any, task_id: str, task_path: str = "") -> None:
        try:
            super().put_writes(config, writes, task_id, task_path)
        except StateRefused:
            self.refused.set()
            raise


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with SqliteCheckpoints(tmp_path / "c.sqlite") as store:
        yield Watched(store)


def fail_beside(saver: Watched, plans: list[Any], caplog: pytest.LogCaptureFixture) -> Any:
    """A graph that has run until one node failed after the writes of the other one were refused."""
    failures = [ValueError("card declined")]

    def charge(state: Log) -> Log:
        saver.refused.wait()
        if failures:
            raise failures.pop()
        return {"log": ["charged"]}

    graph = graph_of(saver, {"plan": lambda _: {"log": [plans.pop(0)]}, "charge": charge})
    with pytest.raises(ValueError, match="card declined"):
        graph.invoke({"log": []}, config_of("t"))
    (warning,) = (one for one in caplog.messages if "is not stored" in one)
    assert "what a task wrote to log" in warning and ".Plan cannot be stored" in warning
    return graph


def test_writes_refused_beside_a_failure_are_a_warning(
    watched: Watched, caplog: pytest.LogCaptureFixture
):
    graph = fail_beside(watched, [Plan()], caplog)
    errors = {task.name: task.error for task in graph.get_state(config_of("t")).tasks}
    assert errors == {"plan": None, "charge": "ValueError('card declined')"}
    graph.update_state(config_of("t"), {"log": ["by hand"]}, as_node="charge")
    assert graph.get_state(config_of("t")).values["log"] == ["by hand"]


def test_a_task_whose_writes_were_refused_runs_again(watched: Watched, caplog: pytest.LogCaptureFixture):
    graph = fail_beside(watched, [Plan(), "a text"], caplog)
    end = graph.invoke(None, config_of("t"))
    assert sorted(end["log"]) == ["a text", "charged"]
