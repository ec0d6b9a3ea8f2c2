"""Other programs that open, read and close the database files of a store."""

import os
from pathlib import Path

import pytest
from support.foreign_programs import held_by_another, read_by_another
from support.starting.running import until
from support.tapes.batches import span_of

from playhead_receiver.storage import Batch, Query, open_store
from playhead_receiver.storage.sqlite import logs
from playhead_receiver.storage.sqlite.schema import FILE
from playhead_receiver.storage.sqlite.search import FILE as SEARCH_FILE


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


def test_a_log_that_a_reader_held_back_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(logs, "DUE_PAGES", 5)
    monkeypatch.setattr(logs, "AT_MOST_PAGES", 20)
    store, log = open_store(tmp_path), tmp_path / f"{FILE}-wal"
    numbers = iter(range(1, 1 << 20))

    def commit() -> int:
        number = next(numbers)
        store.commit(Batch([span_of(number.to_bytes(16, "big"), 1, text=os.urandom(4000).hex())]))
        return log.stat().st_size

    with held_by_another(tmp_path / FILE):
        while commit() < 1 << 20:
            pass
    until(lambda: commit() == log.stat().st_size == commit() == commit(), "the log begins again")
    store.close()
