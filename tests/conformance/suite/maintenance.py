"""What keeps a store in order does the same in every engine."""

from __future__ import annotations

import os
import time
from typing import Any

from conformance.suite.base import OnEngine
from support.tapes.batches import span_of
from support.whole_store import WholeStore

from playhead_receiver.storage import Batch, Query
from playhead_receiver.storage.api.retention import FLAGGED, HELD, TEST
from playhead_receiver.storage.retention import Policy, apply


def trace(number: int) -> bytes:
    return bytes([number]) * 16


class Maintenance(OnEngine):
    def test_above_its_budget_the_oldest_runs_go_and_no_more_than_that(self, store: WholeStore):
        for number in range(1, 9):
            store.commit(Batch([span_of(trace(number), number, text=os.urandom(60_000).hex())]))
        store.mark(trace(1), HELD)
        store.mark(trace(2), FLAGGED)
        whole = store.used_bytes()
        budget = whole - 2 * 60_000
        done = apply(store, Policy(success_s=1e12, budget_bytes=budget), time.time_ns())
        left = sorted(run.name for run in store.runs(Query()))
        assert left[:2] == ["refund-1", "refund-2"]
        assert left[2:] == [f"refund-{number}" for number in range(3, 9)][-len(left) + 2 :]
        assert 2 <= done.runs <= 4
        assert budget - 2 * 60_000 < store.used_bytes() <= budget
        assert apply(store, Policy(success_s=1e12, budget_bytes=budget), time.time_ns()).runs == 0

    def test_the_index_is_made_again_out_of_what_is_stored(self, store: WholeStore):
        for number in (1, 2):
            store.commit(Batch([span_of(trace(number), 1, text=f"needle {number} of all")]))
        while store.index():
            pass
        store.delete([trace(1)])
        store.unindex()
        assert store.search("needle") == []
        assert store.lag().bundles == 1
        while store.index():
            pass
        assert [hit.trace_id for hit in store.search("needle")] == [trace(2).hex()]
        assert store.lag().bundles == 0

    def test_runs_are_found_by_the_marks_on_them(self, store: WholeStore):
        for number in range(1, 6):
            store.commit(Batch([span_of(trace(number), number)]))
        for number, word in ((2, HELD), (4, HELD), (4, FLAGGED), (5, FLAGGED)):
            store.mark(trace(number), word)
            store.mark(trace(number), word)

        def marked(word: str, **given: Any) -> list[str]:
            return [run.name for run in store.runs(Query(mark=word, **given))]

        assert marked(HELD) == ["refund-4", "refund-2"]
        assert marked(FLAGGED, sort="cost", limit=1) == ["refund-4"]
        assert marked(TEST) == marked(HELD, agent="nobody") == []
        assert [run.marks for run in store.runs(Query())] == [
            ["flagged"],
            ["flagged", "held"],
            [],
            ["held"],
            [],
        ]
        store.mark(trace(4), HELD, on=False)
        assert marked(HELD) == ["refund-2"]
        store.delete([trace(2)])
        assert store.marks() == {trace(4): {FLAGGED}, trace(5): {FLAGGED}}
