"""The runs of a process that serves: each of its requests."""

from __future__ import annotations

from itertools import islice

import pytest
from conformance.suite.base import OnEngine, living, run_of
from support.tapes import serving
from support.tapes.batches import span_of
from support.tapes.handmade import INSTANCE, TRACE
from support.tapes.serving import service_facts, trace_of
from support.whole_store import WholeStore

from playhead_core.facts import Content, ExchangeId, Fact
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_core.tape.slices import slice_of
from playhead_receiver.storage import Batch, Store
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class Services(OnEngine):
    @pytest.mark.parametrize("lost", [(), (40, 41, 90)])
    def test_the_run_of_a_request_needs_little_of_its_process(self, store: Store, lost: tuple[int, ...]):
        facts = [fact for fact in service_facts(60) if fact.seq not in lost]
        whole, places = MemoryTape(facts), iter(facts)
        for size in (5, 1, 9, 2, 3) * 40:
            store.commit(Batch(facts=list(islice(places, size))))
        for number in (0, 1, 13, 59):
            part = store.tape_of(serving.INSTANCE, trace_of(number))
            assert len(list(part.facts())) < 60
            sliced, wanted = (slice_of(tape, trace_of(number)) for tape in (part, whole))
            assert list(sliced.facts()) == list(wanted.facts())
            assert any(fact.body == Content.of(b"later, by %d" % number) for fact in sliced.facts())
        process = store.tape_of(serving.INSTANCE, serving.PROCESS)
        assert list(process.facts()) == facts

    def test_a_process_whose_first_request_came_late_is_read_whole(self, store: Store):
        facts = service_facts(20, wide=1)
        for some in (facts[:2], facts[5:9], facts[2:5], facts[9:]):
            store.commit(Batch(facts=some))
        assert list(store.tape_of(serving.INSTANCE, trace_of(0)).facts()) == facts

    @pytest.mark.parametrize("first", ["parent", "child"])
    @pytest.mark.parametrize(("mode", "listed"), [("record", "service"), ("replay", "replay")])
    def test_a_process_whose_child_serves_is_a_service_whoever_is_heard_first(
        self, store: Store, mode: str, listed: str, first: str
    ):
        parent, child, trace = INSTANCE, b"\x53" * 16, serving.PROCESS
        began = {a.PLAYHEAD_RUN_MODE: mode}
        below = {a.PLAYHEAD_PROCESS_PARENT_INSTANCE: parent.hex()}
        asked = {a.PLAYHEAD_EXCHANGE_DIRECTION: "in", a.PLAYHEAD_ASK_KEY: "GET /"}
        request = ExchangeId(9, "inbound", 0)
        begins = e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_EXCHANGE_REQUEST
        facts = [
            [Fact(1, 7, begins[0], trace, attributes=began, instance=parent, seq=0)],
            [
                Fact(2, 8, begins[0], trace, attributes=below, instance=child, seq=0),
                Fact(3, 9, begins[1], trace_of(0), b"", request, None, asked, None, child, 1),
            ],
        ]
        for some in facts if first == "parent" else reversed(facts):
            store.commit(Batch(facts=some))
        assert run_of(store, trace).mode == listed

    def test_what_a_deleted_request_has_read_is_gone(self, store: WholeStore):
        facts = service_facts(5)
        store.commit(Batch(facts=facts))
        store.delete([trace_of(number) for number in (0, 1)])
        read = {fact.body.inline for fact in store.tape(serving.INSTANCE).facts() if fact.body}
        assert {b"boot", b"read by 2", b"later, by 2", b"done for 2"} < read
        assert not {b"read by 0", b"later, by 1", b"done for 1"} & read
        for number in (2, 4):
            sliced, wanted = (
                slice_of(tape, trace_of(number))
                for tape in (store.tape_of(serving.INSTANCE, trace_of(number)), MemoryTape(facts))
            )
            assert list(sliced.facts()) == list(wanted.facts())

    def test_a_request_to_a_service_is_a_run_of_its_own(self, store: Store):
        service = living()
        inbound = span_of(b"r" * 16, 7, service="refund", instance=INSTANCE)
        store.commit(Batch([inbound], service.facts))
        run = run_of(store, b"r" * 16)
        assert (run.name, run.status) == ("refund-2", "success")
        assert run.instances == [INSTANCE.hex()]
        assert run_of(store, TRACE).status == "running"
