"""What keeps a store in order does the same in every engine."""

from __future__ import annotations

import os
import time

from conformance.suite.base import OnEngine
from support.batches import span_of

from playhead_receiver.store import Batch, Query, Upkeep
from playhead_receiver.store.retention import Policy, apply
from playhead_receiver.store.upkeep import FLAGGED, HELD


def trace(number: int) -> bytes:
    return bytes([number]) * 16


class InOrder(OnEngine):
    def test_above_its_budget_the_oldest_runs_go_and_no_more_than_that(self, store: Upkeep):
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
