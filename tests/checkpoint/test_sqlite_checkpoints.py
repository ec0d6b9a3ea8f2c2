import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from playhead_checkpoint import Lineage, SqliteCheckpoints
from playhead_checkpoint.store import sql
from playhead_checkpoint.store.conformance import CheckpointConformance, conversation
from playhead_checkpoint.tree import packing
from playhead_core.errors import CheckpointUnknown, CorruptTape, StateRefused, StoreUnavailable


class TestSqlite(CheckpointConformance):
    @pytest.fixture(autouse=True)
    def _place(self, tmp_path: Path):
        self.path = tmp_path / "state" / "checkpoints.sqlite"

    def open_store(self):
        return SqliteCheckpoints(self.path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "checkpoints.sqlite"


def test_only_the_owner_may_read(path: Path):
    old = os.umask(0)
    try:
        with SqliteCheckpoints(path) as store:
            store.put(1)
            modes = {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    finally:
        os.umask(old)
    assert modes == {0o600}


WRITER = """
import sys
from playhead_checkpoint import Lineage, SqliteCheckpoints
from playhead_checkpoint.tree import packing
from playhead_checkpoint.store.conformance import conversation
store, parent, length = SqliteCheckpoints(sys.argv[1]), b"", int(sys.argv[2])
while True:
    parent = store.put(conversation(length), Lineage(b"r" * 16, parent=parent)).id
    print(parent.hex(), length, flush=True)
    length += 1
"""


def test_a_kill_leaves_whole_checkpoints(path: Path):
    chance = random.Random(3)
    said: list[tuple[bytes, int]] = []
    for begin in range(0, 5_000, 500):
        command = [sys.executable, "-c", WRITER, str(path), str(begin)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = [process.stdout.readline() for _ in range(chance.randrange(1, 40))]
            process.send_signal(signal.SIGKILL)
            lines += process.stdout
        for line in lines:
            if line.endswith("\n"):
                said.append((bytes.fromhex(line.split()[0]), int(line.split()[1])))
    assert len(said) > 10
    with SqliteCheckpoints(path) as store:
        assert store.damages() == []
        for id, length in said:
            assert store.state(id) == conversation(length)
        for one in store.checkpoints(limit=10_000):
            found = store.state(one.id)
            assert found == conversation(found["step"])


REPLACER = """
import sys
from playhead_checkpoint import Lineage, SqliteCheckpoints
from playhead_checkpoint.store.conformance import conversation
store, lineage = SqliteCheckpoints(sys.argv[1]), Lineage(b"r" * 16, id=b"i" * 16)
while True:
    for length in (400, 40, 401, 41):
        store.put(conversation(length), lineage, replace=True)
        print(length, flush=True)
"""


def test_a_kill_while_a_checkpoint_is_replaced_leaves_one_of_both(path: Path):
    chance = random.Random(4)
    for _ in range(8):
        command = [sys.executable, "-c", REPLACER, str(path)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for _ in range(chance.randrange(2, 40)):
                process.stdout.readline()
            process.send_signal(signal.SIGKILL)
        with SqliteCheckpoints(path) as store:
            assert store.damages() == []
            assert store.state(b"i" * 16)["step"] in (400, 40, 401, 41)
            assert len(store.checkpoints()) == 1


def test_a_forked_child_has_a_connection_of_its_own(path: Path):
    with SqliteCheckpoints(path) as store:
        store.put(conversation(100), Lineage(b"r" * 16))
        child = os.fork()
        if not child:
            try:
                store.put(conversation(101), Lineage(b"c" * 16))
                os._exit(0)
            except BaseException:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        store.put(conversation(102), Lineage(b"r" * 16))
        assert [one.lineage.run[:1] for one in store.checkpoints()] == [b"r", b"c", b"r"]
        assert store.damages() == []


COUNTS = "import sys, playhead_checkpoint as p; print(p.SqliteCheckpoints(sys.argv[1]).count())"


def test_who_opens_the_file_once_more_takes_no_locks_from_its_process(path: Path):
    """Without them, the end of another process removes the log, with all that is put later."""
    with SqliteCheckpoints(path) as store, SqliteCheckpoints(path):
        for count in (1, 2):
            store.put(count)
            said = subprocess.run([sys.executable, "-c", COUNTS, path], capture_output=True, text=True)
            assert said.stdout == f"{count}\n", said.stderr


def test_a_closed_store_says_so(path: Path):
    store = SqliteCheckpoints(path)
    store.close()
    store.close()
    with pytest.raises(StoreUnavailable, match="is closed"):
        store.put(1)


def test_a_file_of_something_else_is_left_alone(path: Path):
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE mine (x)")
    database.close()
    with pytest.raises(StoreUnavailable, match="something else"):
        SqliteCheckpoints(path)
    path.write_bytes(b"no database at all" * 100)
    with pytest.raises(CorruptTape, match="damaged"):
        SqliteCheckpoints(path)


def test_a_file_of_a_later_version_is_left_alone(path: Path):
    SqliteCheckpoints(path).close()
    changed(path, "PRAGMA user_version=9")
    with pytest.raises(StoreUnavailable, match="later version"):
        SqliteCheckpoints(path)


def changed(path: Path, *statements: str) -> None:
    database = sqlite3.connect(path, isolation_level=None)
    for statement in statements:
        database.execute(statement)
    database.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE node SET data = zeroblob(length(data)) WHERE id = 1", "damaged"),
        ("UPDATE node SET size = 1 << 40 WHERE id = 1", "damaged"),
        ("UPDATE node SET data = (SELECT data FROM node WHERE id = 2), size = "
         "(SELECT size FROM node WHERE id = 2) WHERE id = 1", "damaged"),
        ("DELETE FROM node WHERE id = 1", "damaged"),
        ("UPDATE checkpoint SET packed = x'00'", "differs from its digest"),
        ("UPDATE checkpoint SET labels = '7'", "damaged"),
        ("UPDATE checkpoint SET packed = 7", "damaged"),
        ("UPDATE checkpoint SET kind = 'other'", "damaged"),
        ("UPDATE checkpoint SET run = 'run'", "damaged"),
        ("UPDATE checkpoint SET size = -1", "damaged"),
        ("UPDATE node SET data = 7 WHERE id = 1", "damaged"),
        ("UPDATE node SET digest = 'x' WHERE id = 1", "damaged"),
    ],
)  # fmt: skip
def test_damage_is_found_when_it_is_read(path: Path, statement: str, said: str):
    with SqliteCheckpoints(path) as store:
        put = store.put(conversation(500))
    changed(path, statement)
    with SqliteCheckpoints(path) as store:
        with pytest.raises(CorruptTape, match=said):
            store.state(put.id)
        assert store.damages()


@pytest.mark.parametrize("again", [False, True])
def test_a_checkpoint_that_goes_while_it_is_read_is_unknown_or_its_newer_state(path: Path, again: bool):
    """The row was read, and then its nodes are gone: that is no damage."""
    with SqliteCheckpoints(path) as writer:
        id = writer.put(conversation(300)).id
        with SqliteCheckpoints(path) as reader:
            load = reader.nodes

            def nodes(digests: Any) -> Any:
                if reader.nodes is not load:
                    reader.nodes = load
                    writer.delete([id])
                    if again:
                        writer.put(conversation(40), Lineage(id=id))
                return load(digests)

            reader.nodes = nodes
            if again:
                assert reader.state(id) == conversation(40)
            else:
                with pytest.raises(CheckpointUnknown):
                    reader.state(id)


def test_a_damaged_checkpoint_can_be_deleted(path: Path):
    with SqliteCheckpoints(path) as store:
        put, kept = store.put(conversation(500)), store.put(conversation(20))
        changed(path, "UPDATE node SET data = zeroblob(9) WHERE id = 2")
        changed(path, "UPDATE node SET data = zeroblob(9) WHERE id = 1")
        assert store.delete([put.id, put.id]).checkpoints == 1
        assert store.state(kept.id) == conversation(20)


def test_counts_of_uses_are_verified(path: Path):
    with SqliteCheckpoints(path) as store:
        store.put(conversation(500))
        store.delete([store.put(1).id])
        assert store.damages() == []
        changed(path, "UPDATE use_count SET count = 7 WHERE node = 1")
        assert any("said to be 7 times" in line for line in store.damages())


def counted(path: Path) -> tuple[int, int]:
    """Up to which checkpoint uses are counted, and which is the last."""
    database = sqlite3.connect(path)
    (found,) = database.execute("SELECT checkpoint, (SELECT max(seq) FROM checkpoint) FROM counted")
    database.close()
    return found


def test_uses_are_counted_after_some_checkpoints(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sql, "MOST_UNCOUNTED", 8)
    said: list[tuple[int, int]] = []
    for begin in (0, 5):
        with SqliteCheckpoints(path) as store:
            for length in range(begin, begin + 5):
                store.put(conversation(20 * length))
                store.note(b"n" * 16, {str(length): conversation(30 * length)})
                said.append(counted(path))
            assert store.damages() == []
    assert said[6:] == [(0, 7), (8, 8), (8, 9), (8, 10)]


def test_a_file_whose_uses_were_counted_at_each_put_is_read_and_brought_up(path: Path):
    with SqliteCheckpoints(path) as store:
        puts = [store.put(conversation(length)).id for length in range(200, 210)]
        store.note(puts[0], {"key": conversation(300)})
        store.delete([puts.pop(3)])
    changed(path, "ALTER TABLE use_count RENAME TO uses", "DROP TABLE counted", "PRAGMA user_version=1")
    with SqliteCheckpoints(path, read_only=True) as store:
        assert store.damages() == []
        assert store.state(puts[-1]) == conversation(209)
    with SqliteCheckpoints(path) as store:
        puts.append(store.put(conversation(400)).id)
        assert store.damages() == []
        assert store.delete(puts).nodes > 20
        assert store.damages() == []
    with sqlite3.connect(path) as database:
        assert database.execute("SELECT count(*) FROM node").fetchone() == (0,)
    database.close()


def test_what_something_damaged_may_use_is_not_deleted(path: Path):
    with SqliteCheckpoints(path) as store:
        put, other = store.put(conversation(500)), store.put(conversation(900))
        changed(path, "UPDATE node SET size = size + 1")
        store.delete([other.id])
        assert counted(path) == (1, 1)
        changed(path, "UPDATE node SET size = size - 1")
    with SqliteCheckpoints(path) as store:
        assert store.state(put.id) == conversation(500)


def test_a_deletion_gives_the_disk_back(path: Path):
    with SqliteCheckpoints(path) as store:
        put = store.put({"secret": os.urandom(1 << 20), "word": "found-nowhere-later" * 50})
        store.delete([put.id])
        assert path.stat().st_size < 1 << 16
    assert b"found-nowhere-later" not in path.read_bytes()


def test_importing_the_room_imports_no_large_library():
    code = (
        "import sys, playhead_checkpoint; "
        "print({'sqlite3', 'difflib', 'decimal'} & sys.modules.keys()); "
        "[getattr(playhead_checkpoint, name) for name in playhead_checkpoint.__all__]; "
        "print({'numpy', 'pydantic', 'backports.zstd', 'opentelemetry'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\nset()\n"


def test_a_state_that_is_too_large_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packing, "LARGEST_PUT_BYTES", 1 << 16)
    with SqliteCheckpoints(path) as store:
        with pytest.raises(StateRefused, match="more than 65536 bytes"):
            store.put([b"x" * 4_000] * 17)
        store.put([b"x" * 4_000] * 16)
