"""Whatever was said is found, in the span that said it first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import apsw
import pytest
from support.leftovers import finds
from support.starting.running import until
from support.tapes.batches import span_of
from support.tapes.handmade import TRACE, HandMade
from support.tapes.leftout import chat
from support.whole_store import WholeStore

from playhead_core.errors import StoreUnavailable, UsageError
from playhead_receiver.storage import Batch, Lag, open_store
from playhead_receiver.storage.content.plain_words import plain_text
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.sqlite import engine


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def history(*said: str) -> str:
    return json.dumps([{"role": "user", "parts": [{"type": "text", "content": one}]} for one in said])


def indexed(store: WholeStore) -> WholeStore:
    while store.index():
        pass
    assert store.lag() == Lag(0, 0)
    return store


def where(store: WholeStore, text: str) -> list[tuple[str, int]]:
    return [(hit.trace_id[:2], int(hit.span_id, 16)) for hit in store.search(text)]


@pytest.fixture
def store(tmp_path: Path) -> Any:
    opened = open_store(tmp_path)
    said = [f"Where is order {number}? " + "It was a müßige Frage.\n" * 6 for number in range(80, 84)]
    for step in range(1, 5):
        text = history(*said[:step])
        opened.commit(Batch([span_of(trace(1), step, name="chat gpt-4o", gen_ai__input__messages=text)]))
    small = {"gen_ai__tool__name": "refund", "note": "kleine Notiz"}
    opened.commit(Batch([span_of(trace(2), 9, name="execute_tool refund", **small)]))
    yield opened
    opened.close()


def test_a_text_is_found_once_in_the_span_that_said_it_first(store: WholeStore):
    assert store.lag().bundles == 5
    assert store.search("order") == []
    indexed(store)
    assert where(store, "order 82") == [("01", 3)]
    assert where(store, "order") == [("01", 4), ("01", 3), ("01", 2), ("01", 1)]
    assert where(store, "Order where") == where(store, "order")
    assert where(store, '"is order"') == where(store, "order")
    assert where(store, '"order is"') == []
    assert len(where(store, "MÜSSIGE")) == 4 == len(where(store, "müßige"))
    assert where(store, "ord*") == where(store, "order")


def test_small_values_and_names_are_found_in_their_span(store: WholeStore):
    indexed(store)
    assert where(store, "notiz") == [("02", 9)]
    assert where(store, "execute_tool") == [("02", 9)]
    assert store.search("notiz")[0].excerpt.endswith("kleine Notiz")


def test_the_excerpt_shows_what_was_found(store: WholeStore):
    indexed(store)
    assert "Where is order 83?" in store.search("83")[0].excerpt


def test_what_two_runs_say_is_found_when_the_first_is_deleted(tmp_path: Path):
    store = open_store(tmp_path)
    shared = "You refuse to book zeppelins. " * 10
    for number in (1, 2):
        store.commit(Batch([span_of(trace(number), number, gen_ai__system_instructions=shared)]))
    indexed(store)
    assert where(store, "zeppelins") == [("01", 1)]
    store.delete([trace(1)])
    assert where(store, "zeppelins") == [("02", 2)]
    store.delete([trace(2)])
    assert where(store, "zeppelins") == []
    assert not finds(tmp_path, b"zeppelins"[2:])
    store.close()


def test_words_of_deleted_runs_are_not_in_the_index(tmp_path: Path):
    store = open_store(tmp_path)
    words = {number: os.urandom(8).hex() for number in range(1, 9)}
    for number, word in words.items():
        store.commit(Batch([span_of(trace(number), number, text=f"{word} " * 30, small=f"x{word}")]))
        indexed(store)
    for word in words.values():
        assert finds(tmp_path, word[6:].encode())
        assert len(store.search(word)) == 1
    store.delete([trace(number) for number in (1, 2, 5)])
    for number, word in words.items():
        assert len(store.search(word)) == (number not in (1, 2, 5))
        assert finds(tmp_path, word[6:].encode()) == (number not in (1, 2, 5))
    store.close()


def test_a_large_index_is_wiped_after_the_deletion(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(engine, "WIPED_AT_ONCE_BYTES", 0)
    store = open_store(tmp_path)
    for number in (1, 2):
        store.commit(Batch([span_of(trace(number), number, text=f"zeppelins{number} " * 30)]))
    indexed(store)
    assert not store.delete([trace(1)]).wiped
    assert where(store, "zeppelins1") == [] and finds(tmp_path, b"zeppelins1"[2:])
    store.close()
    store = open_store(tmp_path)
    until(store.empty_logs, "the index is wiped")
    assert not finds(tmp_path, b"zeppelins1"[2:])
    assert where(store, "zeppelins2") == [("02", 2)]
    store.close()


def test_what_a_recorded_run_asked_and_was_answered_is_found(tmp_path: Path):
    store = open_store(tmp_path)
    made = HandMade().start()
    made.chat(b'{"messages":[{"role":"user","content":"Wo ist Bestellung 81?"}]}')
    made.tool("search", '{"order": "einundachtzig"}')
    made.exit()
    store.commit(Batch(made.spans, made.facts))
    indexed(store)
    (hit,) = store.search("bestellung")
    assert (hit.trace_id, hit.excerpt.count("Bestellung 81?")) == (TRACE.hex(), 1)
    assert [hit.trace_id for hit in store.search("einundachtzig")] == [TRACE.hex()]
    store.close()


def test_an_answer_is_found_when_its_facts_have_come(tmp_path: Path):
    store = open_store(tmp_path)
    made = HandMade().start()
    call = chat(made, "Wie viele Zeppeline?", "Siebenundzwanzig Stück.")
    store.commit(Batch([call.stored], made.facts[:3]))
    while store.index():
        pass
    assert store.lag().bundles == 1
    assert [hit.span_id for hit in store.search("siebenundzwanzig")] == []
    store.commit(Batch(facts=made.facts))
    indexed(store)
    (hit,) = store.search("siebenundzwanzig")
    assert hit.span_id == call.stored.span_id.hex()
    assert "Siebenundzwanzig Stück." in hit.excerpt
    assert [hit.trace_id for hit in store.search("zeppeline")] == [TRACE.hex()]
    store.close()


def test_the_index_is_built_again_when_it_is_gone(store: WholeStore, tmp_path: Path):
    indexed(store)
    before = where(store, "order")
    for path in tmp_path.glob("search.sqlite*"):
        path.unlink()
    assert store.search("order") == [] and store.lag().bundles == 5
    assert where(indexed(store), "order") == before


def test_what_cannot_be_searched_is_said(store: WholeStore):
    with pytest.raises(UsageError, match="no word"):
        store.search(" - * ")
    indexed(store)
    for odd in ('"', "a AND", "NEAR(", "col:x", "^a", '""', "x" * 9000):
        try:
            store.search(odd)
        except UsageError:
            pass


def test_whole_spans_and_store_may_be_imported_in_either_order():
    for first, second in (
        ("storage.spans.whole_spans", "storage"),
        ("storage", "storage.spans.whole_spans"),
    ):
        words = f"import playhead_receiver.{first}, playhead_receiver.{second}"
        assert subprocess.run([sys.executable, "-c", words]).returncode == 0


def test_of_a_long_trace_each_bundle_is_read_without_the_others(
    store: WholeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """To read the trace again with each bundle of it would take the square of its length."""
    asked: dict[str, Sequence[Any]] = {}
    for name in ("one", "all"):
        ask = getattr(SqlReader, name)

        def noted(reader: SqlReader, sql: str, values: Sequence[Any] = (), ask: Any = ask) -> Any:
            asked[sql] = values
            return ask(reader, sql, values)

        monkeypatch.setattr(SqlReader, name, noted)
    indexed(store)
    assert store.search("Frage")
    found = {sql: values for sql, values in asked.items() if "FROM span" in sql}
    assert len(found) == 2
    with closing(apsw.Connection(str(tmp_path / "store.sqlite"))) as db:
        for sql, values in found.items():
            plan = [row[3] for row in db.execute(f"EXPLAIN QUERY PLAN {sql}", tuple(values))]
            assert "SEARCH span USING INDEX span_bundle (bundle=?)" in plan, (sql, plan)


def test_text_without_its_wrapping():
    assert plain_text(b'{"a":"line\\nnext \\"q\\" \\u00e9"}') == '{"a":"line next "q" é"}'
    assert (
        plain_text(rb"\u005cn \\u0041 \ud83d\ude00 \ud83d \"\u00E9\/\u12")
        == '\\n \\u0041 😀 \ufffd "é/ 12'
    )
    structured = b"\x0a\x15\x0a\x13\x0a\x11Where is order 81"
    assert plain_text(structured) == "Where is order 81"
    assert plain_text(b"\xff\xfe plain") == "�� plain"


@pytest.mark.parametrize("how", ["head", "middle"])
def test_an_index_that_is_damaged_is_told_and_made_again(store: WholeStore, tmp_path: Path, how: str):
    indexed(store)
    path = tmp_path / "search.sqlite"
    whole = path.read_bytes()
    path.write_bytes(
        b"nothing" * 2000 if how == "head" else whole[:4096] + b"\xff" * (len(whole) - 4096)
    )
    for end in ("-wal", "-shm"):
        Path(f"{path}{end}").unlink(missing_ok=True)
    with pytest.raises(StoreUnavailable, match="is damaged") as caught:
        store.search("order")
        store.lag()
    assert caught.value.hint.startswith("playhead search --rebuild")
    store.delete([trace(2)])
    assert where(indexed(store), "order 82") == [("01", 3)]
    assert store.search("Notiz") == []
