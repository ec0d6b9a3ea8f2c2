"""Frames of runs that are over, joined: the same bytes come out, and what is deleted is gone."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest
from support.leftovers import finds
from support.tapes.batches import span_of

from playhead_receiver.storage import Batch, Store, StoredSpan, open_store
from playhead_receiver.storage.sql.maintenance import compaction
from playhead_receiver.storage.sqlite import engine

SAID = {number: f"needle-{number}-" + os.urandom(8).hex() for number in (1, 2, 3)}
STEPS = 30


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def spans_of(number: int) -> list[StoredSpan]:
    """A run whose history grows; the runs have words in common, and say something of their own."""
    rng = random.Random(number)
    words = [f"{word:x}ab" for word in range(4000, 5000)]
    said = [f'{{"content":"{SAID[number]}"}}']
    spans: list[StoredSpan] = []
    for step in range(1, STEPS + 1):
        said.append(f'{{"content":"{" ".join(rng.choices(words, k=150))}"}}')
        messages = f"[{','.join(said)}]"
        spans.append(span_of(trace(number), step, gen_ai__input__messages=messages, step=step))
    return spans


def frames(store: Any) -> tuple[int, int]:
    """How many frames and blocks there are, and their bytes."""
    sql = "SELECT data FROM bundle WHERE data IS NOT NULL UNION ALL SELECT data FROM block"
    found = [len(row[0]) for row in store._reader.all(sql)]
    return len(found), sum(found)


def filled(place: Path) -> tuple[Any, dict[int, list[StoredSpan]]]:
    """Three runs, each span in a commit of its own."""
    store: Any = open_store(place)
    runs = {number: spans_of(number) for number in SAID}
    for row in zip(*runs.values(), strict=True):
        for span in row:
            store.commit(Batch([span]))
    return store, runs


def gives_back(store: Store, runs: dict[int, list[StoredSpan]]) -> bool:
    return all(list(store.spans(trace(number))) == spans for number, spans in runs.items())


def test_frames_of_a_run_become_one_and_give_back_the_same(tmp_path: Path):
    store, runs = filled(tmp_path)
    number, size = frames(store)
    assert number == 3 * STEPS
    positions = [change.position for change in store.changes(0, 1000)]
    assert store.compact(quiet_s=3600.0) == 0
    assert store.compact(quiet_s=0.0) == 3
    joined, smaller = frames(store)
    assert joined == 3
    assert smaller < size * 0.75
    assert gives_back(store, runs)
    assert [change.position for change in store.changes(0, 1000)] == positions
    assert list(store.verify()) == []
    assert store.compact(quiet_s=0.0) == 0
    while store.index():
        pass
    assert [hit.trace_id for hit in store.search(SAID[2])] == [trace(2).hex()]
    store.close()
    again = open_store(tmp_path)
    assert gives_back(again, runs)
    again.close()


def test_a_run_that_goes_on_after_that_is_joined_again(tmp_path: Path):
    store, runs = filled(tmp_path)
    store.compact(quiet_s=0.0)
    late = [span_of(trace(1), 100 + number, text=SAID[1] * 20) for number in range(6)]
    for span in late:
        store.commit(Batch([span]))
    again = spans_of(1)[-1]
    assert store.commit(Batch([again])).spans_new == 0
    assert store.compact(quiet_s=0.0) == 1
    runs[1] += late
    assert gives_back(store, runs)
    assert list(store.verify()) == []
    store.close()


def test_long_runs_become_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compaction, "BLOCK_BYTES", 10_000)
    monkeypatch.setattr(compaction, "AT_ONCE_BYTES", 15_000)
    store, runs = filled(tmp_path)
    made = 0
    while joined := store.compact(quiet_s=0.0):
        made += joined
    assert made == frames(store)[0] > 6
    assert gives_back(store, runs)
    assert list(store.verify()) == []
    store.close()


def test_what_was_deleted_of_joined_frames_cannot_be_read_out_of_the_files(tmp_path: Path):
    store, runs = filled(tmp_path)
    store.compact(quiet_s=0.0)
    for number in (1, 3):
        assert finds(tmp_path, SAID[number].encode())
        assert store.delete([trace(number)]).wiped
        del runs[number]
        assert not finds(tmp_path, SAID[number].encode())
        assert gives_back(store, runs)
        assert list(store.verify()) == []
    assert finds(tmp_path, SAID[2].encode())
    store.close()


def test_texts_that_others_need_outlive_a_joined_run(tmp_path: Path):
    store: Any = open_store(tmp_path)
    first = spans_of(1)
    for span in first:
        store.commit(Batch([span]))
    store.compact(quiet_s=0.0)
    same = {"gen_ai__input__messages": f'[{{"content":"{SAID[1] * 20}"}}]'}
    other = [StoredSpan(trace(2), span.span_id, span.otlp.replace(trace(1), trace(2))) for span in first]
    store.commit(Batch([*other, span_of(trace(2), 99, **same)]))
    store.delete([trace(1)])
    assert list(store.verify()) == []
    assert list(store.spans(trace(2)))[:-1] == other
    store.delete([trace(2)])
    assert not finds(tmp_path, SAID[1].encode())
    store.close()


def test_what_is_deleted_while_frames_are_joined_stays_deleted(tmp_path: Path):
    store, runs = filled(tmp_path)
    with store._reader.connection() as db:
        made = compaction.drafts(db, 0.0)
    store.delete([trace(1)])
    store._require_writer().run(lambda db: compaction.write(db, made))
    del runs[1]
    assert not finds(tmp_path, SAID[1].encode())
    assert gives_back(store, runs)
    assert list(store.verify()) == []
    store.close()


def test_what_is_empty_is_given_back_to_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "FREE_SHARE", 0.0)
    store, _ = filled(tmp_path)
    store.sweep()
    before = (tmp_path / "store.sqlite").stat().st_size
    assert store.compact(quiet_s=0.0) == 3
    while store._reader.one("PRAGMA freelist_count") != (0,):
        assert store.compact(quiet_s=0.0) == 0
    store.sweep()
    assert (tmp_path / "store.sqlite").stat().st_size < before
    store.close()
