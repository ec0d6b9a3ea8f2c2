"""All rows of a trace are fetched at once, on every engine."""

from __future__ import annotations

import pytest
from support.tapes.batches import span_of
from support.whole_store import WholeStore

from playhead_receiver.storage import Batch
from playhead_receiver.storage.sql.reading import summaries
from playhead_receiver.storage.sql.tables.database import ManyRows
from playhead_receiver.storage.sqlite.database import SqliteDb

TRACE = b"\x05" * 16
OTHER = b"\x06" * 16


@pytest.mark.parametrize("count", [0, 1, 3, 4, 5, 8, 11])
def test_a_trace_of_several_fetches_is_complete(
    store: WholeStore, monkeypatch: pytest.MonkeyPatch, count: int
):
    monkeypatch.setattr(summaries, "_MOST_ROWS", 4)
    made = [
        span_of(
            TRACE,
            number,
            parent=number // 2,
            name=f"call {number}",
            error=number % 3 == 0,
            gen_ai__usage__input_tokens=number * 10_000_000_000,
        )
        for number in range(count, 0, -1)
    ]
    store.commit(Batch([*made, span_of(OTHER, 1), span_of(OTHER, 77)]))
    rows = {int.from_bytes(row.span_id, "big"): row for row in store.outline(TRACE)}
    assert sorted(rows) == list(range(1, count + 1))
    for number, row in rows.items():
        assert int.from_bytes(row.parent or b"\0", "big") == number // 2
        assert (row.failed, row.usage.input) == (number % 3 == 0, number * 10_000_000_000)
        assert row.end_ns is not None and row.end_ns > row.start_ns
    assert {int.from_bytes(id, "big"): name for id, name in store.names(TRACE).items()} == {
        number: f"call {number}" for number in rows
    }
    assert [span.span_id for span in store.spans(TRACE)] == [span.span_id for span in made]


def test_sqlite_returns_every_value_as_it_was():
    with SqliteDb(":memory:") as db:
        db.execute("CREATE TABLE pair(id BLOB, number INTEGER)")
        pairs = [(number.to_bytes(2, "big") + b'"\0', number - (1 << 62)) for number in range(300)]
        db.executemany("INSERT INTO pair VALUES (?, ?)", pairs)
        select = ManyRows("number:int id:bytes", "pair WHERE number < ? ORDER BY id")
        assert db.rows(select, (0,)) == [(number, id) for id, number in pairs]
        assert db.rows(select, (-(1 << 62),)) == []
