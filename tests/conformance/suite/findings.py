"""What is derived from runs, as words by which they are found."""

from __future__ import annotations

from typing import Any

import pytest
from conformance.suite.base import CHAT, OnEngine
from support.tapes.batches import facts_of, span_of
from support.whole_store import WholeStore

from playhead_receiver.storage import Batch, Query


class DerivedFindings(OnEngine):
    @pytest.mark.parametrize("summed_up", [True, False])
    def test_runs_are_found_by_what_was_derived_until_they_change(
        self, store: WholeStore, summed_up: bool
    ):
        one, other = b"c" * 16, b"d" * 16
        store.commit(Batch([span_of(trace, 5, **CHAT) for trace in (one, other)]))
        changed, position = store.changed_runs(0)
        assert (changed, position) == ({one, other}, store.position())
        assert store.changed_runs(position) == (set(), position)
        assert store.changed_tapes(0, position) == set(), "no facts"
        assert sorted(store.underived(7)) == [one, other]
        arrived_ns = store.resolve(one.hex()).arrived_ns
        words = {"any", "tool", "timeout", "tool/timeout", "recovered", "tool/timeout/recovered"}
        found: dict[str, Any] = {"failure": words, "loop": {"yes", "search ×4"}}
        store.store_findings(one, {**found, "derived": {f"7.{arrived_ns}"}})
        store.store_findings(b"e" * 16, found)  # deleted in the meantime
        if summed_up:
            store.sum_up()

        def traces(**conditions: Any) -> list[bytes]:
            return [bytes.fromhex(run.trace_id) for run in store.runs(Query(**conditions))]

        assert store.underived(7) == [other] and sorted(store.underived(8)) == [one, other]
        for word in ("tool", "timeout", "tool/timeout", "recovered", "any"):
            assert traces(words=(("failure", word),)) == [one], word
        assert traces(words=(("failure", "model"),)) == []
        assert (traces(loop="yes"), traces(loop="no")) == ([one], [other])
        run = store.resolve(one.hex())
        assert (run.failure_codes, run.recovered_codes, run.loop_names) == (
            [],
            ["tool/timeout"],
            ["search ×4"],
        )
        store.commit(Batch([span_of(one, 4, **CHAT)]))  # it begins earlier than was known
        if summed_up:
            store.sum_up()
        assert sorted(store.underived(7)) == [one, other]
        assert traces(loop="yes", words=(("failure", "tool"),)) == [one]
        store.store_findings(one, {"failure": (), "loop": ()})
        assert (traces(loop="yes"), traces(words=(("failure", "any"),))) == ([], [])
        assert list(store.verify()) == []

    def test_processes_that_left_facts_are_known_by_their_positions(self, store: WholeStore):
        before, one = store.position(), b"t" * 16
        store.commit(Batch(facts=facts_of(one, range(2))))
        assert store.changed_tapes(before, store.position()) == {one}
        assert store.changed_tapes(store.position(), store.position()) == set()
