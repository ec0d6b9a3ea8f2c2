"""Other programs that open, read and close the database files of a store."""

from pathlib import Path

from support.foreign_programs import read_by_another
from support.tapes.batches import span_of

from playhead_receiver.store import Batch, Query, open_store
from playhead_receiver.store.sqlite.schema import FILE
from playhead_receiver.store.sqlite.search import FILE as SEARCH_FILE


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
