"""Facts by their numbers, changes by their commits, whoever commits."""

from __future__ import annotations

import threading

from conformance.suite.base import OnEngine, batch_of, numbers, recorded_run, run_of
from support.tapes.batches import facts_of, span_of
from support.tapes.handmade import INSTANCE, TRACE

from playhead_receiver.storage import Batch, Query, Store
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class Ordering(OnEngine):
    def test_facts_come_in_the_order_of_their_numbers_whatever_the_arrival(self, store: Store):
        facts = facts_of(b"i" * 16, range(30))
        for start in (20, 0, 10, 25, 5, 15):
            store.commit(Batch(facts=facts[start : start + 5][::-1]))
        assert list(store.tape(b"i" * 16).facts()) == facts
        assert numbers(store.tape(b"i" * 16).facts(after=17)) == list(range(18, 30))
        assert numbers(store.tape(b"i" * 16).facts(after=29)) == []

    def test_instances_do_not_mix(self, store: Store):
        one, two = facts_of(b"1" * 16, range(5)), facts_of(b"2" * 16, range(5))
        store.commit(Batch(facts=[fact for pair in zip(one, two, strict=True) for fact in pair]))
        assert list(store.tape(b"1" * 16).facts()) == one
        assert list(store.tape(b"2" * 16).facts()) == two
        assert list(store.tape(b"3" * 16).facts()) == []

    def test_holes_in_the_numbers_are_gaps(self, store: Store):
        facts = facts_of(b"i" * 16, range(30))
        store.commit(Batch(facts=facts[3:6] + facts[9:10]))
        tape = store.tape(b"i" * 16)
        assert tape.gaps() == [(0, 2), (6, 8)]
        assert tape.last() == 9
        store.commit(Batch(facts=facts[:3] + facts[12:14]))
        assert tape.gaps() == [(6, 8), (10, 11)]
        assert run_of(store, b"i" * 16).missing == [
            ((b"i" * 16).hex(), 6, 8),
            ((b"i" * 16).hex(), 10, 11),
        ]
        store.commit(Batch(facts=facts[6:12]))
        assert tape.gaps() == []
        assert store.tape(b"j" * 16).gaps() == []
        assert store.tape(b"j" * 16).last() == -1

    def test_what_heartbeat_or_exit_announce_and_did_not_come_is_a_gap(self, store: Store):
        made = recorded_run()
        made.fact(
            e.PLAYHEAD_PROCESS_HEARTBEAT,
            attributes={a.PLAYHEAD_PROCESS_LAST_SEQ: len(made.facts) + 4},
        )
        store.commit(batch_of(made))
        last = len(made.facts) - 1
        assert store.tape(INSTANCE).gaps() == [(last + 1, last + 4)]
        assert run_of(store, TRACE).missing == [(INSTANCE.hex(), last + 1, last + 4)]

    def test_changes_come_in_commit_order_in_portions(self, store: Store):
        committed: list[object] = []
        for beat in range(6):
            facts = facts_of(b"i" * 16, range(beat * 4, beat * 4 + 4))
            spans = [span_of(b"i" * 16, beat * 2 + 1), span_of(b"j" * 16, beat * 2 + 2)]
            store.commit(Batch(spans, facts))
            committed += [*facts, *spans]
        for limit in (1, 3, 1000):
            seen: list[object] = []
            positions: list[int] = [0]
            while changes := list(store.changes(positions[-1], limit)):
                assert len(changes) <= limit
                seen += [change.item for change in changes]
                positions += [change.position for change in changes]
            assert seen == committed
            assert positions == list(range(len(committed) + 1))
        assert store.position() == len(committed)

    def test_many_threads_commit_at_once(self, store: Store):
        receipts: list[int] = []

        def commit(number: int) -> None:
            instance = bytes([number]) * 16
            for beat in range(10):
                batch = Batch(
                    [span_of(instance, beat + 1)], facts_of(instance, [beat * 2, beat * 2 + 1])
                )
                receipts.append(store.commit(batch).facts_new)

        threads = [threading.Thread(target=commit, args=(number,)) for number in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert receipts == [2] * 80
        for number in range(1, 9):
            assert numbers(store.tape(bytes([number]) * 16).facts()) == list(range(20))
            assert len(list(store.spans(bytes([number]) * 16))) == 10
        names = sorted(run.name for run in store.runs(Query()))
        assert names == [f"run-{number}" for number in range(1, 9)]
