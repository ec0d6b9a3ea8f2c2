"""Two scripts with all that makes replays go wrong, recorded and replayed; many times under load."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.servers.jittered import Jittered
from support.servers.scripted import ScriptedServer
from support.starting.home import Home

from playhead_replay import Outputs
from playhead_replay.tape_files.tape_file import read_tape_file
from playhead_semconv import attributes as a

AGENTS = Path(__file__).parent / "agents"
SCRIPTS = ("fifteen.py", "nasty.py")
BURN = "while True: pass"
LONG = [pytest.mark.acceptance, pytest.mark.timeout(900)]


@contextmanager
def load(times: int) -> Iterator[None]:
    """Processes that use every processor; none for one time alone, since the suite is load enough."""
    count = 0 if times == 1 else 2
    burners = [subprocess.Popen([sys.executable, "-S", "-c", BURN]) for _ in range(count)]
    try:
        yield
    finally:
        for burner in burners:
            burner.kill()
            burner.wait()


@contextmanager
def recorded(
    folder: Path, times: int, script: str, *words: str, level: str = "strict"
) -> Iterator[Home]:
    """A home in which ``script`` has been recorded; its provider is gone."""
    server = ScriptedServer()
    server.on(lambda _: True, Jittered(), repeat=True)
    home = Home(
        folder,
        {
            "OPENAI_BASE_URL": server.openai_url,
            "OPENAI_API_KEY": "test",
            "TOOLS_URL": server.url,
            "NO_PROXY": "127.0.0.1",
        },
    )
    with load(times):
        done = home.playhead("record", "--level", level, AGENTS / script, *words)
    server.close()
    assert done.returncode == 0, done.stderr
    yield home


def times(*few: int) -> Any:
    short = [pytest.param(one, id=str(one)) for one in few]
    return pytest.mark.parametrize("times", [*short, pytest.param(20, id="20", marks=LONG)])


def require_identical(home: Home, times: int) -> None:
    """Every replay is the recording, whatever else the machine does."""
    with load(times):
        for number in range(times):
            status, report = home.report("last")
            found = json.dumps(report["divergences"][:3], indent=1)
            assert report["divergences"] == [], f"replay {number + 1}: {found}"
            assert (status, report["verdict"], report["level"]) == (0, "identical", "strict")
            assert report["fidelity"]["exact"] == report["asked"] > 0


@times(1)
def test_fifteen_steps_are_replayed_exactly(tmp_path: Path, times: int):
    diary = tmp_path / "diary.txt"
    diary.write_text("before\n")
    with recorded(tmp_path, times, "fifteen.py") as home:
        after = hashlib.sha256(diary.read_bytes()).hexdigest()
        out = home.run("last").outputs.stdout.data.decode().splitlines()
        assert [line.split()[0] for line in out if line[:1].isdigit()] == [str(n) for n in range(1, 16)]
        assert len(diary.read_text().splitlines()) == 2
        require_identical(home, times)
        assert hashlib.sha256(diary.read_bytes()).hexdigest() == after


@times()
@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_a_script_twice_as_nasty_is_replayed_exactly(tmp_path: Path, times: int, loop: str):
    words = ["--uvloop"] if loop == "uvloop" else []
    with recorded(tmp_path, times, "nasty.py", *words) as home:
        notes = hashlib.sha256((tmp_path / "notes.db").read_bytes()).hexdigest()
        require_identical(home, times)
        assert hashlib.sha256((tmp_path / "notes.db").read_bytes()).hexdigest() == notes


@times()
@pytest.mark.parametrize("script", SCRIPTS)
def test_at_causal_level_every_request_gets_its_own_answer(tmp_path: Path, script: str, times: int):
    """What interleaves otherwise, and what is therefore asked otherwise, is said."""
    (tmp_path / "diary.txt").write_text("before\n")
    with recorded(tmp_path, times, script, level="causal") as home:
        printed = home.run("last").outputs.stdout.data
        for _ in range(times):
            status, report = home.report("last", "--keep", tmp_path / "now.tape")
            now = read_tape_file(tmp_path / "now.tape").tape
            found = Counter(one["kind"] for one in report["divergences"])
            fidelity = report["fidelity"]
            answered = [
                one.ask.details[a.PLAYHEAD_ORIGIN_SEQ]
                for one in now.exchanges().values()
                if one.ask.details[a.PLAYHEAD_FIDELITY] in ("exact", "moved")
            ]
            assert len(set(answered)) == len(answered) > 0
            assert fidelity["changed"] == fidelity["live"] == 0
            assert fidelity["blocked"] == found["blocked"]
            assert fidelity["exact"] + fidelity["moved"] + fidelity["blocked"] == report["asked"]
            assert found["blocked"] == 0 or script == "nasty.py"
            assert (Outputs.of_tape(now).stdout.data == printed) == (found["stdout"] == 0)
            assert (report["verdict"] == "identical") == (status == 0) == (not found)
