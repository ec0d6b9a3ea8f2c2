"""Requests share a loaded run: it is loaded once and is never older than the store."""

import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.pages.large_runs import many_spans
from support.starting.cli import refund
from support.tapes.batches import span_of
from support.tapes.handmade import NOW_INSTANCE, NOW_TRACE, TRACE, HandMade
from support.tapes.log_records import batch_of as logs_of
from support.tapes.log_records import record_of
from support.whole_store import WholeStore

from playhead_core.facts import Content
from playhead_receiver.api.loaded import LoadedRuns
from playhead_receiver.api.tree import Tree
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, open_store
from playhead_receiver.storage.api.retention import Retention
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.values.span_labels import DerivedCall, Label, Usage
from playhead_replay import Run

AT_ONCE = 8


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Any]:
    opened = open_store(tmp_path / "own")
    yield opened
    opened.close()


def get(loaded: LoadedRuns, store: WholeStore, trace: bytes = TRACE) -> Run:
    return loaded.get(store, store.resolve(trace.hex()), Run.load)


def put(store: WholeStore, made: HandMade) -> HandMade:
    store.commit(Batch(made.spans, made.facts, {}))
    while store.sum_up():
        pass
    return made


def at_once(ask: Callable[[], Any]) -> list[Any]:
    """What as many threads get that begin at the same time."""
    begin = threading.Barrier(AT_ONCE)
    with ThreadPoolExecutor(AT_ONCE) as threads:
        asked = [threads.submit(lambda: (begin.wait(), ask())[1]) for _ in range(AT_ONCE)]
        return [one.result() for one in asked]


def test_requests_at_the_same_time_load_a_run_once(store: WholeStore, monkeypatch: pytest.MonkeyPatch):
    trace = bytes.fromhex(many_spans(store, 2000))
    reads: list[bytes] = []
    spans = store.spans

    def counted(trace_id: bytes, *only: Any) -> Any:
        reads.append(trace_id)
        return spans(trace_id, *only)

    monkeypatch.setattr(store, "spans", counted)
    loaded = LoadedRuns()
    runs = at_once(lambda: get(loaded, store, trace))
    assert len({id(run) for run in runs}) == 1
    assert len(runs[0].spans) == 2000
    assert get(loaded, store, trace) is runs[0]
    assert reads == [trace]


def test_each_change_of_a_run_is_seen_at_once_and_a_change_of_another_loads_nothing(store: WholeStore):
    made = refund()
    last = made.facts.pop()
    loaded = LoadedRuns()
    put(store, made)
    before = get(loaded, store)
    derived = {made.spans[0].span_id: DerivedCall(Label(model="gpt-5"), Usage())}
    assert before.status != "failure"
    put(store, refund(NOW_TRACE, NOW_INSTANCE))
    assert get(loaded, store) is before
    score = record_of(
        TRACE,
        9,
        event="gen_ai.evaluation.result",
        gen_ai__evaluation__name="tone",
        gen_ai__evaluation__score__value=0.5,
    )
    changes: list[tuple[Callable[[], Any], Callable[[Run], Any], Any]] = [
        (lambda: store.commit(Batch(facts=[last])), lambda run: run.status, "failure"),
        (lambda: store.commit(Batch([span_of(TRACE, 999)])), lambda run: len(run.roots), 2),
        (lambda: store.commit(logs_of(score)), lambda run: [one.name for one in run.scores], ["tone"]),
        (lambda: store.store_derived(TRACE, derived), lambda run: run.name, "refund-1"),
    ]
    for change, read, wanted in changes:
        change()
        while store.sum_up():
            pass
        after = get(loaded, store)
        assert after is not before
        assert read(after) == wanted
        assert get(loaded, store) is after
        before = after


def test_a_deletion_leaves_nothing_in_memory_after_the_next_request(store: WholeStore):
    loaded = LoadedRuns()
    put(store, refund())
    put(store, refund(NOW_TRACE, NOW_INSTANCE))
    tape = weakref.ref(get(loaded, store).tape)
    tree = weakref.ref(loaded.get(store, store.resolve(TRACE.hex()), Tree.load))
    other = get(loaded, store, NOW_TRACE)
    assert tape() is not None and tree() is not None
    loaded.forget_deleted(store)
    assert get(loaded, store, NOW_TRACE) is other
    store.delete([TRACE])
    loaded.forget_deleted(store)
    gc.collect()
    assert tape() is None and tree() is None
    again = get(loaded, store, NOW_TRACE)
    assert again is not other and len(again.steps) == len(other.steps)


def test_a_deleted_run_is_unknown_at_the_next_request(api: httpx.Client, receiver: Receiver):
    paths = ("findings", "time", "outline", "tool-calls", "notes", "agents", "steps/summary", "scores")
    urls = [f"/v1/runs/{TRACE.hex()}/{path}" for path in paths]
    assert [api.get(url).status_code for url in urls] == [200] * len(urls)
    needed(receiver.store, Retention).delete([TRACE])
    assert [api.get(url).status_code for url in urls] == [404] * len(urls)


def test_a_run_comes_from_the_store_that_is_asked(store: WholeStore, tmp_path: Path):
    """Each tenant has its own store, and the same trace id may exist in several stores."""
    other: Any = open_store(tmp_path / "other")
    try:
        put(store, refund())
        put(other, HandMade(NOW_INSTANCE, TRACE).start().exit())
        loaded = LoadedRuns()
        for _ in range(2):
            assert len(get(loaded, store).steps) == 11
            assert len(get(loaded, other).steps) == 0
    finally:
        other.close()


def test_the_runs_that_were_used_last_stay_within_the_bound(store: WholeStore):
    traces = [number.to_bytes(16, "big") for number in (1, 2, 3)]
    for trace in traces:
        put(store, HandMade(trace, trace).start().exit())
    first = get(LoadedRuns(), store, traces[0])
    loaded = LoadedRuns(most_bytes=2 * first.size_bytes)
    kept = [get(loaded, store, trace) for trace in traces[:2]]
    assert get(loaded, store, traces[0]) is kept[0]
    get(loaded, store, traces[2])
    assert get(loaded, store, traces[0]) is kept[0]
    assert get(loaded, store, traces[1]) is not kept[1]
    small = LoadedRuns(most_bytes=first.size_bytes - 1)
    assert get(small, store, traces[0]) is not get(small, store, traces[0])


def test_threads_read_the_bodies_of_one_run(store: WholeStore):
    made = HandMade().start()
    bodies = [b"system" + b", question and answer" * number for number in range(1, 60)]
    for body in bodies:
        made.chat(body, (b"{}",) * 3)
    put(store, made.exit())
    run = get(LoadedRuns(), store)
    found = at_once(lambda: [(one.request, one.response) for one in run.exchanges])
    assert found == [[(body, b"{}" * 3) for body in bodies]] * AT_ONCE
    assert run.tape.read(Content.of(bodies[0])) == bodies[0]


def test_threads_derive_once_what_a_run_means(store: WholeStore):
    put(store, refund())
    run = get(LoadedRuns(), store)
    assert len({id(one) for one in at_once(lambda: run.calls)}) == 1
