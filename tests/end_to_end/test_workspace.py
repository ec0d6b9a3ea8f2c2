"""The files that an agent edited, at each of its steps: as they were, to the byte."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest
from support.long import long
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat
from support.starting.branching import environment, playhead, stored
from support.starting.running import (
    PATIENCE_S,
    push_leftovers,
    receiver,
    run_agent,
    start_agent,
    until,
)

from playhead_checkpoint.workspace.tree import lay
from playhead_core.errors import UsageError
from playhead_replay.workspace.history import WorkspaceHistory
from playhead_replay.workspace.snapshots import snapshots_of

AGENT = "coding.py"
Edit = tuple[str, str, str]

EDITS: list[Edit] = [
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

    def __init__(self, work: Path, edits: Sequence[Edit], thinks: Callable[[int], None]) -> None:
        """``thinks``: called with the number of each request, before it is answered."""
        super().__init__()
        self._edits = edits
        self.seen: list[Files] = []
        self._work = work
        self._thinks = thinks
        self.on("/v1/chat/completions", self._said, repeat=True)

    def _said(self, request: Request) -> Reply:
        what, path, text = self._edits[len(self.seen)]
        self.seen.append(seen_in(self._work))
        self._thinks(len(self.seen))
        said = json.dumps({"what": what, "path": path, "text": text}, ensure_ascii=False)
        return json_reply(openai_chat.completion(said))


def recorded(
    folder: Path,
    level: str,
    workspace: str,
    edits: Sequence[Edit] = EDITS,
    thinks: Callable[[int], None] = lambda number: None,
) -> tuple[list[Files], Mapping[str, str]]:
    """Record the agent; what the folder held when each of its calls was made, and at the end."""
    work = folder / "work"
    make(work)
    with Provider(work, edits, thinks) as provider:
        environ = environment(folder, provider.url, PLAYHEAD_LEVEL=level, PLAYHEAD_WORKSPACE=workspace)
        agent = start_agent(AGENT, str(len(edits)), environ=environ, cwd=work, stdin=subprocess.PIPE)
        if workspace != "off":
            until(lambda: taken_in(folder / "spool"), "the snapshot of the start")
        agent.communicate(b"begin\n", PATIENCE_S)
        assert agent.returncode == 0
        seen = [*provider.seen, seen_in(work)]
    with receiver(folder / "data") as running:
        environ["PLAYHEAD_ENDPOINT"] = running.http_endpoint
        push_leftovers(environ)
    return seen, environ


def visible_to_snapshots(files: Files) -> Files:
    return {
        path: one
        for path, one in files.items()
        if not path.startswith(".git/") and path not in (".git", "other.log")
    }


def laid(history: WorkspaceHistory, number: int, folder: Path) -> Files:
    found = history.after(number)
    lay(found.tree, folder)
    assert found.is_exact, (found.notes, found.inexact)
    files = seen_in(folder)
    shutil.rmtree(folder)
    return files


def taken_in(spool: Path) -> list[bytes]:
    """What a living process has put into its spool of snapshots."""
    segments = [one.read_bytes() for one in spool.rglob("*.tape")]
    return re.findall(rb"playhead\.workspace\.begun_ns", b"".join(segments))


@pytest.mark.parametrize("level", [long("causal"), "strict"])
def test_the_files_at_each_step_are_those_that_there_were(tmp_path: Path, level: str):
    seen, environ = recorded(tmp_path, level, "start")
    with stored(tmp_path, "last") as (run,):
        assert len(run.steps) == len(EDITS)
        history = WorkspaceHistory(run)
        assert [one.label for one in history.snapshots] == ["start", "end"]
        for number in range(len(EDITS) + 1):
            there = laid(history, number, tmp_path / "laid")
            assert there == visible_to_snapshots(seen[number]), f"step {number}"
        start, end = history.snapshots
        # The second snapshot costs what has changed.
        new = [path for path, one in seen[-1].items() if seen[0].get(path) != one]
        assert 0 < end.changed <= 2 * len(new)
        assert end.kept_bytes <= sum(len(seen[-1][path][2]) for path in new)
        assert start.kept_bytes > 10 * end.kept_bytes
    done = playhead("replay", "last", environ=environ, cwd=tmp_path / "work")
    assert done.returncode == 0, done.stderr + done.stdout


def test_without_files_on_the_tape_snapshots_of_steps_are_the_answer(tmp_path: Path):
    def thinks(number: int) -> None:
        """For as long as it takes to look at the folder once more."""
        spool = tmp_path / "spool"
        until(lambda: len(taken_in(spool)) > number, f"snapshot {number}")

    # A child process asks for a snapshot of its own.
    edits = [one for one in EDITS if one[0] != "shell"]
    seen, environ = recorded(tmp_path, "exchanges", "steps", edits, thinks)
    with stored(tmp_path, "last") as (run,):
        history = WorkspaceHistory(run)
        labels = [one.label for one in history.snapshots]
        assert labels == ["start", *["step"] * len(edits), "end"]
        for number in range(len(edits) + 1):
            lay(history.after(number).tree, tmp_path / "laid")
            assert seen_in(tmp_path / "laid") == visible_to_snapshots(seen[number]), f"step {number}"
            shutil.rmtree(tmp_path / "laid")
        # What the snapshots cost together is what the edits wrote, not the folder times their number.
        first, *others = history.snapshots
        assert sum(one.kept_bytes for one in others) < first.kept_bytes / 5
    told = playhead("workspace", "last:3", environ=environ, cwd=tmp_path).stdout
    assert "level exchanges records no file changes: this is the snapshot 'step'" in told


def test_nothing_is_made_up_where_nothing_was_recorded(tmp_path: Path):
    _, environ = recorded(tmp_path, "exchanges", "off")
    done = playhead("workspace", environ=environ, cwd=tmp_path)
    assert done.returncode == 2
    assert "was recorded without file changes and without snapshots" in done.stderr


def test_without_snapshots_the_tape_tells_of_what_was_touched(tmp_path: Path):
    seen, environ = recorded(tmp_path, "causal", "off")
    with stored(tmp_path, "last") as (run,):
        found = WorkspaceHistory(run).after(len(EDITS))
    assert found.notes[0].startswith("no file snapshots for this run")
    lay(found.tree, tmp_path / "laid")
    there = seen_in(tmp_path / "laid")
    for path in ("src/app.py", "log.txt", "manual/page.md", "src/größe.py"):
        assert there[path] == seen[-1][path]
    assert "src/lib_9.py" not in there
    assert playhead("workspace", environ=environ, cwd=tmp_path).returncode == 0


def test_the_command_shows_compares_and_restores(tmp_path: Path):
    seen, environ = recorded(tmp_path, "causal", "start")
    shown = playhead("workspace", "last:1", environ=environ, cwd=tmp_path)
    assert shown.stdout.startswith("coding-1, step 1: ")
    assert "src/app.py" in shown.stdout and "new/" not in shown.stdout
    changes = playhead("workspace", "--at", "5", "--diff", "0", environ=environ, cwd=tmp_path)
    assert changes.stdout.splitlines() == [
        "coding-1, from the start to step 5: 4 changes",
        "A new/",
        "A new/deep/",
        "A new/deep/module.py",
        "  @@ -0,0 +1 @@",
        "  +answer = 1",
        "A src/app.py",
        "  @@ -0,0 +1,2 @@",
        "  +print('one')",
        "  +print('two')",
    ]
    to = playhead("workspace", "--at", "11", "--to", "there", "--json", environ=environ, cwd=tmp_path)
    printed = json.loads(to.stdout)
    assert (printed["step"], printed["exact"], printed["missing"]) == (11, True, [])
    assert seen_in(tmp_path / "there") == visible_to_snapshots(seen[11])
    again = playhead("workspace", "--to", "there", environ=environ, cwd=tmp_path)
    assert again.returncode == 2 and "there is not empty" in again.stderr


TAKES = """
from playhead_instrumentation.session.session import current
while (taking := current().snapshots) and taking._asked:
    pass
"""
"""For a program: go on when its thread has begun with the snapshot that was asked for last."""


def test_what_the_program_asks_for_is_taken_and_nothing_is_loaded_where_it_is_off(tmp_path: Path):
    (tmp_path / "agent.py").write_text(
        f"""
import sys, playhead
open("a.txt", "w").write("one")
playhead.workspace("after one")
{TAKES}
print(*sorted(one for one in sys.modules if one.startswith(("playhead_checkpoint", "pathspec"))))
print("playhead_instrumentation.session.snapshots" in sys.modules)
"""
    )
    environ = environment(tmp_path, "http://127.0.0.1:9")
    del environ["PLAYHEAD_ENDPOINT"]
    done = playhead("record", "agent.py", environ=environ, cwd=tmp_path)
    assert done.stdout == "\nFalse\n", done.stderr
    (tmp_path / "work").mkdir()
    shutil.move(tmp_path / "agent.py", tmp_path / "work")
    environ["PLAYHEAD_WORKSPACE"] = "start"
    done = playhead("record", "agent.py", environ=environ, cwd=tmp_path / "work")
    assert done.stdout.endswith("True\n"), done.stderr
    with stored(tmp_path, "last") as (run,):
        taken = WorkspaceHistory(run).snapshots
    assert {one.label for one in taken} >= {"end"}
    assert taken[-1].tree["a.txt"].entry.size == 3


def test_a_fork_knows_its_files_from_where_it_went_live(tmp_path: Path):
    work = tmp_path / "work"
    make(work)
    with Provider(work, EDITS * 2, lambda number: None) as provider:
        environ = environment(
            tmp_path, provider.url, PLAYHEAD_LEVEL="causal", PLAYHEAD_WORKSPACE="start"
        )
        run_agent(AGENT, "6", environ=environ, cwd=work)
        del environ["PLAYHEAD_ENDPOINT"]
        edited = json.dumps({"what": "write", "path": "forked.txt", "text": "by the fork"})
        edit = f"response.choices[0].message.content={json.dumps(edited)}"
        done = playhead("fork", "last:5", "--edit", edit, environ=environ, cwd=work)
        assert done.returncode == 0, done.stderr
    with stored(tmp_path, "last", "last-1") as (fork, origin):
        history = WorkspaceHistory(fork)
        there = history.after(6).tree
        assert there["forked.txt"].content is not None
        assert there["forked.txt"].content() == b"by the fork"
        before = WorkspaceHistory(origin).after(4).tree.keys() - {"src/lib_3.py"}
        assert before | {"forked.txt", "src/renamed.py"} == there.keys()
        with pytest.raises(UsageError, match="replayed its beginning from another run"):
            history.after(2)
    golden = playhead("golden", "add", "last-1", "--name", "it", environ=environ, cwd=tmp_path)
    assert golden.returncode == 0, golden.stderr
    (kept,) = tmp_path.rglob("it.tape")
    assert "playhead.workspace" not in kept.read_text()


def test_a_child_of_the_program_takes_no_snapshots_of_its_own(tmp_path: Path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "child.py").write_text("print('child')")
    (work / "agent.py").write_text(
        TAKES + "import subprocess, sys; subprocess.run([sys.executable, 'child.py'], check=True)"
    )
    environ = environment(tmp_path, "http://127.0.0.1:9", PLAYHEAD_WORKSPACE="start")
    del environ["PLAYHEAD_ENDPOINT"]
    done = playhead("record", "agent.py", environ=environ, cwd=work)
    assert done.returncode == 0, done.stderr
    with stored(tmp_path, "last") as (run,):
        assert len(run.tapes) == 2
        assert [len(snapshots_of(tape)) for tape in run.tapes] == [2, 0]
