"""Which traces may have an attribute: all that do, on every engine, whatever happened to them."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import span_of
from support.tapes.handmade import HandMade
from support.whole_store import WholeStore

from playhead_core.otlp import set_attributes
from playhead_receiver.storage import Batch, Query, StoredSpan, open_store
from playhead_receiver.storage.runs.attribute_keys import (
    FAILED,
    LONGEST,
    SPAN_NAME,
    equals,
    has,
    more_key,
)
from playhead_receiver.storage.sql.reading import run_lists as runs
from playhead_receiver.storage.values.run_summaries import Need
from playhead_semconv import attributes as a


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def indexed(store: WholeStore) -> None:
    while store.index():
        pass


def found(store: WholeStore, *needs: Need) -> list[int]:
    having = store.having(needs)
    assert having is not None
    return sorted(one[0] for one in having)


def everywhere(number: int) -> StoredSpan:
    """A span with something in its resource, scope, event and link."""
    envelope = ResourceSpans.FromString(span_of(trace(number), 1, name="run", error=True).otlp)
    set_attributes(envelope.resource.attributes, {"of": "resource"})
    scoped = envelope.scope_spans[0]
    set_attributes(scoped.scope.attributes, {"of": "scope"})
    set_attributes(scoped.spans[0].events.add(name="e").attributes, {"of": "event"})
    set_attributes(scoped.spans[0].links.add().attributes, {"of": "link"})
    return StoredSpan(trace(number), scoped.spans[0].span_id, envelope.SerializeToString())


def test_a_trace_is_found_by_what_its_spans_have(store: WholeStore):
    values: list[Any] = ["red", 7, 7.5, True, ["red", 9], "x" * LONGEST + "y", {"red": 1}, b"red", None]
    store.commit(
        Batch([span_of(trace(number), 1, value=value) for number, value in enumerate(values, 1)])
    )
    store.commit(Batch([everywhere(20)]))
    indexed(store)
    unsure = [6, 7, 8, 9]  # long, composed or empty: who has such a value is always looked at
    assert found(store, equals("value", "red")) == [1, 5, *unsure]
    assert found(store, equals("value", 7)) == found(store, equals("value", "7")) == [2, *unsure]
    assert found(store, equals("value", 7.5)) == [3, *unsure]
    assert found(store, equals("value", True)) == [4, *unsure]
    assert found(store, equals("value", 9.0)) == [5, *unsure]
    assert found(store, equals("value", "x" * LONGEST + "y")) == unsure
    assert found(store, equals("value", "red", 7)) == [1, 2, 5, *unsure]
    assert found(store, has("value")) == [*range(1, 10)]
    for holder in ("resource", "scope", "event", "link"):
        assert found(store, equals("of", holder)) == [20]
    assert found(store, equals("of", "span")) == []
    assert found(store, has(FAILED), equals(SPAN_NAME, "run")) == [20]
    assert found(store, equals(SPAN_NAME, "chat gpt-4o"), equals("value", "red")) == [1, 5, *unsure]
    assert found(store, equals("value", "red"), has("of")) == []
    assert found(store, *(has(f"no{number}") for number in range(20)), has("of")) == []


def test_its_spans_may_have_come_one_after_the_other(store: WholeStore):
    for number in range(1, 4):
        store.commit(Batch([span_of(trace(1), number, **{f"at{number}": number, "same": "x"})]))
        store.commit(Batch([span_of(trace(2), number, same="x")]))
        indexed(store)
    assert found(store, has("at1"), equals("at2", 2), has("at3"), equals("same", "x")) == [1]
    assert found(store, equals("same", "x")) == [1, 2]


def test_what_is_not_indexed_or_has_not_come_may_have_anything(store: WholeStore):
    made = HandMade(b"i" * 16, trace(3)).start()
    made.begin("chat gpt-4o", kind=3)
    store.commit(Batch(made.spans, made.facts))
    indexed(store)
    store.commit(Batch([span_of(trace(2), 1)]))
    assert set(found(store, has("nothing"))) == {2, 3}
    indexed(store)
    assert found(store, has("nothing")) == [3]


def test_what_a_span_left_out_is_looked_for_in_it(store: WholeStore):
    derived = {"playhead__derived": [a.GEN_AI_INPUT_MESSAGES]}
    store.commit(Batch([span_of(trace(1), 1, **derived), span_of(trace(2), 1)]))
    indexed(store)
    assert found(store, has(a.GEN_AI_INPUT_MESSAGES)) == [1]
    assert found(store, equals(a.GEN_AI_INPUT_MESSAGES, "hello")) == [1]
    assert found(store, frozenset((more_key(a.GEN_AI_INPUT_MESSAGES),))) == [1]


def test_what_is_deleted_is_not_found_and_may_come_again(store: WholeStore):
    spans = [span_of(trace(number), 1, value="red") for number in (1, 2)]
    store.commit(Batch(spans))
    indexed(store)
    store.delete([trace(1)])
    assert found(store, equals("value", "red")) == [2]
    store.commit(Batch(spans))
    indexed(store)
    assert found(store, equals("value", "red")) == [1, 2]


def test_an_index_of_before_is_made_again(tmp_path: Path):
    store = open_store(tmp_path)
    store.commit(Batch([span_of(trace(1), 1, value="red")]))
    assert store.having([has("value")]) is None
    indexed(store)
    with sqlite3.connect(tmp_path / "search.sqlite") as old:
        old.executescript("DROP TABLE signature; PRAGMA user_version = 0")
    assert store.having([has("value")]) is None
    indexed(store)
    assert found(store, equals("value", "red")) == [1]
    assert [hit.trace_id for hit in store.search("red")] == [trace(1).hex()]
    store.close()


def test_runs_of_some_traces(store: WholeStore, monkeypatch: pytest.MonkeyPatch):
    store.commit(Batch([span_of(trace(number), 1) for number in range(1, 6)]))
    while store.sum_up():
        pass
    store.commit(Batch([span_of(trace(6), 1)]))

    def listed(*numbers: int, **more: Any) -> list[str]:
        wanted = frozenset(number.to_bytes(1) * 16 for number in numbers)
        found = store.runs(Query(mode=None, traces=wanted, **more))
        return sorted(run.trace_id[:2] for run in found)

    assert listed(2, 4, 6, 99) == ["02", "04", "06"]
    assert listed(1, *range(7, 250)) == ["01"]
    monkeypatch.setattr(runs, "NAMED", 2)
    assert listed(2, 4, 6, 99) == ["02", "04", "06"]
    assert listed() == []
    assert len(listed(1, 2, 3, limit=2)) == 2
