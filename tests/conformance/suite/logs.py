"""Log records of other senders: stored with their run, found, and deleted with it."""

from __future__ import annotations

from collections.abc import Callable

from conformance.suite.base import OnEngine, run_of
from support.tapes.batches import START_NS, span_of
from support.tapes.log_records import batch_of, record_of, request_of
from support.whole_store import WholeStore

from playhead_core.otlp.log_records import LEVELS, LogQuery, log_line
from playhead_receiver.storage import Batch, Query, Store
from playhead_receiver.storage.values.stored import StoredLog

TRACE, OTHER = b"f" * 16, b"o" * 16
LONG = "a long line about zebras " * 20


def bodies(store: Store, wanted: LogQuery | None = None, trace: bytes = TRACE) -> list[object]:
    return [log_line(one.otlp).body for one in store.logs(trace, wanted or LogQuery())]


def index(store: WholeStore) -> None:
    while store.index():
        pass


class Logs(OnEngine):
    def test_log_records_come_back_as_they_came(self, store: Store, reader: Callable[[], Store]) -> None:
        records = [record_of(TRACE, 3, LONG, span=1), record_of(TRACE, 2, {"content": [LONG, 7]})]
        receipt = store.commit(batch_of(*records))
        assert (receipt.logs_new, receipt.position) == (2, 0)
        for one in (store, reader()):
            found = list(one.logs(TRACE))
            assert [log.time_ns for log in found] == [START_NS + 2000, START_NS + 3000]
            whole = [request_of(record).resource_logs[0].SerializeToString() for record in records]
            assert [log.otlp for log in found] == whole[::-1]
            assert [log.span_id for log in found] == [b"", (1).to_bytes(8, "big")]
            assert list(one.logs(OTHER)) == []

    def test_a_record_that_is_sent_again_is_stored_once(self, store: WholeStore) -> None:
        batch = batch_of(record_of(TRACE, 1, LONG), record_of(TRACE, 1, LONG), record_of(TRACE, 1, "b"))
        assert store.commit(batch).logs_new == 2
        assert store.commit(batch).logs_new == 0
        assert store.commit(batch_of(record_of(TRACE, 2, LONG))).logs_new == 1
        assert sorted(map(str, bodies(store))) == [LONG, LONG, "b"]
        assert list(store.verify()) == []

    def test_log_records_are_selected(self, store: Store) -> None:
        store.commit(
            batch_of(
                *(record_of(TRACE, n, str(n), span=n % 3, level=5 + n % 10) for n in range(1200)),
                record_of(TRACE, 5000, {"content": "hello"}, span=9, event="gen_ai.user.message"),
            )
        )
        assert bodies(store)[:1200] == [str(n) for n in range(1200)]
        warnings = bodies(store, LogQuery(level=LEVELS["warning"]))
        assert warnings == [str(n) for n in range(1200) if n % 10 >= 8]
        of_span = bodies(store, LogQuery(span_ids=[(2).to_bytes(8, "big")]))
        assert of_span == [str(n) for n in range(1200) if n % 3 == 2]
        assert bodies(store, LogQuery(span_ids=[])) == []
        assert bodies(store, LogQuery(content=True)) == [{"content": "hello"}]
        second = list(store.logs(TRACE))[1]
        assert bodies(store, LogQuery(after=(second.time_ns, second.digest)))[0] == "2"

    def test_a_run_may_begin_with_a_log_record(self, store: WholeStore) -> None:
        store.commit(batch_of(record_of(TRACE, 1, "first")))
        run = run_of(store, TRACE)
        assert (run.name, run.started_ns, run.spans) == ("shop-1", START_NS + 1000, 0)
        store.sum_up()
        assert list(store.verify()) == []
        store.commit(Batch([span_of(TRACE, 2, gen_ai__operation__name="chat")]))
        run = run_of(store, TRACE)
        assert (run.name, run.spans, run.steps) == ("shop-1", 1, 1)
        # A record with a wrong clock does not move the run in time.
        store.commit(batch_of(record_of(TRACE, -START_NS // 1000, "early")))
        assert run_of(store, TRACE).started_ns == START_NS + 1000
        assert [one.name for one in store.runs(Query())] == ["shop-1"]

    def test_words_of_log_records_are_found(self, store: WholeStore) -> None:
        store.commit(Batch([span_of(TRACE, 1, text="about a lion")]))
        store.commit(
            batch_of(
                record_of(TRACE, 2, "cache miss for a wombat", span=1, logger="app.cache"),
                record_of(TRACE, 3, {"content": LONG}, event="gen_ai.user.message"),
            )
        )
        store.commit(batch_of(record_of(OTHER, 2, {"content": LONG}, span=4)))
        index(store)
        (hit,) = store.search("wombat miss")
        assert (hit.trace_id, hit.span_id, hit.log) == (TRACE.hex(), f"{1:016x}", True)
        assert "cache miss for a wombat" in hit.excerpt
        (hit,) = store.search("lion")
        assert not hit.log
        assert {one.trace_id for one in store.search("zebras")} == {TRACE.hex()}
        found = store.search("zebras", trace_filter=lambda _: True)
        assert {(one.trace_id, one.log) for one in found} == {(TRACE.hex(), True), (OTHER.hex(), True)}

    def test_log_records_are_deleted_with_their_run(self, store: WholeStore) -> None:
        store.commit(batch_of(record_of(TRACE, 1, {"content": LONG}), record_of(TRACE, 2, "wombat")))
        store.commit(Batch([span_of(TRACE, 1)]))
        store.commit(batch_of(record_of(OTHER, 2, {"content": LONG})))
        index(store)
        store.delete([TRACE])
        index(store)
        assert bodies(store) == []
        assert bodies(store, trace=OTHER) == [{"content": LONG}]
        assert store.search("wombat") == []
        assert [hit.trace_id for hit in store.search("zebras")] == [OTHER.hex()]
        assert list(store.verify()) == []
        store.delete([OTHER])
        assert list(store.verify()) == []
        assert store.commit(batch_of(record_of(OTHER, 2, "again"))).logs_new == 1

    def test_frames_of_log_records_are_joined(self, store: WholeStore) -> None:
        for number in range(10):
            store.commit(batch_of(record_of(TRACE, number, f"line {number}")))
        before = list(store.logs(TRACE))
        assert store.compact(quiet_s=0) == 1
        assert list(store.logs(TRACE)) == before
        assert all(isinstance(one, StoredLog) for one in before)
        assert list(store.verify()) == []
