"""The files that an agent edited, at each of its steps: as they were, to the byte."""

from __future__ import annotations

import json
import os
import shutil
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.branching import environment, playhead, stored
from support.running import AGENTS
from support.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat

from playhead_checkpoint.workspace.tree import lay, tree_difference
from playhead_replay import Run
from playhead_replay.workspace.at import WorkspaceHistory

AGENT = "coding.py"
EDITS = [
    ("write", "src/app.py", "print('one')\n"),
    ("append", "src/app.py", "print('two')\n"),
    ("write", "new/deep/module.py", "value = 1\n"),
    ("patch", "new/deep/module.py", "answer"),
    ("mode", "src/app.py", "755"),
    ("replace", "README.md", "# all new\n"),
    ("rename", "src/lib_3.py", "src/renamed.py"),
    ("remove", "src/lib_4.py", ""),
    ("link", "latest", "src/app.py"),
    ("shell", "", "printf by-a-child >> README.md; mkdir -p built; cp src/app.py built/"),
    ("copy", "data/image.bin", "data/copy.bin"),
    ("tree", "new", ""),
    ("append", "log.txt", "one line\n"),
    ("append", "log.txt", "and another\n"),
    ("write", "empty.txt", ""),
    ("rename", "docs", "manual"),
    ("patch", "manual/page.md", "content"),
    ("shell", "", "rm src/lib_5.py; chmod 600 README.md"),
    ("write", "ignored/cache.txt", "not in a snapshot\n"),
    ("write", "src/größe.py", "value = 'ü'\n"),
    ("remove", "latest", ""),
    ("write", "src/lib_6.py", "rewritten\n" * 200),
    ("append", "src/lib_6.py", "tail\n"),
    ("mode", "src/lib_6.py", "640"),
    ("rename", "src/lib_6.py", "src/lib_7.py"),
    ("write", "src/lib_6.py", "another\n"),
    ("shell", "", "mv src/lib_8.py src/moved.py"),
    ("replace", "src/app.py", "print('three')\n"),
    ("remove", "empty.txt", ""),
    ("append", "README.md", "the end\n"),
]

Files = dict[str, tuple[str, int, bytes]]
"""Kind, permissions and content by path."""


def seen_in(folder: Path, *, ignored: bool = False) -> Files:
    found: Files = {}
    for where, folders, files in os.walk(folder):
        if not ignored and "ignored" in folders:
            folders.remove("ignored")
        for name in (*folders, *files):
            path = Path(where, name)
            seen = path.lstat()
            mode = stat.S_IMODE(seen.st_mode)
            if path.is_symlink():
                found[str(path.relative_to(folder))] = "link", 0, os.readlink(path).encode()
            elif path.is_dir():
                found[str(path.relative_to(folder))] = "folder", mode, b""
            else:
                found[str(path.relative_to(folder))] = "file", mode, path.read_bytes()
    return found


def make(work: Path) -> None:
    """A repository of some 60 files."""
    for folder in ("src", "docs", "data", "ignored", ".git"):
        (work / folder).mkdir(parents=True)
    (work / ".gitignore").write_text("ignored/\n*.log\n!keep.log\n")
    (work / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (work / "README.md").write_text("# old\n")
    (work / "keep.log").write_text("kept\n")
    (work / "other.log").write_text("left out\n")
    (work / "ignored" / "secret.txt").write_text("left out\n")
    (work / "docs" / "page.md").write_text("value\n")
    (work / "data" / "image.bin").write_bytes(bytes(range(256)) * 200)
    (work / "data" / "run.sh").write_text("#!/bin/sh\n")
    (work / "data" / "run.sh").chmod(0o755)
    for number in range(50):
        (work / "src" / f"lib_{number}.py").write_text(f"value = {number}\n" * 40)


class Provider(ScriptedServer):
    """Says what to edit, and looks at the folder each time that it is asked."""

    def __init__(self, work: Path) -> None:
        super().__init__()
        self.seen: list[Files] = []
        self._work = work
        self.on("/v1/chat/completions", self._said, repeat=True)

    def _said(self, request: Request) -> Reply:
        what, path, text = EDITS[len(self.seen)]
        self.seen.append(seen_in(self._work))
        said = json.dumps({"what": what, "path": path, "text": text}, ensure_ascii=False)
        return json_reply(openai_chat.completion(said))


def recorded(folder: Path, level: str, workspace: str) -> tuple[list[Files], Mapping[str, str]]:
    """Record the agent; what the folder held when each of its calls was made, and at the end."""
    work = folder / "work"
    make(work)
    with Provider(work) as provider:
        environ = environment(folder, provider.url, PLAYHEAD_LEVEL=level, PLAYHEAD_WORKSPACE=workspace)
        del environ["PLAYHEAD_ENDPOINT"]
        done = playhead("record", str(AGENTS / AGENT), str(len(EDITS)), environ=environ, cwd=work)
        assert done.returncode == 0, done.stderr
        return [*provider.seen, seen_in(work)], environ


def visible_to_snapshots(files: Files) -> Files:
    return {
        path: one
        for path, one in files.items()
        if not path.startswith(".git/") and path not in (".git", "other.log")
    }


def laid(history: WorkspaceHistory, run: Run, number: int, folder: Path) -> Files:
    step = run.step(number)
    found = history.at(run.ended_ns or 0) if step is None else history.after(step)
    lay(found.tree, folder)
    assert found.is_exact, (found.notes, found.inexact)
    files = seen_in(folder)
    shutil.rmtree(folder)
    return files


@pytest.mark.parametrize("level", ["causal", "strict"])
def test_the_files_at_each_step_are_those_that_there_were(tmp_path: Path, level: str):
    seen, environ = recorded(tmp_path, level, "start")
    with stored(tmp_path, "last") as (run,):
        assert len(run.steps) == len(EDITS)
        history = WorkspaceHistory(run)
        assert [one.label for one in history.snapshots] == ["start", "end"]
        for number in range(1, len(EDITS) + 2):
            there = laid(history, run, number, tmp_path / "laid")
            assert there == visible_to_snapshots(seen[number - 1]), f"step {number}"
