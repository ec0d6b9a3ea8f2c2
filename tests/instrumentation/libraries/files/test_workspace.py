"""What a child did to the workspace, and the same done to another folder."""

import os
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from playhead_core.settings import Settings
from playhead_exporter.spool.folders import default_spool
from playhead_instrumentation.libraries.files import workspace as workspaces
from playhead_instrumentation.libraries.files.changes import Change
from playhead_instrumentation.libraries.files.workspace import Look, Names, Workspace
from playhead_instrumentation.session.environment import own_folders
from playhead_receiver.system.defaults import data_dir


@pytest.fixture(autouse=True)
def no_hurry():
    """No look ends by time, however busy the machine is, but in the tests of that."""
    with pytest.MonkeyPatch.context() as limits:
        limits.setattr(workspaces, "LOOK_S", 60.0)
        limits.setattr(workspaces, "CHANGED_S", 60.0)
        yield


def tree(folder: Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        mode = path.lstat().st_mode & 0o777
        if path.is_symlink():
            found[name] = os.readlink(path)
        elif path.is_dir():
            found[name] = mode
        else:
            found[name] = mode, path.read_bytes(), path.stat().st_mtime_ns
    return found


def filled(folder: Path) -> Path:
    (folder / "sub" / "deep").mkdir(parents=True)
    (folder / "a.txt").write_text("one\ntwo\n")
    (folder / "sub" / "b.txt").write_text("b")
    (folder / "sub" / "deep" / "c.txt").write_text("c")
    (folder / "link").symlink_to("a.txt")
    return folder


SCRIPT = """
sed -i s/two/three/ a.txt
mkdir -p made/within && echo x > made/within/x.txt
rm -r sub/deep
mv sub/b.txt b.txt
chmod 600 b.txt && chmod 700 sub
ln -sfn sub link
ln -s nowhere dangling
"""


def test_what_a_child_did_is_done_again_elsewhere(tmp_path: Path):
    here, there = (tmp_path / name for name in ("here", "there"))
    for folder in (here, there):
        filled(folder)
    workspace = Workspace(Names(str(here), ""), [str(here)])
    before = workspace.look()
    subprocess.run(["sh", "-c", SCRIPT], cwd=here, check=True)
    changes = workspace.changes(before)
    assert [(one.path, one.what) for one in changes] == [
        ("./sub/deep/c.txt", "deleted"),
        ("./sub/deep", "deleted"),
        ("./sub/b.txt", "deleted"),
        ("./a.txt", "written"),
        ("./b.txt", "written"),
        ("./dangling", "link"),
        ("./link", "link"),
        ("./made", "folder"),
        ("./made/within", "folder"),
        ("./made/within/x.txt", "written"),
        ("./sub", "mode"),
    ]
    carried = msgspec.msgpack.decode(msgspec.msgpack.encode(changes), type=list[Change])
    assert carried == changes
    touched: list[str] = []
    Workspace(Names(str(there), ""), changed=touched.append).apply(carried)
    assert tree(there) == tree(here)
    assert touched[0] == str(there / "sub/deep/c.txt")


def test_nothing_happened(tmp_path: Path):
    workspace = Workspace(Names(str(tmp_path), ""), [str(filled(tmp_path / "x"))])
    assert workspace.changes(workspace.look()) == []


def test_into_an_overlay_that_is_empty(tmp_path: Path):
    here, scratch = filled(tmp_path / "here"), tmp_path / "scratch"
    workspace = Workspace(Names(str(here), ""), [str(here)])
    before = workspace.look()
    (here / "sub" / "new.txt").write_text("new")
    (here / "a.txt").unlink()
    changes = workspace.changes(before)
    overlay = Workspace(Names(str(here), ""), place=lambda path: f"{scratch}{path}")
    overlay.apply(changes)
    placed = Path(overlay.place(str(here)))
    assert tree(placed) == {"sub": 0o755, "sub/new.txt": tree(here)["sub/new.txt"]}
    assert not (here / "a.txt").exists()


def test_a_file_over_the_limit_has_its_digest_alone(tmp_path: Path):
    workspace = Workspace(Names(str(tmp_path), ""), [str(tmp_path)], limit_bytes=3)
    before = workspace.look()
    (tmp_path / "large").write_bytes(b"large")
    (change,) = workspace.changes(before)
    assert (change.data, change.size, len(change.digest)) == (None, 5, 32)


def test_the_folders_of_machines_are_left_out_and_what_the_run_wrote_elsewhere_is_not(tmp_path: Path):
    cwd, outside = tmp_path / "cwd", tmp_path / "outside"
    for folder in (cwd / ".venv" / "lib", cwd / "node_modules" / "x", outside):
        folder.mkdir(parents=True)
    workspace = Workspace(Names(str(cwd), ""), [str(cwd)])
    workspace.wrote(str(outside / "mine"))
    before = workspace.look()
    (cwd / ".venv" / "lib" / "new.py").touch()
    (cwd / "node_modules" / "x" / "new.js").touch()
    (outside / "mine").write_text("mine")
    (outside / "other").write_text("other")
    assert [one.path for one in workspace.changes(before)] == [str(outside / "mine")]


def test_what_playhead_itself_writes_below_the_folder_of_the_run_is_no_childs(tmp_path: Path):
    settings = Settings(data_dir=str(tmp_path / "own" / "data"), spool_dir="here/spool")
    hidden = own_folders(settings)
    assert hidden == [str(tmp_path / "own" / "data"), os.path.abspath("here/spool")]
    workspace = Workspace(Names(str(tmp_path), ""), [str(tmp_path)], hidden=hidden)
    (tmp_path / "own" / "data").mkdir(parents=True)
    before = workspace.before()
    (tmp_path / "own" / "data" / "store.sqlite").touch()
    (tmp_path / "own" / "mine").touch()
    assert [one.path for one in workspace.changes(before)] == ["./own/mine"]
    workspace.wrote(str(tmp_path / "own" / "data"))
    assert str(tmp_path / "own" / "data") not in workspace.before().folders


def test_by_default_playhead_writes_to_the_home_of_the_user(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    data, state = own_folders(Settings())
    assert Path(data) == data_dir(Settings())
    assert Path(state) == default_spool().parent


def test_the_look_after_one_child_is_the_look_before_the_next(tmp_path: Path, monkeypatch: Any):
    workspace = Workspace(Names(str(tmp_path), ""), [str(tmp_path)])
    for name in ("kept", "gone", "folder"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.txt").write_text("a")
    before = workspace.before()
    (tmp_path / "by-child").write_text("1")
    assert [one.path for one in workspace.changes(before)] == ["./by-child"]

    def again(**_: Any) -> Any:
        raise AssertionError("looked at everything again")

    monkeypatch.setattr(workspace, "look", again)
    shutil.rmtree(tmp_path / "gone")
    os.rename(tmp_path / "folder", tmp_path / "renamed")
    (tmp_path / "new" / "deep").mkdir(parents=True)
    (tmp_path / "new" / "deep" / "b.txt").write_text("b")
    (tmp_path / "kept" / "a.txt").write_text("more")
    workspace.touched(*(str(tmp_path / name) for name in ("gone", "folder", "renamed", "kept/a.txt")))
    workspace.wrote(str(tmp_path / "new"))
    before = workspace.before()
    monkeypatch.undo()
    assert before.folders == workspace.look().folders | {
        "": before.folders[""],
        str(tmp_path): before.folders[str(tmp_path)],
    }
    assert workspace.changes(before) == []
    os.remove(tmp_path / "new" / "deep" / "b.txt")
    (tmp_path / "kept" / "a.txt").write_text("by a child")
    found = [(one.path, one.what) for one in workspace.changes(before)]
    assert found == [("./new/deep/b.txt", "deleted"), ("./kept/a.txt", "written")]


def test_of_too_many_files_those_near_the_root_are_looked_at(tmp_path: Path):
    for number in range(8):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "deep").touch()
    look = Workspace(Names(str(tmp_path), ""), [str(tmp_path)], most=9).look()
    assert look.unlooked == "entries"
    assert {Path(path).name for path in look.paths()} == {tmp_path.name, *map(str, range(8))}


@pytest.mark.parametrize(
    "path, name",
    [("/r/x", "./x"), ("/r", "."), ("/rx", "/rx"), ("/h/a/b", "~/a/b"), ("/etc/hosts", "/etc/hosts")],
)
def test_names_of_paths(path: str, name: str):
    names = Names("/r", "/h")
    assert (names.short(path), names.long(name)) == (name, path)


@pytest.mark.parametrize("folder", ["/", "/usr", "/tmp", "/proc/self", "home"])
def test_folders_of_the_system_are_not_looked_at(folder: str, tmp_path: Path, monkeypatch: Any):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    folder = {"home": str(tmp_path / "home")}.get(folder, folder)
    workspace = Workspace(Names(folder, ""), [folder])
    workspace.wrote(folder)
    assert workspace.before() == Look({"": {}}, "folder")
    (tmp_path / "home" / "agent").mkdir(parents=True)
    below = str(tmp_path / "home" / "agent")
    assert Workspace(Names(below, ""), [below]).look().unlooked == ""


def test_what_was_not_looked_at_counts_as_unchanged(tmp_path: Path):
    for number in range(8):
        (tmp_path / f"{number}").mkdir()
        (tmp_path / f"{number}" / "deep").touch()
    workspace = Workspace(Names(str(tmp_path), ""), [str(tmp_path)], most=9)
    before = workspace.before()
    shutil.rmtree(tmp_path / "0")
    (tmp_path / "1" / "deep").write_text("changed")
    (tmp_path / "new" / "within").mkdir(parents=True)
    changes, unlooked = workspace.compared(before)
    assert [(one.path, one.what) for one in changes] == [("./0", "deleted"), ("./new", "folder")]
    assert unlooked == "entries"
    more = Workspace(Names(str(tmp_path), ""), [str(tmp_path)], most=1000)
    changes, unlooked = more.compared(before)
    found = [("./0", "deleted"), ("./new", "folder"), ("./new/within", "folder")]
    assert [(one.path, one.what) for one in changes] == found


def test_a_look_ends_when_its_time_is_over(tmp_path: Path, monkeypatch: Any):
    filled(tmp_path)
    monkeypatch.setattr(workspaces, "LOOK_S", -1.0)
    workspace = Workspace(Names(str(tmp_path), ""), [str(tmp_path)])
    before = workspace.before()
    assert (before.unlooked, list(before.folders)) == ("time", [""])
    (tmp_path / "made").touch()
    assert workspace.compared(before) == ([], "time")


@pytest.mark.parametrize("bound, name", [("CHANGED_BYTES", "bytes"), ("CHANGED_S", "time")])
def test_much_that_a_child_has_written_is_not_read(
    bound: str, name: str, tmp_path: Path, monkeypatch: Any
):
    monkeypatch.setattr(workspaces, bound, 5 if bound == "CHANGED_BYTES" else -1)
    workspace = Workspace(Names(str(tmp_path), ""), [str(tmp_path)])
    before = workspace.before()
    (tmp_path / "large").write_bytes(b"larger")
    ((change,), unlooked) = workspace.compared(before)
    assert (change.data, change.digest, change.size, unlooked) == (None, b"", 6, name)


def test_a_link_on_the_tape_does_not_lead_a_database_outside(tmp_path: Path):
    outside, here = tmp_path / "outside.db", tmp_path / "here"
    here.mkdir()
    for path in (outside, tmp_path / "evil.db"):
        with closing(sqlite3.connect(path)) as base:
            base.execute(f"create table {path.stem} (x)")
    before, evil = outside.read_bytes(), (tmp_path / "evil.db").read_bytes()
    laid = Workspace(Names("/run", ""), place=lambda path: f"{here}{path}")
    laid.is_database = lambda path: True
    laid.apply(
        [
            Change("./app.db", "link", 0o777, str(outside).encode()),
            Change("./app.db", "written", 0o600, evil),
        ]
    )
    assert outside.read_bytes() == before
    assert (here / "run" / "app.db").read_bytes() == evil
