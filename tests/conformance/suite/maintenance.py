"""What keeps a store in order does the same in every engine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from conformance.suite.base import OnEngine, batch_of, living, run_of
from support.tapes.batches import span_of
from support.tapes.handmade import TRACE, HandMade
from support.whole_store import WholeStore

from playhead_receiver.storage import Batch, Query
from playhead_receiver.storage.api.retention import FLAGGED, HELD, TEST
from playhead_receiver.storage.retention import Policy, apply
from playhead_receiver.storage.sql.reading import large_runs


def trace(number: int) -> bytes:
    return bytes([number]) * 16


def sum_up(store: WholeStore, *, final: bool = False) -> None:
    while store.sum_up(final=final):
        pass


def outdated(store: Any) -> int:
    """The number of runs whose stored summary is outdated."""
    return store._reader.one("SELECT count(*) FROM run WHERE stale > 0")[0]


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

    @pytest.fixture
    def grow(
        self, store: WholeStore, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[Callable[[HandMade, int], int]]:
        """Store more steps of a run, large from 8 spans on, and sum up. Returns its steps, as listed."""
        monkeypatch.setattr(large_runs, "LARGE", 8)
        monkeypatch.setattr(large_runs, "RESTS", 1e12)  # a fold takes some time of the processor

        def add(made: HandMade, steps: int) -> int:
            for _ in range(steps):
                made.tool("search", "{}")
            store.commit(batch_of(made))
            sum_up(store)
            return run_of(store, TRACE).steps

        yield add
        sum_up(store, final=True)
        assert outdated(store) == 0
        assert list(store.verify()) == []

    def test_a_large_run_is_summed_up_again_when_it_has_grown_by_a_share(
        self, store: WholeStore, grow: Callable[[HandMade, int], int]
    ):
        made = living()
        assert [grow(made, steps) for steps in (3, 1, 4)] == [3, 4, 8]  # it is small
        assert [grow(made, 1), outdated(store)] == [8, 1]
        assert [grow(made, 1), outdated(store)] == [10, 0]

    def test_one_that_has_ended_is_summed_up_at_once(
        self, store: WholeStore, grow: Callable[[HandMade, int], int]
    ):
        made = living()
        assert [grow(made, 8), grow(made, 1)] == [8, 8]
        made.exit()
        store.commit(batch_of(made))
        assert run_of(store, TRACE).steps == 9
        sum_up(store)
        assert [run_of(store, TRACE).steps, outdated(store)] == [9, 0]

    def test_one_that_rests_is_summed_up_in_time(
        self,
        store: WholeStore,
        grow: Callable[[HandMade, int], int],
        monkeypatch: pytest.MonkeyPatch,
    ):
        made = living()
        assert [grow(made, 8), grow(made, 1)] == [8, 8]
        monkeypatch.setattr(large_runs, "RESTS", 0)
        assert run_of(store, TRACE).steps == 9
        sum_up(store)
        assert [run_of(store, TRACE).steps, outdated(store)] == [9, 0]

    def test_what_else_has_to_be_summed_up_does_not_wait_for_large_runs(
        self, store: WholeStore, grow: Callable[[HandMade, int], int]
    ):
        made = living()
        assert [grow(made, 8), grow(made, 1), outdated(store)] == [8, 8, 1]
        store.commit(Batch([span_of(trace(9), 1)]))
        store.sum_up(limit=1)
        assert outdated(store) == 1

    def test_in_the_end_and_for_other_processes_a_large_run_is_exact(
        self,
        store: WholeStore,
        reader: Callable[[], WholeStore],
        grow: Callable[[HandMade, int], int],
    ):
        made = living()
        assert [grow(made, 8), grow(made, 1)] == [8, 8]
        exact = run_of(reader(), TRACE)
        assert exact.steps == 9
        sum_up(store, final=True)
        assert run_of(store, TRACE) == exact

    def test_nothing_of_a_deleted_run_is_remembered(
        self, store: Any, grow: Callable[[HandMade, int], int]
    ):
        made = living()
        assert [grow(made, 8), grow(made, 1), len(store._large)] == [8, 8, 1]
        store.delete([TRACE])
        assert len(store._large) == 0
