"""A run recorded in one place replays identical in another: path, virtual environment, user."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

NOBODY = 65534

AGENT = """
import json, os, sys, traceback
from pathlib import Path
import asking, planner

here = Path(__file__).resolve().parent
question = f"I work in {os.getcwd()}\\n{here}/notes.txt\\nand run {sys.prefix}: " + planner.PLAN
print(asking.asked(question))
assert os.getuid() in (int(sys.argv[2]), 65534)
print("my home is", Path.home(), "my script", sys.argv[1])
try:
    json.loads("{")
except Exception:
    traceback.print_exc()
raise SystemExit(f"no plan in {os.getcwd()}")
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


def at_home(folder: Path, provider: Mapping[str, str]) -> Home:
    """A user whose home is ``folder``, with the program in it."""
    home = Home(folder, provider)
    for environ in (home.bare, home.environ):
        environ["HOME"] = str(folder)
    return home


def environment_of_its_own(folder: Path) -> Path:
    """A virtual environment that has what this one has."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    lines = "\n".join(f"import site; site.addsitedir({path!r})" for path in site.getsitepackages())
    (packages / "all.pth").write_text(lines)
    return folder / "bin" / "python"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "first" / "agent"
    folder.mkdir(parents=True)
    (folder / "agent.py").write_text(AGENT)
    (folder / "asking.py").write_text(ASKING)
    (folder / "planner.py").write_text("PLAN = 'what do I pack?'\n")
    return folder


@pytest.fixture
def tape(project: Path, provider: Provider, tmp_path: Path) -> Path:
    """The run in a file, its provider and its place gone."""
    home = at_home(tmp_path / "first", provider.environment)
    python = environment_of_its_own(tmp_path / "first" / "venv")
    words = ("record", "--python", python, project / "agent.py", project / "notes.txt", str(os.getuid()))
    done = home.playhead(*words, cwd=project)
    assert done.returncode == 1, done.stderr
    assert f"no plan in {project}" in done.stderr
    path = tmp_path / "run.tape"
    exported = home.playhead("export", "-o", path)
    assert exported.returncode == 0, exported.stderr
    other = tmp_path / "second" / "somewhere"
    other.parent.mkdir()
    shutil.copytree(project, other)
    shutil.rmtree(tmp_path / "first")
    provider.close()
    return path


def test_another_path_environment_and_home(tape: Path, tmp_path: Path):
    home = at_home(tmp_path / "second", {})
    python = environment_of_its_own(tmp_path / "second" / "venv")
    where = tmp_path / "second" / "somewhere"
    status, report = home.report(tape, "--trust", "--python", python, "--cwd", where)
    assert report["divergences"] == []
    assert (status, report["verdict"]) == (0, "identical")
    assert report["outputs"]["stderr"]["tape"] == report["outputs"]["stderr"]["now"] != "0 bytes"
    # and as an imported run, named by the store there
    assert home.playhead("import", tape).returncode == 0
    assert home.report("agent-1", "--trust", "--python", python, "--cwd", where)[0] == 0


def as_somebody_else() -> list[str]:
    """Words before a command that make it another user's: of the system, else of a namespace."""
    changed = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"]
    mapped = ["unshare", "--user", f"--map-user={NOBODY}", f"--map-group={NOBODY}"]
    inner = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', '']))"
    for words in (changed, mapped) if os.geteuid() == 0 else (mapped,):
        # Python itself may lie where only its owner comes.
        done = subprocess.run([*words, sys.executable, "-c", inner], capture_output=True)
        if done.returncode == 0:
            return words
    pytest.fail("neither setpriv nor unshare can make another user here")


def test_another_user(tape: Path, tmp_path: Path):
    home = at_home(tmp_path / "second", {})
    prefix = as_somebody_else()
    opened: list[tuple[Path, int]] = []
    if prefix[0] == "setpriv":
        for folder in (tmp_path, *tmp_path.rglob("*")):
            os.chown(folder, NOBODY, NOBODY)
        for folder in tmp_path.parents:  # pytest's own folders are for their owner only
            mode = folder.stat().st_mode & 0o777
            if not mode & 0o001:
                opened.append((folder, mode))
                folder.chmod(mode | 0o011)
    try:
        words = home.words("replay", tape, "--trust", "--cwd", tmp_path / "second" / "somewhere")
        environ = {**home.bare, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [*prefix, *words], env=environ, cwd=tmp_path, capture_output=True, text=True
        )
    finally:
        for folder, mode in opened:
            folder.chmod(mode)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "identical (exit 0)" in done.stdout


def test_what_is_different_is_said_before_it_starts(tape: Path, tmp_path: Path):
    home = at_home(tmp_path / "second", {})
    where = tmp_path / "second" / "somewhere"
    (where / "planner.py").write_text("PLAN = 'what do I pack now?'\n")
    done = home.playhead("replay", tape, "--trust", "--cwd", where, env=home.bare)
    assert done.returncode == 3
    said = [line for line in done.stderr.splitlines() if str(where) in line]
    assert said[0].startswith(f"playhead: {where}/planner.py has changed (tape ")
    assert "playhead: command: python " in done.stderr
    assert "note: " + said[0].removeprefix("playhead: ") in done.stdout
    (where / "planner.py").unlink()
    gone = home.playhead("replay", tape, "--trust", "--cwd", where, env=home.bare)
    assert f"playhead: {where}/planner.py is not here" in gone.stderr
