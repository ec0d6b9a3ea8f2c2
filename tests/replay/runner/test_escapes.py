"""A replay does not touch the world, as root and as a user; without namespaces it says where it may."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.escapes import replaying
from support.escapes.ways import WAYS, Way
from support.escapes.world import World, program

from playhead_replay.runner.isolation import enforceable

NOBODY = 65534

SOME = tuple(way for way in WAYS if not way.name.startswith(("zmq.", "psycopg.tcp")))
"""Those that take no time."""

namespaces = pytest.mark.skipif("network" not in enforceable(), reason="namespaces are not allowed here")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can be root")


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder for programs and tapes, for everybody."""
    folder = Path(tempfile.mkdtemp(prefix="playhead-escaping-"))
    folder.chmod(0o777)
    yield folder
    shutil.rmtree(folder)


def tried(ways: tuple[Way, ...], place: Path, world: World, how: str) -> dict[str, Any]:
    """The report on a replay of a program that tries ``ways`` where it did nothing when recorded."""
    script, tape, report = place / "agent.py", place / "run.tape", place / "report.json"
    script.write_text("print('nothing')")
    environ = {**os.environ, "HOME": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, "-m", "playhead_instrumentation", "record", "--tape", tape, script.name]
    subprocess.run(
        words, cwd=place, env={**environ, "PLAYHEAD_LEVEL": "causal"}, check=True, capture_output=True
    )
    script.write_text(f"{program(ways, world)}\nprint('nothing')")
    if os.geteuid() == 0:
        for path in (script, tape, place):
            os.chown(path, world.user, world.user)
    done = again(world.user, how, tape, report, environ)
    assert done.returncode == 0, done.stderr
    found = json.loads(report.read_text())
    assert found["outputs"]["exit"]["identical"], (found["lines"], found["stderr"])
    return found


def again(user: int, how: str, *more: Any) -> subprocess.CompletedProcess[str]:
    """Run `support.replaying` beside the program."""
    *files, environ = more
    words = [sys.executable, replaying.__file__, user, how, *files]
    folder = Path(files[0]).parent
    return subprocess.run(
        [str(word) for word in words], cwd=folder, env=environ, capture_output=True, text=True
    )


def test_there_are_enough_ways():
    assert len(WAYS) >= 60
    assert len({way.name for way in WAYS}) == len(WAYS)


@namespaces
@pytest.mark.parametrize("ways", [SOME, pytest.param(WAYS, marks=pytest.mark.acceptance)])
@pytest.mark.parametrize("user", [pytest.param(0, marks=as_root), NOBODY])
def test_in_namespaces_nothing_takes_effect(ways: tuple[Way, ...], user: int, place: Path):
    with World(user if os.geteuid() == 0 else os.geteuid()) as world:
        report = tried(ways, place, world, "namespaces")
        assert world.changed() == set()
    held = [report[name] for name in ("network", "files", "other_processes")]
    assert held == ["kernel"] * 3


@namespaces
@pytest.mark.parametrize("ways", [SOME, pytest.param(WAYS, marks=pytest.mark.acceptance)])
def test_without_them_what_takes_effect_is_named(ways: tuple[Way, ...], place: Path):
    with World(NOBODY if os.geteuid() == 0 else os.geteuid()) as world:
        report = tried(ways, place, world, "without")
        changed = world.changed()
    assert report["verdict"] == "blocked"
    held = [report[name] for name in ("network", "files", "other_processes")]
    assert held == ["process"] * 3
    told = " ".join(one["what"] for one in report["divergences"])
    assert changed, "a way in C works where nothing holds it"
    assert {
        way.name for way in ways if way.name in changed and not (way.named and way.named in told)
    } == set()


@pytest.mark.acceptance
@namespaces
@pytest.mark.parametrize("way", WAYS, ids=[way.name for way in WAYS])
def test_no_way_alone_is_identical_where_it_takes_effect(way: Way, place: Path):
    with World(NOBODY if os.geteuid() == 0 else os.geteuid()) as world:
        report = tried((way,), place, world, "without")
        changed = world.changed()
    if way.name in changed:
        assert report["verdict"] != "identical"
        assert any(way.named in one["what"] for one in report["divergences"] if way.named)


@namespaces
def test_the_ways_are_ways(place: Path):
    """What is tried above would take effect, were it not kept from it."""
    with World(NOBODY if os.geteuid() == 0 else os.geteuid()) as world:
        ways = tuple(way for way in WAYS if not way.root)
        (place / "agent.py").write_text(program(ways, world))
        again(world.user, "plain", place / "agent.py", place, dict(os.environ))
        changed = world.changed()
    assert {way.name for way in ways} - changed == set()
