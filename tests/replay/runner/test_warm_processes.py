"""Replays that are forked of a process which has imported their libraries: as exact as any other."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.starting.warm import run

from playhead_replay import Environment, ReplayConfiguration, Replayer, ReplayResult, Rules
from playhead_replay.run.run import Run
from playhead_replay.runner.known_imports import KnownImports
from playhead_replay.runner.warm_processes import Warm
from playhead_replay.tape_files.tape_file import read_tape_file

STARTING = """
from threading import Event, Thread

Thread(target=Event().wait, daemon=True).start()
"""
PACKAGES = {
    "drawing/__init__.py": "import random\nfrom . import deep\nDRAWN = random.random()\n",
    "drawing/deep.py": "import random\nDRAWN = random.getrandbits(40)\n",
    "drawing/late.py": "WORD = 'late'\n",
    "reading/__init__.py": "import time\nREAD = time.time()\n",
    "asking/__init__.py": "import os\nMODE = os.environ.get('ASKING_MODE', 'plain')\n",
    "starting/__init__.py": STARTING,
}
PROGRAM = """
import random, sys, time
print(random.random())
print("drawing" in sys.modules)
import drawing
print(drawing.DRAWN if sys.argv[1] == "drawn" else "", random.random(), time.time())
print("drawing.late" in sys.modules, "drawing.deep" in sys.modules, drawing.__spec__.origin)
"""


class Place:
    """A program, the packages that are installed for it, and its recorded runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "work"
        self.folder.mkdir()
        installed = folder / "site-packages"
        for name, text in PACKAGES.items():
            (installed / name).parent.mkdir(parents=True, exist_ok=True)
            (installed / name).write_text(text)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        self.environ = {**kept, "PYTHONPATH": str(installed), "PYTHONHASHSEED": "0"}
        self.warm = Warm()
        self.write(PROGRAM)

    def next_suite(self) -> None:
        """Begin anew, with what pytest keeps in its cache."""
        self.warm.close()
        self.warm = Warm(KnownImports.read(json.loads(json.dumps(self.warm.known.stored()))))

    def write(self, program: str) -> None:
        (self.folder / "agent.py").write_text(program)

    def recorded(self, *words: str) -> Run:
        tape = self.folder.parent / f"{len(list(self.folder.parent.glob('*.tape')))}.tape"
        start = [sys.executable, "-m", "playhead_instrumentation", "record", "--tape", str(tape)]
        environ = {**self.environ, "PLAYHEAD_LEVEL": "strict"}
        done = run([*start, "agent.py", *words], cwd=self.folder, env=environ, timeout=60)
        assert done.returncode == 0, done.stderr
        found = read_tape_file(tape)
        return Run.of_tapes(found.tapes, name=tape.stem)

    def replayed(self, run: Run, *, warm: bool = True) -> ReplayResult:
        around = Environment(environ=self.environ)
        told = ReplayConfiguration(around, Rules(force=True), warm=self.warm if warm else None)
        return Replayer(told).replay(run)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    yield made
    made.warm.close()


def test_only_the_first_replay_of_a_suite_imports(place: Place):
    runs = [place.recorded("now") for _ in range(2)]
    done = [place.replayed(run) for run in [*runs, *runs]]
    assert all(one.warm for one in done)
    assert {one.report.verdict for one in done} == {"identical"}
    assert done[0].stdout == done[2].stdout != done[1].stdout
    assert b"\nFalse\n" in done[3].stdout and b"\nFalse True " in done[3].stdout


def test_the_first_replay_of_the_next_suite_does_not_import_either(place: Place, tmp_path: Path):
    (tmp_path / "site-packages" / "drawing" / "slow.py").write_text(
        "import os\nos.write(2, b'loaded')\n"
    )
    place.write("import drawing.slow\nprint('so far')\n")
    run = place.recorded()
    assert place.replayed(run).stderr == b"loaded"
    place.next_suite()
    done = place.replayed(run)
    assert (done.warm, done.stdout, done.stderr) == (True, b"so far\n", b"")


def test_what_is_not_there_any_more_is_not_missed(place: Place, tmp_path: Path):
    run = place.recorded("now")
    assert place.replayed(run).report.verdict == "identical"
    (tmp_path / "site-packages" / "drawing" / "late.py").unlink()
    [imports] = place.warm.known.programs.values()
    imports.modules += ["drawing.late", "never.there"]
    place.next_suite()
    done = [place.replayed(run) for _ in range(2)]
    assert all(one.warm and one.report.verdict == "identical" for one in done)


@pytest.mark.parametrize("stored", [None, [], {"agent": 1}, {"agent": {"modules": [1]}}, "x"])
def test_what_was_kept_of_imports_may_be_anything(stored: Any):
    assert KnownImports.read(stored).programs == {}


def test_what_leaves_a_trace_is_known_to_the_next_suite(place: Place):
    place.write("import drawing, reading\nprint(reading.READ)\n")
    run = place.recorded()
    assert place.replayed(run).report.verdict == "identical"
    assert place.replayed(run).report.verdict == "identical"
    place.next_suite()
    first = place.replayed(run)
    [process] = place.warm._processes.values()
    assert place.replayed(run).warm and first.warm
    assert list(place.warm._processes.values()) == [process]
    assert [one.left_out for one in place.warm.known.programs.values()] == [["reading"]]


def test_what_a_module_has_drawn_is_that_of_another_run_and_shows(place: Place):
    runs = [place.recorded("drawn") for _ in range(2)]
    for one in runs:
        assert place.replayed(one, warm=False).report.verdict == "identical"
    done = [place.replayed(runs[0]), place.replayed(runs[0]), place.replayed(runs[1])]
    assert all(one.warm for one in done)
    assert done[2].report.divergences


def test_a_module_that_the_program_does_not_import_any_more_is_not_there(place: Place):
    place.write("import drawing.late\nprint(drawing.late.WORD)\n")
    run = place.recorded()
    for _ in range(2):
        assert place.replayed(run).report.verdict == "identical"
    place.write("import drawing\nprint(drawing.late.WORD)\n")
    done = place.replayed(run)
    assert done.warm and done.returncode == 1
    assert b"module 'drawing' has no attribute 'late'" in done.stderr


@pytest.mark.parametrize("package", ["reading", pytest.param("starting", marks=pytest.mark.acceptance)])
def test_a_module_that_leaves_a_trace_is_imported_by_each(place: Place, package: str):
    place.write(f"import drawing, {package}\nprint(vars({package}).get('READ'))\n")
    run = place.recorded()
    done = [place.replayed(run) for _ in range(3)]
    assert all(one.warm for one in done)
    assert {one.report.verdict for one in done} == {"identical"}


def test_a_module_is_imported_anew_where_it_would_see_something_else(place: Place):
    place.write("import os\nimport asking\nprint(asking.MODE)\n")
    run = place.recorded()
    for _ in range(2):
        assert place.replayed(run).report.verdict == "identical"
    place.write("import os\nos.environ['ASKING_MODE'] = 'other'\nimport asking\nprint(asking.MODE)\n")
    done = place.replayed(run)
    assert (done.warm, done.stdout) == (False, b"other\n")
    (place.folder / "asking.py").write_text("MODE = 'mine'\n")
    place.write("import asking\nprint(asking.MODE)\n")
    done = place.replayed(run)
    assert (done.warm, done.stdout) == (False, b"mine\n")


@pytest.mark.acceptance
def test_a_program_that_dies_leaves_what_waits_alive(place: Place):
    place.write("import drawing\nprint('so far')\n")
    run = place.recorded()
    assert [place.replayed(run).returncode for _ in range(2)] == [0, 0]
    place.write("import drawing, os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    done = place.replayed(run)
    assert (done.warm, done.returncode) == (True, -9)
    place.write("import drawing\nprint('so far')\n")
    assert place.replayed(run).report.verdict == "identical"


def test_where_nobody_waits_any_more_a_replay_starts_anew(place: Place):
    place.write("import drawing\nprint('so far')\n")
    run = place.recorded()
    assert all(place.replayed(run).warm for _ in range(2))
    place.write("import drawing, os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n")
    place.replayed(run)
    place.write("import drawing\nprint('so far')\n")
    assert place.replayed(run).report.verdict == "identical"
