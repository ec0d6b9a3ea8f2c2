"""Checkpoints go with their runs, are verified with them, and are made where somebody stores one."""

from __future__ import annotations

import os
from typing import Any

from conformance.suite.base import OnEngine
from support.tapes.batches import START_NS, span_of
from support.whole_store import WholeStore

from playhead_checkpoint import Lineage
from playhead_checkpoint.store.conformance import conversation
from playhead_checkpoint.store.protocol import RESTS_ON_PARENT
from playhead_receiver.storage import Batch, Finding
from playhead_receiver.storage.retention import Policy, apply

RUN, OTHER_RUN, UNKNOWN = b"r" * 16, b"o" * 16, b"u" * 16
LATER_NS = 1 << 62


def keep_runs(store: WholeStore, *runs: bytes) -> None:
    """Two checkpoints of each run, whose states have most in common."""
    for run in runs:
        store.commit(Batch([span_of(run, 1)]))
        for step in (200, 201):
            store.checkpoints().put(conversation(step), Lineage(run))


def kept_runs(store: WholeStore) -> list[bytes]:
    return [one.lineage.run for one in store.checkpoints().checkpoints()]


class Checkpoints(OnEngine):
    def test_nothing_is_made_where_no_checkpoint_was_stored(self, store: WholeStore):
        store.commit(Batch([span_of(RUN, 1)]))
        assert store.delete([RUN]).checkpoints == 0
        assert store.sweep().checkpoints == 0
        assert list(store.verify()) == []
        assert store.existing_checkpoints() is None

    def test_checkpoints_of_a_run_are_deleted_with_it(self, store: WholeStore):
        keep_runs(store, RUN, OTHER_RUN)
        assert store.delete([RUN]).checkpoints == 2
        assert kept_runs(store) == [OTHER_RUN, OTHER_RUN]
        found = store.checkpoints().latest(OTHER_RUN)
        assert found and store.checkpoints().state(found.id) == conversation(201)
        assert store.checkpoints().damages() == []
        store.delete([OTHER_RUN])
        assert store.checkpoints().count() == 0

    def test_checkpoints_go_when_the_time_of_their_run_is_over_unless_it_is_held(
        self, store: WholeStore
    ):
        keep_runs(store, RUN, OTHER_RUN)
        store.mark(OTHER_RUN, "held")
        done = apply(store, Policy(), LATER_NS)
        assert (done.runs, done.checkpoints) == (1, 2)
        assert set(kept_runs(store)) == {OTHER_RUN}

    def test_what_comes_after_the_deletion_goes_too_and_what_belongs_to_no_run_stays(
        self, store: WholeStore
    ):
        keep_runs(store, RUN)
        store.delete([RUN])
        for run in (RUN, UNKNOWN, b""):
            store.checkpoints().put(conversation(20), Lineage(run))
        assert store.sweep().checkpoints == 1
        assert sorted(kept_runs(store)) == [b"", UNKNOWN]
        assert store.sweep().checkpoints == 0

    def test_a_budget_counts_checkpoints_and_frees_the_oldest_of_runs_and_of_none(
        self, store: WholeStore
    ):
        checkpoints = store.checkpoints()
        for number in range(1, 7):
            run = bytes([number]) * 16
            store.commit(Batch([span_of(run, number)]))
            start_ns = START_NS + number * 1000
            astray = b"" if number % 2 else bytes([100 + number]) * 16
            for one in (run, astray):
                state = [os.urandom(30_000)]
                checkpoints.put(state, Lineage(one, time_ns=start_ns + (one is astray) * 500))
        store.mark(bytes([2]) * 16, "held")
        all_bytes, now_ns = store.checkpoint_bytes(), START_NS + 10**15
        assert all_bytes > 12 * 30_000
        room = Policy(success_s=1e12, budget_bytes=store.size_bytes() + all_bytes)
        assert apply(store, room, now_ns).checkpoints == 0
        tight = Policy(success_s=1e12, budget_bytes=store.used_bytes() + all_bytes * 6 // 10)
        done = apply(store, tight, now_ns)
        left = {run[:1] for run in kept_runs(store)}
        assert done.checkpoints == 12 - len(kept_runs(store)) and 1 <= done.runs < 5
        assert left >= {bytes([number]) for number in (2, 6, 106)}
        assert not left & {bytes([number]) for number in (1, 102)}
        assert store.used_bytes() + store.checkpoint_bytes() <= tight.budget_bytes  # type: ignore[operator]
        assert apply(store, Policy(success_s=1e12, budget_bytes=0), now_ns).runs == 5 - done.runs
        assert kept_runs(store) == [bytes([2]) * 16]
        assert checkpoints.damages() == list(store.verify()) == []

    def test_a_budget_spares_what_came_just_now_and_what_others_rest_on(self, store: WholeStore):
        checkpoints, now_ns, before = store.checkpoints(), 10**18, b""
        for number in range(4):
            labels = (RESTS_ON_PARENT,) if number else ()
            time_ns = now_ns - (0 if number == 3 else 10**16)
            put = Lineage(
                b"", parent=before, labels=labels, time_ns=time_ns, thread="t", name=str(number)
            )
            before = checkpoints.put(number, put).id
        alone = checkpoints.put("alone", Lineage(time_ns=1))
        assert apply(store, Policy(budget_bytes=0), now_ns).checkpoints == 1
        assert alone.id not in {one.id for one in checkpoints.checkpoints()}
        assert checkpoints.count() == 4
        assert apply(store, Policy(budget_bytes=0), now_ns + 10**16).checkpoints == 4
        assert checkpoints.count() == 0

    def test_damage_is_found_with_the_runs_that_it_concerns(self, store: WholeStore):
        keep_runs(store, RUN, OTHER_RUN)
        checkpoints: Any = store.checkpoints()
        last = checkpoints.latest(RUN)
        with checkpoints._writing() as database:
            (id,) = database.execute("SELECT max(id) FROM node").fetchone()
            database.execute("UPDATE node SET data = ? WHERE id = ?", (b"damaged", id))
        found = list(store.verify())
        assert {one.what for one in found} == {"checkpoint", "node"}
        concerned = [one for one in found if one.runs]
        assert {run for one in concerned for run in one.runs} <= {RUN.hex(), OTHER_RUN.hex()}
        assert last.id.hex() in {one.where for one in concerned}
        with checkpoints._writing() as database:
            database.execute("UPDATE checkpoint SET packed = ? WHERE id = ?", (b"\x00", last.id))
        where = last.id.hex()
        problem = f"checkpoint {where} differs from its digest"
        assert Finding("checkpoint", where, problem, [RUN.hex()]) in list(store.verify())
