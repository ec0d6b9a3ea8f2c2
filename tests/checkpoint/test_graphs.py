"""Real graphs of LangGraph on the saver."""

import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checkpoint import graph_program

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.langgraph import PlayheadSaver

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
