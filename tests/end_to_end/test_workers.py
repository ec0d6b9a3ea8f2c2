"""Processes of `multiprocessing`: each is executed again with its own tape, whoever was faster."""

from __future__ import annotations

import base64
import json
import os
import pickle
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.long import long
from support.starting.home import Home

from playhead_cli.demo.provider import Provider
from playhead_core.facts import digest_of

AGENTS = Path(__file__).parent / "agents"


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


def recorded(folder: Path, provider: Provider, *words: str) -> tuple[Home, str]:
    home = Home(folder / "home", {**provider.environment, "PYTHONDONTWRITEBYTECODE": "1"})
    home.folder.mkdir()
    shutil.copy(AGENTS / "workers.py", folder)
    done = home.playhead("record", "workers.py", *words, cwd=folder)
    assert done.returncode == 0, done.stderr
    provider.close()
    return home, done.stdout


@pytest.mark.parametrize(
    ("method", "ways", "processes"),
    [
        ("fork", ("executor", "racing"), 3 + 2),
        long("spawn", ("executor",), 3),
        pytest.param("spawn", ("racing",), 2, marks=pytest.mark.acceptance),
        ("forkserver", ("pool", "racing"), 2 + 2),
        pytest.param("spawn", ("manager",), 3, marks=pytest.mark.acceptance),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_identical_however_they_were_started(provider, tmp_path, method, ways, processes):
    home, said = recorded(tmp_path, provider, method, *ways)
    assert said
    status, report = home.report("workers-1")
    assert report["divergences"] == [], json.dumps(report, indent=1)
    assert (status, report["verdict"]) == (0, "identical")
    verdicts = [one["verdict"] for one in report["processes"]]
    # A worker that was killed before its first word has no tape, and is not missed.
    assert set(verdicts) == {"identical"}
    assert processes - len(ways) <= len(verdicts) - 1 <= processes
    assert report["boundaries"]["pipe"]["exact"] > 20
    assert not [one for one in os.listdir(tmp_path) if one not in ("home", "workers.py")]


def test_a_worker_that_says_something_else_is_in_the_report(provider, tmp_path):
    home, _ = recorded(tmp_path, provider, "fork", "racing")
    script = (tmp_path / "workers.py").read_text()
    (tmp_path / "workers.py").write_text(script.replace("mine = count.value", "mine = count.value + 1"))
    status, report = home.report("workers-1", "--force")
    assert (status, report["verdict"]) == (3, "blocked")
    found = {one["process"] for one in report["divergences"]}
    assert found == {"fork of workers.py fork", "fork of workers.py fork (2)"}


PIPE = """
import multiprocessing

def child(pipe):
    pipe.send({"n": 1})

if __name__ == "__main__":
    ours, theirs = multiprocessing.Pipe()
    worker = multiprocessing.get_context("fork").Process(target=child, args=(theirs,))
    worker.start()
    print(ours.recv())
    worker.join()
"""


class Evil:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return eval, (f"open({str(self._path)!r}, 'w')",)


def test_a_message_that_would_run_code_is_refused_by_name(tmp_path: Path):
    home = Home(tmp_path / "home", {})
    home.folder.mkdir()
    (tmp_path / "talk.py").write_text(PIPE)
    assert home.playhead("record", "talk.py", cwd=tmp_path).returncode == 0
    assert home.playhead("golden", "add", "last", "--name", "talk", cwd=tmp_path).returncode == 0
    golden = tmp_path / "tests" / "goldens" / "talk.tape"
    plain, evil = pickle.dumps({"n": 1}, 4), pickle.dumps({"n": Evil(tmp_path / "ran")}, 4)
    text = golden.read_text().replace(digest_of(plain).hex(), digest_of(evil).hex())
    golden.write_text(text.replace(*(base64.b64encode(one).decode() for one in (plain, evil))))
    done = home.playhead("replay", str(golden), "--trust", cwd=tmp_path)
    assert done.returncode == 3
    assert "a recorded message is not loaded: it calls builtins.eval" in done.stdout
    assert not (tmp_path / "ran").exists()
