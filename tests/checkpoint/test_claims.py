"""Claims in SQLite: one of many gets an effect, and a process that dies leaves it unknown."""

import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from playhead_checkpoint import sqlite_file
from playhead_checkpoint.claims import open_claims
from playhead_checkpoint.claims.conformance import ClaimsConformance
from playhead_checkpoint.claims.sqlite import FILE, HOLDERS, KEPT_NS, SqliteClaims
from playhead_core.errors import CorruptTape, StoreUnavailable
from playhead_core.process.interpreter_threads import Bell

CLAIMS_AND_DIES = """
import os, signal, sys
from playhead_checkpoint.claims import open_claims
claim = open_claims(sys.argv[1]).claim("run", "key", "refund")
assert claim.state == "ours", claim
print("ours", flush=True)
sys.stdin.read()
os.kill(os.getpid(), signal.SIGKILL)
"""


CLOSES_AND_REUSES = """
import json, os, sys
from playhead_checkpoint.claims import open_claims
opened = open_claims(sys.argv[1])
first = opened.claim("run", "first", "refund")
numbers = [int(name) for name in os.listdir("/proc/self/fd") if int(name) > 2]
os.closerange(3, max(numbers) + 1)
own = os.open(sys.argv[1] + "/own", os.O_RDWR | os.O_CREAT)
for number in range(3, max(numbers) + 1):
    os.dup2(own, number)
opened.claim("run", "second", "refund")
opened.done(first.attempt, b"{}")
print(json.dumps([os.fstat(own).st_size, open(sys.argv[1] + "/own", "rb").read().decode()]), flush=True)
sys.stdin.read()
"""


def claims(folder: Path) -> SqliteClaims:
    opened = open_claims(str(folder))
    assert isinstance(opened, SqliteClaims)
    return opened


class TestInAFolder(ClaimsConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path):
        self.folder = tmp_path

    def open_claims(self):
        return claims(self.folder)


def test_numbers_that_the_program_closes_and_uses_again_are_the_programs_alone(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", CLOSES_AND_REUSES, tmp_path],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None and child.stdout is not None
    assert json.loads(child.stdout.readline()) == [0, ""]
    opened = claims(tmp_path)
    assert opened.claim("run", "first", "refund").state == "done"
    assert opened.claim("run", "second", "refund").state == "busy"
    child.communicate("", timeout=60)


def test_while_the_process_lives_the_effect_is_under_way_and_after_its_death_unknown(tmp_path):
    child = subprocess.Popen(
        [sys.executable, "-c", CLAIMS_AND_DIES, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert child.stdin is not None and child.stdout is not None
    assert child.stdout.readline() == b"ours\n"
    opened = claims(tmp_path)
    assert opened.claim("run", "key", "refund").state == "busy"
    assert len(list((tmp_path / HOLDERS).iterdir())) == 1
    child.stdin.close()
    assert child.wait(60) == -signal.SIGKILL
    child.stdout.close()
    unknown = opened.claim("run", "key", "refund")
    assert (unknown.state, unknown.error) == ("unknown", "")
    assert list((tmp_path / HOLDERS).iterdir()) == []
    assert opened.claim("run", "key", "refund", os.urandom(16)).state == "unknown"
    ours = opened.claim("run", "key", "refund", unknown.attempt)
    assert ours.state == "ours"
    # Another caller has taken over the same unknown attempt first.
    assert opened.claim("run", "key", "refund", unknown.attempt).state == "busy"


def test_the_child_of_a_fork_is_a_process_of_its_own(tmp_path):
    opened = claims(tmp_path)
    opened.claim("run", "parent's", "refund")
    pid = os.fork()
    if pid == 0:
        busy = opened.claim("run", "parent's", "refund").state == "busy"
        ours = opened.claim("run", "child's", "refund").state == "ours"
        os._exit(0 if busy and ours else 1)
    assert os.waitpid(pid, 0)[1] == 0
    assert opened.claim("run", "child's", "refund").state == "unknown"
    assert opened.claim("run", "parent's", "refund").state == "busy"


def test_who_waits_never_takes_an_end_for_a_death(tmp_path):
    opened = claims(tmp_path)
    seen: set[str] = set()
    key = ["first"]
    over = threading.Event()

    def asks() -> None:
        while not over.is_set():
            seen.add(opened.claim("run", key[0], "refund").state)

    ours = opened.claim("run", key[0], "refund")
    threads = [threading.Thread(target=asks) for _ in range(4)]
    for thread in threads:
        thread.start()
    number = 0
    while number < 150 or not seen >= {"busy", "done"}:  # both, however late the threads come
        following = opened.claim("run", str(number), "refund")
        opened.done(ours.attempt, b"1")
        key[0], ours = str(number), following
        number += 1
    over.set()
    for thread in threads:
        thread.join()
    assert seen == {"busy", "done"}


def test_claims_are_deleted_by_lineage_and_age(tmp_path):
    opened = claims(tmp_path)
    opened.claim("run", "1", "refund")
    opened.claim("run", "2", "refund")
    opened.claim("other", "1", "refund")
    assert opened.delete("run") == 2
    assert opened.claim("run", "1", "refund").state == "ours"
    with sqlite3.connect(tmp_path / FILE) as database:
        database.execute("UPDATE claim SET time_ns = time_ns - ?", (KEPT_NS + 1,))
    database.close()
    assert claims(tmp_path).claim("other", "1", "refund").state == "ours"


def test_a_close_gives_up_what_was_not_ended(tmp_path):
    opened = claims(tmp_path)
    opened.claim("run", "key", "refund")
    opened.close()
    assert list((tmp_path / HOLDERS).iterdir()) == []
    assert claims(tmp_path).claim("run", "key", "refund").state == "unknown"


def test_nobody_else_reads_them(tmp_path):
    folder = tmp_path / "data"
    opened = claims(folder)
    opened.claim("run", "key", "refund")
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes[FILE] == 0o600 and modes[HOLDERS] == 0o700
    assert [stat.S_IMODE(one.stat().st_mode) for one in (folder / HOLDERS).iterdir()] == [0o600]


@pytest.mark.parametrize(
    ("made", "error"),
    [
        (b"no database" * 1000, CorruptTape),
        ("CREATE TABLE x (y)", StoreUnavailable),
        ("PRAGMA application_id=1885563953; PRAGMA user_version=99", StoreUnavailable),
    ],
)
def test_a_file_of_something_else_is_refused(tmp_path, made, error):
    if isinstance(made, bytes):
        (tmp_path / FILE).write_bytes(made)
    else:
        database = sqlite3.connect(tmp_path / FILE)
        database.executescript(made)
        database.close()
    with pytest.raises(error):
        claims(tmp_path)


def test_who_opens_them_while_another_process_makes_the_file_waits(tmp_path, monkeypatch):
    maker = sqlite3.connect(tmp_path / FILE, isolation_level=None)
    maker.execute("BEGIN IMMEDIATE")

    class Made(Bell):
        def wait(self, timeout_s: float | None = None) -> bool:
            maker.close()
            return super().wait(timeout_s)

    monkeypatch.setattr(sqlite_file, "Bell", Made)
    assert claims(tmp_path).claim("run", "key", "refund").state == "ours"


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable):
        claims(tmp_path / "file" / "data")
