"""An agent edits files through `sed`, git and Python, reads them back, and replays identical."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.observed.asking import ASKING
from support.starting.home import Home

from playhead_cli.demo.provider import Provider

AGENT = f"""
import subprocess
from pathlib import Path
{ASKING}
def said(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout

notes, code = Path("notes.txt"), Path("src/app.py")
reply = asked("Change this: " + code.read_text())
notes.write_text("first line\\n" + reply + "\\n")
print(said("sed", "-n", "1p", "notes.txt"), end="")
said("sed", "-i", "s/first/second/; $a by sed", "notes.txt")
print(notes.read_text())
code.write_text(code.read_text().replace("port = 80", "port = 8080"))
said("sed", "-i", "s/8080/9090/", str(code))
print(code.read_text(), code.stat().st_size)
with notes.open("a") as file:
    file.write("by Python\\n")
said("git", "add", "-A")
said("git", "commit", "-q", "-m", "changed by an agent")
print(said("git", "log", "--format=%s"), said("git", "status", "--short"))
head = Path(".git/HEAD").read_text().split()[1]
commit = Path(".git", head).read_text().strip()
print(commit, said("git", "show", "--stat", "--format=%H"))
code.rename("src/main.py")
subprocess.run("mkdir -p build && cp src/main.py build/ && rm src/main.py && rm old.txt", shell=True)
print(sorted(str(one) for one in Path(".").rglob("*") if ".git" not in one.parts))
print(Path("build/main.py").read_text(), Path("old.txt").exists(), notes.read_text())
said("git", "commit", "-q", "-a", "-m", "moved")
print(Path(".git", head).read_text() != commit, said("git", "log", "--format=%s"))
print(asked("Done: " + notes.read_text() + commit))
"""


@pytest.fixture
def provider() -> Iterator[Provider]:
    with Provider(pace_s=0.002) as provider:
        yield provider


def tree(folder: Path) -> dict[str, tuple[int, int, str]]:
    """Everything in a folder: mode, time of the last change, digest."""
    found: dict[str, tuple[int, int, str]] = {}
    for path in sorted(folder.rglob("*")):
        at = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        digest = hashlib.sha256(content).hexdigest()
        found[str(path.relative_to(folder))] = at.st_mode, at.st_mtime_ns, digest
    return found


def repository(folder: Path) -> Path:
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("host = 'here'\nport = 80\n")
    (folder / "old.txt").write_text("old\n")
    (folder / "agent.py").write_text(AGENT)
    for words in (
        ["init", "-q"],
        ["config", "user.name", "agent"],
        ["config", "user.email", "agent@example.org"],
        ["config", "maintenance.auto", "false"],  # nothing is done after a command has ended
        ["add", "-A"],
        ["commit", "-q", "-m", "first"],
    ):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize("level", [pytest.param("causal", marks=pytest.mark.acceptance), "strict"])
def test_edited_files(provider: Provider, tmp_path: Path, level: str):
    folder = repository(tmp_path / "work")
    home = Home(tmp_path / "home", {**provider.environment, "PYTHONDONTWRITEBYTECODE": "1"})
    home.folder.mkdir()
    done = home.playhead("record", "--level", level, "agent.py", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "port = 9090" in done.stdout and "moved\nchanged by an agent\nfirst" in done.stdout
    after = tree(folder)
    assert "old.txt" not in after
    provider.close()
    for _ in range(2):
        status, report = home.report("agent-1")
        assert report["divergences"] == []
        assert (status, report["verdict"]) == (0, "identical")
        assert report["boundaries"]["process"]["exact"] == 11
        assert tree(folder) == after
    # The agent's work is not there, and neither is its repository: the same all the same.
    subprocess.run(["git", "reset", "-q", "--hard", "HEAD~2"], cwd=folder, check=True)
    before = tree(folder)
    status, report = home.report("agent-1")
    assert (status, report["verdict"]) == (0, "identical")
    assert tree(folder) == before
    assert os.listdir(folder / "src") == ["app.py"]
