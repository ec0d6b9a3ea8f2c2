"""Spans go from their commit to the search index without being read back; nothing depends on that."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conformance.engines import ENGINES
from conformance.test_repeated_texts import SAID, hits, indexed, say, trace
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.leftovers import finds
from support.tapes.batches import span_of
from support.tapes.log_records import batch_of, record_of
from support.whole_store import WholeStore

from playhead_core.otlp import set_attributes
from playhead_receiver.storage import Batch, Lag, StoredSpan
from playhead_receiver.storage.runs.attribute_keys import equals, has
from playhead_receiver.storage.sql.reading.reader import SqlReader
from playhead_receiver.storage.writing import recent_bundles


@pytest.fixture
def frames_read(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The bundles that were read back, one list for each read."""
    found: list[list[int]] = []
    read = SqlReader._frames  # pyright: ignore[reportPrivateUsage]

    def noted(reader: SqlReader, bundles: list[int]) -> dict[int, bytes]:
        found.append(bundles)
        return read(reader, bundles)

    monkeypatch.setattr(SqlReader, "_frames", noted)
    return found


def spans() -> list[StoredSpan]:
    """Spans whose large values are cut in different ways, each with a unique word."""
    talk = json.dumps([{"role": "user", "parts": [{"content": f"talk1 {'prose ' * 200}"}]}])
    family = {f"llm__input_messages__{n}__content": f"family{n} {'x' * 90}" for n in range(40)}
    shapes: list[dict[str, Any]] = [
        {"note": "small0"},
        {"gen_ai__input__messages": talk},
        {"gen_ai__input__messages": f"{talk[:-1]} ]", "other": "long2 " * 400},
        {"values": [f"array3 {'y' * 200}", "array3b"]},
        {"values": {"key": f"map4 {'z' * 200}"}},
        {"note": f"middle5 {'é' * 50}"},
        {"n" * 200: "longname6 " * 200},
        {"gen_ai__input__messages_ref": f"file:///{'refers7 ' * 100}"},
        {f"{'r' * 30}_ref": "anyref8 " * 100},
        {"family": "family9", **family},
        {"raw": b"bytes10 " * 100},
    ]
    found = [span_of(trace(9), n, **shape) for n, shape in enumerate(shapes, 1)]
    eventful = ResourceSpans.FromString(span_of(trace(9), 50, text="eventful " * 200).otlp)
    span = eventful.scope_spans[0].spans[0]
    set_attributes(span.events.add(name="event11").attributes, {"long": "event12 " * 200})
    eventful.scope_spans[0].schema_url = eventful.schema_url = "https://example.test/13"
    return [*found, StoredSpan(trace(9), span.span_id, eventful.SerializeToString())]


WORDS = (
    *("small0", "talk1", "prose", "long2", "array3", "array3b", "map4", "middle5"),
    *("refers7", "anyref8", "family9", "family3", "bytes10", "eventful", "event11", "event12", "zebras"),
)


def findable(store: WholeStore) -> list[Any]:
    """What the index finds."""
    needs = [has("note"), has("other"), has("n" * 200), has("long"), has("raw"), has("absent")]
    needs += [equals("note", "small0"), equals("family", "family9"), equals("values", "array3b")]
    return [
        *([(hit.span_id, hit.excerpt) for hit in store.search(word)] for word in WORDS),
        *(sorted(store.having([need]) or ()) for need in needs),
    ]


def test_a_recent_span_is_indexed_as_one_that_is_read_back(tmp_path: Path):
    found: list[list[Any]] = []
    for is_recent in (True, False):
        store = ENGINES["sqlite"].writer(tmp_path / str(is_recent))
        if is_recent:
            indexed(store)
        store.commit(Batch(spans()))
        store.commit(batch_of(record_of(trace(8), 1, "zebras " * 90), record_of(trace(8), 2, "tiny")))
        indexed(store)
        assert store.lag() == Lag(0, 0)
        found.append(findable(store))
        store.close()
    assert found[0] == found[1]
    assert all(found[0][: len(WORDS)]), [w for w, hit in zip(WORDS, found[0], strict=False) if not hit]


def test_recent_spans_are_not_read_back(store: WholeStore, frames_read: list[list[int]]):
    indexed(store)
    for number in (1, 2, 3):
        say(store, number, SAID[0], SAID[number], span=number)
    frames_read.clear()
    indexed(store)
    assert frames_read == []
    assert hits(store, "anna") == [(1, 1)] and hits(store, "dora") == [(3, 3)]


def test_what_there_is_no_room_for_is_read_back(
    store: WholeStore, frames_read: list[list[int]], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(recent_bundles, "MOST_BYTES", 1500)
    indexed(store)
    for number in range(1, 6):
        say(store, number, SAID[number - 1] * 2, span=number)
    frames_read.clear()
    indexed(store)
    read = {one for some in frames_read for one in some}
    assert 0 < len(read) < 5
    for number, name in enumerate(("anna", "bert", "carl", "dora", "emma"), 1):
        assert hits(store, name) == [(number, number)]
    say(store, 6, "there is room again", span=6)
    frames_read.clear()
    indexed(store)
    assert frames_read == []


def test_what_is_deleted_before_it_is_indexed_is_not_found(store: WholeStore, tmp_path: Path):
    indexed(store)
    for number in (1, 2):  # the second needs a text of the first
        say(store, number, SAID[0], SAID[number], span=number)
    store.delete([trace(1)])
    indexed(store)
    assert [hit.trace_id[:2] for hit in store.search("bert")] == []
    assert [hit.trace_id[:2] for hit in store.search("carl")] == ["02"]
    assert store.search("anna")
    assert not finds(tmp_path, b"bert")
    store.delete([trace(2)])
    assert store.search("anna") == store.search("carl") == []


def test_another_writer_may_delete_it(request: pytest.FixtureRequest, tmp_path: Path):
    request.getfixturevalue("server")
    store, other = (ENGINES["postgres"].writer(tmp_path) for _ in range(2))
    indexed(store)
    say(store, 1, SAID[0])
    other.delete([trace(1)])
    indexed(store)
    assert store.search("anna") == []
    for one in (store, other):
        one.close()


KILLED = """
import os, signal, sys
sys.path[:0] = {path!r}
from pathlib import Path
from conformance.test_repeated_texts import SAID, indexed, say
from playhead_receiver.storage import open_store
store = open_store(Path({folder!r}))
indexed(store)
say(store, 1, SAID[0])
indexed(store)
say(store, 2, SAID[1])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_had_not_indexed_is_indexed_by_the_next(tmp_path: Path):
    script = KILLED.format(path=sys.path, folder=str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", script], env=dict(os.environ), check=False)
    assert ended.returncode == -signal.SIGKILL
    store = ENGINES["sqlite"].writer(tmp_path)
    assert store.lag().bundles == 1
    indexed(store)
    assert hits(store, "anna") == [(1, 1)] and hits(store, "bert") == [(2, 1)]
    store.close()
