"""Other programs that open, read and close the database files of a store."""

import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from support.tapes.batches import span_of

from playhead_receiver.store import Batch, Query, open_store
from playhead_receiver.store.sqlite.schema import FILE
from playhead_receiver.store.sqlite.search import FILE as SEARCH_FILE

READ = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM sqlite_schema')"
HOLD = """
import sqlite3, sys
reader = sqlite3.connect(sys.argv[1])
reader.execute("BEGIN")
reader.execute("SELECT count(*) FROM sqlite_schema").fetchone()
print("reads", flush=True)
sys.stdin.read()
"""


def read_by_another(path: Path) -> None:
    """Open, read and close a database in another process, as a backup tool does."""
    subprocess.run([sys.executable, "-c", READ + ".fetchone()", str(path)], check=True)


@contextmanager
def held_by_another(path: Path) -> Generator[None]:
    """Hold an older state of a database in another process."""
    command = [sys.executable, "-c", HOLD, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as reader:
        assert reader.stdout and reader.stdin
        assert reader.stdout.readline() == b"reads\n"
        try:
            yield
        finally:
            reader.stdin.close()


def test_the_log_of_a_new_store_outlives_another_reader(tmp_path: Path):
    store = open_store(tmp_path)
    store.commit(Batch([span_of(b"1" * 16, 1, text="kettle")]))
    while store.index():
        pass
    for name in (FILE, SEARCH_FILE):
        read_by_another(tmp_path / name)
    assert (tmp_path / f"{FILE}-wal").exists()
    store.commit(Batch([span_of(b"2" * 16, 1)]))
    seen = open_store(tmp_path, read_only=True)
    assert {run.trace_id for run in seen.runs(Query())} == {"31" * 16, "32" * 16}
    seen.close()
    store.close()


def test_a_deletion_leaves_the_log_to_a_reader_and_empties_it_later(tmp_path: Path):
    store = open_store(tmp_path)
    store.commit(Batch([span_of(b"1" * 16, 1)]))
    with held_by_another(tmp_path / FILE):
        assert not store.delete([b"1" * 16]).wiped
        store.commit(Batch([span_of(b"2" * 16, 1)]))
    assert store.sweep().wiped
    assert (tmp_path / f"{FILE}-wal").stat().st_size == 0
    store.close()
