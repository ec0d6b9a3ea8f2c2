"""Snapshots of a folder: what is taken, what it costs, and that it is laid out as it was."""

import fcntl
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from playhead_checkpoint.workspace import open_workspace
from playhead_checkpoint.workspace import taking as taking_module
from playhead_checkpoint.workspace.reading import signature_of
from playhead_checkpoint.workspace.tree import changed, lay, tree_difference
from playhead_core.errors import UsageError
from playhead_core.facts import digest_of
from playhead_core.workspace import FolderEntry, SnapshotChanges, decode_changes, encode_changes

LIMIT = 1 << 20


class Kept:
    """Contents by digest, and what was asked for."""

    def __init__(self) -> None:
        self.by_digest: dict[bytes, bytes] = {}
        self.asked: list[bytes] = []

    def __call__(self, data: bytes) -> tuple[bytes, int, int]:
        self.asked.append(data)
        self.by_digest[digest_of(data)] = data
        return digest_of(data), len(data), 0

    def read(self, entry: FolderEntry) -> bytes:
        return self.by_digest[entry.digest]


class Taker:
    """Takes snapshots of a folder and folds them, as a reader of the tape does."""

    def __init__(self, folder: Path, *hidden: Path, limit: int = LIMIT) -> None:
        self.kept = Kept()
        self.tree = {}
        self.left_out: list[str] = []
        self.changes = SnapshotChanges([], [])
        self._workspace = open_workspace(str(folder), [str(one) for one in hidden], limit)

    def take(self, is_over=lambda: False) -> dict[str, str]:
        """Kind by path, after one more snapshot."""
        self.kept.asked.clear()
        taken = self._workspace.take(self.kept, is_over)
        self.changes = decode_changes(encode_changes(taken.changes))
        self.tree = changed(self.tree, self.changes, self.kept.read)
        self.left_out = list(taken.left_out)
        assert taken.files == len(self.tree)
        return {path: item.entry.kind for path, item in self.tree.items()}


@pytest.fixture(autouse=True)
def settles(monkeypatch):
    """Files of tests are young, and count as settled all the same."""
    monkeypatch.setattr(taking_module, "SETTLED_NS", -(1 << 62))


@pytest.fixture
def work(tmp_path):
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "app.py").write_text("print(1)\n")
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o750)
    return folder


def rewritten(path: Path, text: str) -> None:
    """Write it, until the clock of the file system shows that: it may stand still for milliseconds."""
    before = signature_of(path.stat())
    while signature_of(path.stat()) == before:
        path.write_text(text)


def test_what_did_not_change_is_not_read_again(work):
    taker = Taker(work)
    assert taker.take() == {"run.sh": "file", "src": "folder", "src/app.py": "file"}
    assert len(taker.kept.asked) == 2
    taker.take()
    assert (taker.kept.asked, taker.changes) == ([], SnapshotChanges([], []))
    rewritten(work / "src" / "app.py", "print(2)\n")
    taker.take()
    assert taker.kept.asked == [b"print(2)\n"]
    assert [one.path for one in taker.changes.entries] == ["src/app.py"]


def test_a_change_within_the_grain_of_the_clock_is_seen(work, monkeypatch):
    monkeypatch.setattr(taking_module, "SETTLED_NS", 1 << 62)
    taker = Taker(work)
    taker.take()
    path = work / "src" / "app.py"
    seen = path.stat()
    path.write_text("print(3)\n")
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    taker.take()
    assert taker.tree["src/app.py"].content() == b"print(3)\n"


def test_what_went_and_what_was_renamed(work):
    taker = Taker(work)
    taker.take()
    (work / "run.sh").unlink()
    (work / "src").rename(work / "lib")
    assert taker.take() == {"lib": "folder", "lib/app.py": "file"}
    assert set(taker.changes.gone) == {"run.sh", "src", "src/app.py"}


def test_a_snapshot_is_laid_out_as_it_was(work, tmp_path):
    (work / "link").symlink_to("src/app.py")
    (work / "outside").symlink_to("/etc")
    (work / "empty").mkdir(mode=0o700)
    (work / "src" / "größe 1").write_bytes(bytes(range(256)))
    taker = Taker(work)
    taker.take()
    laid = lay(taker.tree, tmp_path / "laid")
    assert (laid.files, laid.missing) == (5, ())
    again = Taker(tmp_path / "laid")
    again.take()
    assert tree_difference(taker.tree, again.tree) == []
    assert (tmp_path / "laid" / "run.sh").stat().st_mode & 0o7777 == 0o750
    assert (tmp_path / "laid" / "run.sh").stat().st_mtime_ns == (work / "run.sh").stat().st_mtime_ns
    assert os.readlink(tmp_path / "laid" / "outside") == "/etc"
    assert (tmp_path / "laid" / "empty").stat().st_mode & 0o7777 == 0o700


def test_links_and_special_files_are_not_followed(work, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("not ours")
    (work / "leads-out").symlink_to(tmp_path / "secret")
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(work / "socket"))
        taker = Taker(work)
        found = taker.take()
    assert found["leads-out"] == "link"
    assert not [path for path in found if "key" in path or path in ("pipe", "socket")]


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(work, tmp_path):
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key").write_text("not ours")

    taker = Taker(work)

    def swapped(*_: object) -> bool:
        if (work / "src").is_dir() and not (work / "src").is_symlink():
            shutil.rmtree(work / "src")
            (work / "src").symlink_to(tmp_path / "secret")
        return False

    found = taker.take(swapped)
    assert not [path for path in found if "key" in path]


IGNORED = {
    "src/.gitignore": "*.tmp\n!kept.tmp\n",
    ".gitignore": "build/\n*.log\n/only-here\n!important.log\n# said\n\n",
    "build/out.o": "",
    "a.log": "",
    "important.log": "kept",
    "only-here": "",
    "src/only-here": "kept",
    "src/x.tmp": "",
    "src/kept.tmp": "kept",
    "src/deep/y.tmp": "",
    "src/build/z": "",
    "node_modules/pkg/index.js": "",
    ".venv/bin/python": "",
    "src/__pycache__/app.pyc": "",
    ".env.example": "kept",
}


def test_what_git_ignores_is_left_out(work):
    for name, text in IGNORED.items():
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "--others", "--exclude-standard"],
        cwd=work,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    found = {path for path, kind in Taker(work).take().items() if kind == "file"}
    unasked = ("node_modules", ".venv", "__pycache__")
    assert found == {one for one in listed if not any(name in one for name in unasked)}
    assert "src/kept.tmp" in found and "src/x.tmp" not in found


def test_the_rules_of_the_repository_hold_in_a_folder_of_it(work):
    (work / ".git").mkdir()
    (work / ".gitignore").write_text("/src/app.py\n")
    (work / "src" / "other.py").touch()
    assert set(Taker(work / "src").take()) == {"other.py"}


def test_rules_that_are_none_hide_nothing(work):
    (work / ".gitignore").write_bytes(b"\xff\xfe[\n[z-a]\n***a\n" + b"(" * 5000 + b"\n!\n")
    assert "src/app.py" in Taker(work).take()
    (work / ".gitignore").write_bytes(b"*\n" * (1 << 18))
    assert "src/app.py" in Taker(work).take()


def test_limits_are_told(work, monkeypatch):
    (work / "large.bin").write_bytes(b"x" * 2000)
    taker = Taker(work, limit=1000)
    taker.take()
    assert taker.tree["large.bin"].why == "it is larger than file-limit-bytes"
    assert taker.tree["large.bin"].entry.size == 2000
    monkeypatch.setattr(taking_module, "MOST_BYTES", 12)
    taker = Taker(work)
    taker.take()
    assert [item.why for item in taker.tree.values() if item.why]
    monkeypatch.setattr(taking_module, "MOST_ENTRIES", 2)
    taker = Taker(work)
    assert len(taker.take()) == 2
    assert taker.left_out == ["it has more than 2 files"]


def test_what_a_cut_snapshot_did_not_come_to_is_as_it_was(work):
    taker = Taker(work)
    before = taker.take()
    assert taker.take(is_over=lambda: True) == before
    assert taker.left_out == ["the process ended"]


def test_what_is_ours_and_what_is_nobodys_is_left_out(work, tmp_path):
    (work / "data").mkdir()
    (work / "data" / "store.sqlite").touch()
    assert "data" not in Taker(work, work / "data").take()
    taker = Taker(Path("/etc"))
    assert taker.take() == {}
    assert "a folder of the system" in taker.left_out[0]
    assert Taker(tmp_path / "nowhere").take() == {}


LOCKED_BY_OTHERS = """
import fcntl, sys
with open(sys.argv[1], "r+b") as file:
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit(7)
"""


def is_locked(path: Path) -> bool:
    return subprocess.run([sys.executable, "-c", LOCKED_BY_OTHERS, path]).returncode == 7


def test_locks_of_the_program_survive(work):
    path = work / "run.sh"
    with path.open("r+b") as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        assert is_locked(path)
        taker = Taker(work)
        taker.take()
        assert taker.kept.asked.count(b"#!/bin/sh\n") == 1
        assert is_locked(path)


def test_locks_on_a_database_survive_whenever_they_are_taken(work):
    database = sqlite3.connect(work / "app.db", isolation_level=None)
    database.execute("CREATE TABLE x (y)")
    taker = Taker(work)
    taker.take()
    database.execute("BEGIN EXCLUSIVE")
    for number in range(3):
        (work / "app.db-note").write_text(str(number))
        taker.take()
        other = sqlite3.connect(work / "app.db", timeout=0)
        code = "import sqlite3,sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        done = subprocess.run(
            [sys.executable, "-c", code, work / "app.db"], capture_output=True, text=True
        )
        assert "database is locked" in done.stderr
        other.close()
    database.execute("INSERT INTO x VALUES (1)")
    database.execute("COMMIT")
    taker.take()
    assert taker.tree["app.db"].content() == (work / "app.db").read_bytes()
    database.close()


HOSTILE = [
    FolderEntry("../outside", "file", 0o644, digest=b"d"),
    FolderEntry("/etc/outside", "file", 0o644, digest=b"d"),
    FolderEntry("a/../../outside", "file", 0o644, digest=b"d"),
    FolderEntry(".", "file", 0o644, digest=b"d"),
    FolderEntry("nul\0", "file", 0o644, digest=b"d"),
    FolderEntry("door", "link", target=".."),
    FolderEntry("door/outside", "file", 0o644, digest=b"d"),
    FolderEntry("suid", "file", 0o6755, digest=b"d"),
]


def test_a_hostile_snapshot_writes_nothing_outside(tmp_path):
    folder = tmp_path / "deep" / "laid"
    tree = changed({}, SnapshotChanges(HOSTILE, []), lambda entry: b"hostile")
    laid = lay(tree, folder)
    written = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*") if not one.is_dir()}
    assert written == {"deep/laid/door/outside", "deep/laid/suid"}
    assert [path for path, _ in laid.missing] == ["door"]
    assert stat.S_IMODE((folder / "suid").stat().st_mode) == 0o755


def test_only_an_empty_folder_is_laid_into(tmp_path):
    (tmp_path / "there").touch()
    with pytest.raises(UsageError, match="not empty"):
        lay({}, tmp_path)


def test_a_content_that_is_missing_or_damaged_is_told(tmp_path):
    def read(entry: FolderEntry) -> bytes:
        raise UsageError("its content is damaged")

    tree = changed({}, SnapshotChanges([FolderEntry("a", "file", 0o644, digest=b"d")], []), read)
    assert lay(tree, tmp_path / "laid").missing == (("a", "its content is damaged"),)


@pytest.mark.parametrize("data", [b"", b"\xc1", b"\x92\x90\xc0", b"\x92\x91\x91\x01\x90"])
def test_bytes_that_are_no_changes_are_refused(data):
    with pytest.raises(ValueError):
        decode_changes(data)


def test_differences_are_told_by_kind(tmp_path):
    def tree(*entries: FolderEntry):
        return changed({}, SnapshotChanges(list(entries), []), lambda entry: b"")

    before = tree(
        FolderEntry("same", digest=b"1"),
        FolderEntry("mode", mode=0o644, digest=b"1"),
        FolderEntry("text", digest=b"1"),
        FolderEntry("gone", digest=b"1"),
        FolderEntry("large", size=5, mtime_ns=1, unkept="large"),
        FolderEntry("kind", digest=b"1"),
    )
    after = tree(
        FolderEntry("same", digest=b"1"),
        FolderEntry("mode", mode=0o755, digest=b"1"),
        FolderEntry("text", digest=b"2"),
        FolderEntry("new", digest=b"1"),
        FolderEntry("large", size=5, mtime_ns=2, unkept="large"),
        FolderEntry("kind", "link", target="x"),
    )
    assert [(one.path, one.what) for one in tree_difference(before, after)] == [
        ("gone", "removed"),
        ("kind", "changed"),
        ("large", "unknown"),
        ("mode", "mode"),
        ("new", "added"),
        ("text", "changed"),
    ]
