"""Processes that end without a report: workers of a pool, and a program that replaces itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

POOL = """
import multiprocessing

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(3) as pool:
        print(len(pool.map(asked, list("abcdef"), chunksize=1)))
"""


@pytest.mark.parametrize("level", ["exchanges", "causal"])
def test_every_call_of_an_ended_worker_is_whole(tmp_path: Path, level: str):
    (tmp_path / "pool.py").write_text(ASKING + POOL, "utf-8")
    with Provider(pace_s=0.0) as provider:
        home = Home(tmp_path, provider.environment)
        done = home.playhead("record", "--level", level, "pool.py")
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr
    steps = home.run("pool-1").steps
    assert len(steps) == 6
    assert [step.span.name for step in steps if step.span.ended_ns is None] == []


ASKS_MORE = """
import multiprocessing, os

def other(text):
    return asked(text), text == "b" and os.path.exists("changed") and asked("more")

if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(1) as pool:
        print(len(pool.map(other, list("ab"), chunksize=1)))
"""


def test_a_replay_ends_though_a_pool_waits_for_a_worker_that_ended_beyond_its_tape(tmp_path: Path):
    (tmp_path / "pool.py").write_text(ASKING + ASKS_MORE, "utf-8")
    with Provider(pace_s=0.0) as provider:
        home = Home(tmp_path, provider.environment)
        done = home.playhead("record", "--level", "exchanges", "pool.py")
    assert (done.returncode, done.stdout) == (0, "2\n"), done.stderr
    (tmp_path / "changed").touch()
    done = home.playhead("replay")
    assert done.returncode == 3, done.stdout + done.stderr
    assert "the replay was stopped" in done.stdout


EXEC = """
import os, sys

print(asked("before" if len(sys.argv) == 1 else "after"), flush=True)
if len(sys.argv) == 1:
    os.execv(sys.executable, [sys.executable, sys.argv[0], "again"])
os._exit({status})
"""


@pytest.mark.parametrize(("status", "said"), [(0, "success"), (5, "failure")])
def test_a_program_that_replaces_itself_ends_as_its_last_image(tmp_path: Path, status: int, said: str):
    (tmp_path / "twice.py").write_text(ASKING + EXEC.format(status=status), "utf-8")
    with Provider(pace_s=0.0) as provider:
        home = Home(tmp_path, provider.environment)
        done = home.playhead("record", "--level", "exchanges", "twice.py")
    assert done.returncode == status, done.stderr
    assert f"playhead: twice-1 {said}, 2 steps" in done.stderr
    assert [run["status"] for run in home.runs()] == [said]


CHILD = """
import multiprocessing

def answer(there):
    there.send(asked(there.recv()))

if __name__ == "__main__":
    here, there = multiprocessing.Pipe()
    child = multiprocessing.get_context("fork").Process(target=answer, args=(there,))
    child.start()
    here.send("go")
    print(here.recv())
    child.join()
"""


def test_a_fork_leaves_no_folder_of_a_child_that_it_ended(tmp_path: Path):
    (tmp_path / "child.py").write_text(ASKING + CHILD, "utf-8")
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    with Provider(pace_s=0.0) as provider:
        home = Home(tmp_path, {**provider.environment, "TMPDIR": str(temporary)})
        recorded = home.playhead("record", "child.py")
        forked = home.playhead("fork", "--offline", "last")
    assert (recorded.returncode, forked.returncode) == (0, 0), recorded.stderr + forked.stderr
    assert [one.name for one in temporary.iterdir()] == []
