"""What every engine of the Store has to do. A subclass names its engine; see test_sqlite.py."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from conformance.engines import ENGINES
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support import serving
from support.batches import START_NS, facts_of, span_of
from support.handmade import INSTANCE, ROOT, TRACE, HandMade, span_id
from support.serving import service_facts, trace_of

from playhead_receiver.store import (
    Batch,
    Query,
    Receipt,
    RunSummary,
    Sort,
    Store,
    StoredSpan,
    Upkeep,
    place_of,
)
from playhead_receiver.store.listing import measure_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import (
    CorruptTape,
    MalformedOtlp,
    RunAmbiguous,
    RunUnknown,
    StoreUnavailable,
    TapeError,
    UsageError,
)
from playhead_semconv.facts import Content, ExchangeId, Fact, digest_of
from playhead_semconv.folds import fold_exchanges
from playhead_semconv.otlp import set_attributes
from playhead_semconv.slices import slice_of
from playhead_semconv.tapes import MemoryTape

WRITING_PROCESS = Path(__file__).parent / "writing_process.py"
DEADLINE_S = 60.0


CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}


def _usage(tokens: int) -> dict[str, int]:
    return {"gen_ai__usage__input_tokens": 1000 * tokens, "gen_ai__usage__output_tokens": 10 * tokens}


def recorded_run() -> HandMade:
    made = HandMade().start()
    made.wait(0.5).chat(chunks=(b"data: a\n\n", b"data: b\n\n"))
    made.wait(0.5).tool("search", '{"order": 81}')
    made.wait(0.5).chat(tokens=(900, 30))
    return made.exit()


def batch_of(made: HandMade) -> Batch:
    return Batch(spans=made.spans, facts=made.facts)


def numbers(facts: Iterator[Fact]) -> list[int]:
    return [fact.seq for fact in facts]


def run_of(store: Store, trace_id: bytes) -> RunSummary:
    return store.resolve(trace_id.hex())


class StoreSuite:
    """``engine``: a name in `conformance.engines.ENGINES`."""

    engine: str

    @pytest.fixture
    def place(self, tmp_path: Path) -> Path:
        return tmp_path / "data"

    @pytest.fixture
    def store(self, place: Path) -> Iterator[Store]:
        opened = ENGINES[self.engine].writer(place)
        yield opened
        opened.close()

    @pytest.fixture
    def reader(self, place: Path) -> Iterator[Callable[[], Store]]:
        opened: list[Store] = []

        def open_reader() -> Store:
            opened.append(ENGINES[self.engine].reader(place))
            return opened[-1]

        yield open_reader
        for one in opened:
            one.close()

    # Services

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

    def test_what_a_deleted_request_has_read_is_gone(self, store: Upkeep):
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

    def test_forks_are_listed_by_their_origin(self, store: Store):
        made = HandMade().start()
        store.commit(batch_of(made.exit()))
        trace = made.trace_id.hex()
        for number, mode in enumerate(("fork", "resume", "replay"), 1):
            at = {a.PLAYHEAD_RUN_MODE: mode, a.PLAYHEAD_RUN_ORIGIN: f"{trace}-{span_id(ROOT).hex()}"}
            id = bytes([number]) * 16
            start = Fact(1, 1, e.PLAYHEAD_PROCESS_START, id, attributes=at, instance=id, seq=0)
            store.commit(Batch(facts=[start]))
        found = list(store.runs(Query(origin=trace)))
        assert sorted(run.mode for run in found) == ["fork", "resume"]
        assert len(list(store.runs(Query(origin=trace, mode=None)))) == 3
        assert list(store.runs(Query(origin="00" + trace[2:]))) == []

    # Keeping

    def test_what_was_committed_comes_back(self, store: Store):
        made = recorded_run()
        receipt = store.commit(batch_of(made))
        count = len(made.facts) + len(made.spans)
        assert receipt == Receipt(len(made.spans), len(made.facts), count)
        assert list(store.tape(INSTANCE).facts()) == made.facts
        assert list(store.spans(TRACE)) == made.spans

    def test_it_is_there_after_closing_and_opening_again(self, store: Store, place: Path):
        made = recorded_run()
        store.commit(batch_of(made))
        store.close()
        store.close()
        again = ENGINES[self.engine].writer(place)
        assert list(again.tape(INSTANCE).facts()) == made.facts
        assert list(again.spans(TRACE)) == made.spans
        assert again.position() == len(made.facts) + len(made.spans)
        assert again.commit(Batch(facts=facts_of(b"x" * 16, range(2)))).position == again.position()
        again.close()

    def test_an_empty_batch_changes_nothing(self, store: Store):
        assert store.commit(Batch()) == Receipt(0, 0, 0)
        assert list(store.changes(0)) == []

    def test_a_closed_store_says_so(self, store: Store):
        store.close()
        with pytest.raises(StoreUnavailable):
            store.commit(Batch(facts=facts_of(b"x" * 16, range(2))))
        with pytest.raises(StoreUnavailable):
            list(store.runs(Query()))

    def test_resending_is_harmless(self, store: Store):
        made = recorded_run()
        first = store.commit(batch_of(made))
        again = store.commit(batch_of(made))
        assert again == Receipt(0, 0, first.position)
        assert list(store.tape(INSTANCE).facts()) == made.facts
        assert list(store.spans(TRACE)) == made.spans
        assert len(list(store.changes(0))) == first.position

    def test_a_batch_that_was_partly_there_adds_the_rest(self, store: Store):
        instance = b"i" * 16
        facts = facts_of(instance, range(20))
        spans = [span_of(instance, number) for number in range(1, 8)]
        assert store.commit(Batch(spans[:3], facts[4:9])).facts_new == 5
        receipt = store.commit(Batch(spans, facts))
        assert (receipt.spans_new, receipt.facts_new) == (4, 15)
        assert list(store.tape(instance).facts()) == facts
        assert sorted(store.spans(instance), key=lambda span: span.span_id) == spans

    def test_within_a_batch_what_stands_twice_counts_once(self, store: Store):
        facts = facts_of(b"i" * 16, range(3))
        span = span_of(b"i" * 16, 1)
        receipt = store.commit(Batch([span, span], facts + facts))
        assert (receipt.spans_new, receipt.facts_new, receipt.position) == (1, 3, 4)

    def test_of_facts_with_one_number_the_first_is_kept(self, store: Store):
        store.commit(Batch(facts=facts_of(b"i" * 16, range(3))))
        receipt = store.commit(Batch(facts=facts_of(b"i" * 16, range(5), text="other")))
        assert receipt.facts_new == 2
        bodies = [fact.body.inline for fact in store.tape(b"i" * 16).facts() if fact.body]
        assert bodies == [b"chunk 0", b"chunk 1", b"chunk 2", b"other 3", b"other 4"]

    def test_of_spans_with_one_id_the_one_that_ended_later_is_kept(self, store: Store):
        early = span_of(b"i" * 16, 1, end_ns=START_NS + 100, text="early")
        same_end = span_of(b"i" * 16, 1, end_ns=START_NS + 100, text="same end")
        late = span_of(b"i" * 16, 1, end_ns=START_NS + 200, text="late")
        before = store.commit(Batch([early]))
        assert store.commit(Batch([same_end])) == Receipt(0, 0, before.position)
        assert list(store.spans(b"i" * 16)) == [early]
        replaced = store.commit(Batch([late]))
        assert replaced == Receipt(0, 0, before.position + 1)
        assert store.commit(Batch([early])) == Receipt(0, 0, replaced.position)
        assert list(store.spans(b"i" * 16)) == [late]
        assert [(change.position, change.item) for change in store.changes(0)] == [
            (replaced.position, late)
        ]

    def test_a_span_that_is_none_spoils_its_batch_only(self, store: Store):
        good = span_of(b"i" * 16, 1)
        with pytest.raises(MalformedOtlp, match="holds 0 spans"):
            store.commit(Batch([good, StoredSpan(b"i" * 16, b"2" * 8, b"")], facts_of(b"i" * 16, [0])))
        assert list(store.spans(b"i" * 16)) == []
        assert list(store.tape(b"i" * 16).facts()) == []
        assert store.commit(Batch([good])).spans_new == 1

    def test_every_field_of_a_fact_comes_back(self, store: Store):
        fact = Fact(
            START_NS,
            (1 << 64) - 1,
            e.PLAYHEAD_EFFECT,
            attributes={
                "text": "é\0",
                "int": -(1 << 63),
                "half": 0.5,
                "yes": True,
                "bytes": b"\0\xff",
                "list": ["a", 1, None, [b"b"]],
                "map": {"a": {"b": []}},
                "none": None,
            },
            body=Content(b"d" * 32, 70, b"tail", b"b" * 32, 66),
            instance=b"i" * 16,
            seq=1 << 40,
        )
        store.commit(Batch(facts=[fact]))
        assert list(store.tape(b"i" * 16).facts()) == [fact]

    def test_spans_come_back_byte_for_byte(self, store: Store):
        envelope = ResourceSpans.FromString(span_of(b"i" * 16, 1, text="x").otlp)
        span = envelope.scope_spans[0].spans[0].SerializeToString()
        unknown_field = b"\xfa\x07\x03new"
        scope = b"\x12" + bytes([len(span) + 6]) + span + unknown_field
        otlp = b"\x12" + bytes([len(scope)]) + scope
        assert ResourceSpans.FromString(otlp).scope_spans[0].spans[0].name == "chat gpt-4o"
        stored = StoredSpan(b"i" * 16, (1).to_bytes(8, "big"), otlp)
        store.commit(Batch([stored]))
        assert list(store.spans(b"i" * 16)) == [stored]

    def test_resources_of_instances_are_kept(self, store: Store):
        assert store.resource(b"i" * 16) is None
        store.commit(Batch(facts=facts_of(b"i" * 16, [0]), resources={b"i" * 16: b"\x10\x01"}))
        assert store.resource(b"i" * 16) == b"\x10\x01"

    # Order

    def test_resources_of_spans_are_told_once_each(self, store: Store):
        spans = [span_of(TRACE, 1, service="a"), span_of(TRACE, 2, service="a")]
        store.commit(Batch([*spans, span_of(b"o" * 16, 1, service="b")]))
        found = [ResourceSpans.FromString(one).resource for one in store.resources()]
        assert sorted(one.attributes[0].value.string_value for one in found) == ["a", "b"]

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

    # Content

    def test_contents_are_resolved_along_their_bases(self, store: Store):
        first = Content.of(b"system, question 1")
        second = Content.of(b"system, question 1, answer 1, question 2")
        third = Content.of(b"system, question 1, answer 1, other")
        facts = facts_of(b"i" * 16, range(3))
        bodies = [
            first,
            Content(second.digest, second.size, b", answer 1, question 2", first.digest, 18),
            Content(third.digest, third.size, b"other", second.digest, 30),
        ]
        facts = [
            Fact(fact.time_ns, 1, e.PLAYHEAD_EXCHANGE_REQUEST, body=body, instance=b"i" * 16, seq=number)
            for number, (fact, body) in enumerate(zip(facts, bodies, strict=True))
        ]
        for fact in facts:
            store.commit(Batch(facts=[fact]))
        tape = store.tape(b"i" * 16)
        assert tape.read(bodies[2]) == b"system, question 1, answer 1, other"
        assert tape.read(bodies[1]) == b"system, question 1, answer 1, question 2"
        assert tape.read(Content(first.digest, first.size)) == b"system, question 1"
        assert tape.read(Content.chunk(b"whole")) == b"whole"

    def test_blobs_are_put_together_from_their_parts(self, store: Store):
        parts = [bytes([number]) * 700_000 for number in range(3)]
        whole = Content.of(b"".join(parts))
        facts = [
            Fact(
                START_NS,
                1,
                e.PLAYHEAD_BLOB,
                attributes={
                    a.PLAYHEAD_BLOB_DIGEST: whole.digest.hex(),
                    a.PLAYHEAD_BLOB_OFFSET: number * 700_000,
                    a.PLAYHEAD_BLOB_SIZE: whole.size,
                },
                body=Content.chunk(part),
                instance=b"i" * 16,
                seq=number,
            )
            for number, part in enumerate(parts)
        ]
        for fact in reversed(facts):
            store.commit(Batch(facts=[fact]))
        tape = store.tape(b"i" * 16)
        assert tape.read(Content(whole.digest, whole.size)) == b"".join(parts)
        assert list(tape.facts()) == facts
        tail = Content.of(b"".join(parts) + b"!")
        assert tape.read(Content(tail.digest, tail.size, b"!", whole.digest, whole.size)) == (
            b"".join(parts) + b"!"
        )

    def test_a_tail_of_blobs_is_put_together_and_gone_on_from(self, store: Store):
        first = Content.of(b"question")
        tail = bytes(1_500_000)
        whole = first.inline + tail if first.inline else b""
        second = Content(digest_of(whole), len(whole), None, first.digest, first.size)
        last = whole + b"answer"
        third = Content(digest_of(last), len(last), b"answer", second.digest, second.size)
        parts = [
            Fact(
                START_NS,
                1,
                e.PLAYHEAD_BLOB,
                attributes={
                    a.PLAYHEAD_BLOB_DIGEST: second.digest.hex(),
                    a.PLAYHEAD_BLOB_OFFSET: first.size + offset,
                    a.PLAYHEAD_BLOB_SIZE: second.size,
                },
                body=Content.chunk(tail[offset : offset + (1 << 20)]),
            )
            for offset in (0, 1 << 20, 0, 1 << 20)  # it was said twice
        ]
        asked = [
            Fact(START_NS, 1, e.PLAYHEAD_EXCHANGE_REQUEST, body=body) for body in (first, second, third)
        ]
        facts = [
            msgspec.structs.replace(fact, instance=b"i" * 16, seq=number)
            for number, fact in enumerate([asked[0], *parts, *asked[1:]])
        ]
        store.commit(Batch(facts=facts))
        tape = store.tape(b"i" * 16)
        assert tape.read(second) == whole
        assert store.tape(b"i" * 16).read(third) == last
        assert store.tape(b"i" * 16).read(Content(second.digest, second.size)) == whole

    def test_content_that_is_not_there_or_not_true_is_refused(self, store: Store):
        lie = Content(b"l" * 32, 3, b"lie")
        fact = Fact(START_NS, 1, e.PLAYHEAD_EXCHANGE_REQUEST, body=lie, instance=b"i" * 16, seq=0)
        store.commit(Batch(facts=[fact]))
        tape = store.tape(b"i" * 16)
        with pytest.raises(CorruptTape, match="differs from its digest"):
            tape.read(lie)
        with pytest.raises(TapeError, match="is not on the tape"):
            tape.read(Content(b"m" * 32, 3))
        with pytest.raises(TapeError, match="is not on the tape"):
            store.tape(b"j" * 16).read(Content(b"m" * 32, 3))

    def test_one_exchange_is_found_without_a_walk(self, store: Store):
        made = recorded_run()
        for fact in made.facts:
            store.commit(Batch(facts=[fact]))
        tape = store.tape(INSTANCE)
        expected = fold_exchanges(made.facts)
        assert len(expected) == 2
        for id, exchange in expected.items():
            assert tape.exchange(id) == exchange
        assert tape.exchange(ExchangeId(9, "http", 0)) is None

    # Runs

    def test_a_run_is_summed_up(self, store: Store):
        made = recorded_run()
        store.commit(batch_of(made))
        assert run_of(store, TRACE) == RunSummary(
            name="refund-1",
            trace_id=TRACE.hex(),
            root_span_id=span_id(ROOT).hex(),
            agent="refund",
            status="success",
            started_ns=made.facts[0].time_ns,
            ended_ns=made.facts[-1].time_ns,
            steps=3,
            errors=0,
            input_tokens=1712,
            output_tokens=94,
            models=["gpt-4o"],
            instances=[INSTANCE.hex()],
            missing=[],
            spans=6,
            last_ns=made.facts[-1].time_ns,
            cost_usd=0.00522,
            tools=["search"],
        )

    def test_runs_are_named_after_their_agent_and_never_alike(self, store: Store):
        for number in range(1, 4):
            trace = bytes([number]) * 16
            store.commit(Batch([span_of(trace, 1, service="Order Desk")]))
        store.commit(Batch([span_of(b"u" * 16, 1, service="unknown_service:python")]))
        store.commit(Batch([span_of(b"v" * 16, 1, service="")]))
        store.commit(Batch([span_of(b"w" * 16, 1, service="", gen_ai__agent__name="gpt-4")]))
        names = {run.trace_id[:2]: (run.name, run.agent) for run in store.runs(Query())}
        assert names == {
            "01": ("order-desk-1", "Order Desk"),
            "02": ("order-desk-2", "Order Desk"),
            "03": ("order-desk-3", "Order Desk"),
            "75": ("run-1", "run"),
            "76": ("run-2", "run"),
            "77": ("gpt_4-1", "gpt-4"),
        }

    def test_a_run_is_named_after_its_agent_whichever_process_is_heard_first(self, store: Store):
        started = e.PLAYHEAD_PROCESS_START
        child = Fact(START_NS, 1, started, TRACE, span_id(2), instance=b"c" * 16, seq=0)
        child.attributes.update({a.PLAYHEAD_RUN_AGENT: "-c", a.PLAYHEAD_PROCESS_PARENT_AGENT: "refund"})
        parent = Fact(START_NS, 1, started, TRACE, span_id(1), instance=b"p" * 16, seq=0)
        parent.attributes[a.PLAYHEAD_RUN_AGENT] = "refund"
        for fact in (child, parent):
            store.commit(Batch([], [fact]))
        assert [(run.name, run.agent) for run in store.runs(Query())] == [("refund-1", "refund")]

    def test_a_run_that_goes_on_is_running_and_its_open_spans_count(self, store: Store):
        made = self._living()
        call = made.begin("chat gpt-4o", kind=3, gen_ai__operation__name="chat")
        store.commit(batch_of(made))
        run = run_of(store, TRACE)
        assert (run.status, run.ended_ns, run.steps) == ("running", None, 1)
        assert [fact.span_id for fact in store.pending(TRACE)] == [span_id(ROOT), span_id(call)]
        made.finish(call)
        store.commit(batch_of(made))
        assert [fact.span_id for fact in store.pending(TRACE)] == [span_id(ROOT)]
        assert run_of(store, TRACE).steps == 1

    def test_a_span_may_come_before_its_start(self, store: Store):
        made = recorded_run()
        store.commit(Batch(spans=made.spans))
        store.commit(Batch(facts=made.facts))
        assert list(store.pending(TRACE)) == []
        assert run_of(store, TRACE).steps == 3

    def test_a_run_whose_process_died_is_interrupted_and_shows_how_far_it_came(self, store: Store):
        made = HandMade().start()
        made.wait(1).chat()
        made.wait(1).begin("chat gpt-4o", kind=3, gen_ai__operation__name="chat")
        store.commit(batch_of(made))
        run = run_of(store, TRACE)
        assert (run.status, run.steps, run.root_span_id) == ("interrupted", 2, span_id(ROOT).hex())
        assert run.ended_ns == made.facts[-1].time_ns

    def test_a_heartbeat_keeps_a_run_alive_for_three_intervals(self, store: Store):
        made = self._living(back_s=2.0, heartbeat_ms=1000)
        store.commit(batch_of(made))
        assert run_of(store, TRACE).status == "running"
        made = self._living(back_s=4.0, heartbeat_ms=1000, instance=b"2" * 16, trace=b"2" * 16)
        store.commit(batch_of(made))
        assert run_of(store, b"2" * 16).status == "interrupted"

    def test_a_clock_that_is_ahead_does_not_keep_the_dead_alive(self, store: Store):
        made = self._living(back_s=-3600.0, heartbeat_ms=1)
        store.commit(batch_of(made))
        deadline = time.monotonic() + DEADLINE_S
        while run_of(store, TRACE).status != "interrupted":
            assert time.monotonic() < deadline

    def test_an_interval_that_nobody_means_is_not_taken(self, store: Store):
        store.commit(batch_of(self._living(back_s=20.0, heartbeat_ms=(1 << 63) - 1)))
        assert run_of(store, TRACE).status == "interrupted"

    @pytest.mark.parametrize("how", ["exit status", "signal", "exception", "root span"])
    def test_a_run_fails_by_exit_status_exception_or_root_span(self, store: Store, how: str):
        made = HandMade().start()
        made.chat()
        made.finish(ROOT, error="ValueError: no" if how == "root span" else "")
        attributes: dict[str, object] = {
            a.PLAYHEAD_PROCESS_EXIT_CODE: {"exit status": 1, "signal": -15}.get(how, 0),
            a.PLAYHEAD_PROCESS_LAST_SEQ: len(made.facts),
        }
        if how == "exception":
            attributes[a.PLAYHEAD_ERROR_QUALNAME] = "ValueError"
        made.fact(e.PLAYHEAD_PROCESS_EXIT, attributes=attributes)
        store.commit(batch_of(made))
        assert run_of(store, TRACE).status == "failure"

    def test_errors_are_failed_steps_not_failed_attempts(self, store: Store):
        trace = b"t" * 16
        store.commit(
            Batch(
                [
                    span_of(trace, 1, name="run", error=True),
                    span_of(trace, 2, parent=1, gen_ai__operation__name="chat"),
                    span_of(trace, 3, parent=2, error=True, http__request__method="POST"),
                    span_of(trace, 4, parent=2, http__request__method="POST"),
                    span_of(trace, 5, parent=1, error=True, gen_ai__operation__name="execute_tool"),
                ]
            )
        )
        run = run_of(store, trace)
        assert (run.steps, run.errors, run.status) == (2, 1, "failure")

    def test_a_request_outside_of_any_call_is_a_step(self, store: Store):
        trace = b"t" * 16
        asked = {"http__request__method": "GET"}
        store.commit(
            Batch(
                [
                    span_of(trace, 1, name="run"),
                    span_of(trace, 2, parent=1, gen_ai__operation__name="invoke_agent"),
                    span_of(trace, 3, parent=2, **asked),
                    span_of(trace, 4, parent=3, **asked),
                    span_of(trace, 5, parent=1, error=True, **asked),
                    span_of(trace, 6, parent=1, gen_ai__operation__name="execute_tool"),
                    span_of(trace, 7, parent=6, error=True, **asked),
                ]
            )
        )
        run = run_of(store, trace)
        assert (run.steps, run.errors) == (3, 1)

    def test_tokens_that_parents_sum_up_are_not_counted_twice(self, store: Store):
        trace = b"t" * 16
        used = {"gen_ai__usage__input_tokens": 100, "gen_ai__usage__output_tokens": 10}
        sums = {"gen_ai__usage__input_tokens": 200, "gen_ai__usage__output_tokens": 20}
        models = {"gen_ai__request__model": "asked", "gen_ai__response__model": "answered"}
        store.commit(
            Batch(
                [
                    span_of(trace, 1, gen_ai__operation__name="invoke_agent", **sums),
                    span_of(trace, 2, parent=1, gen_ai__operation__name="chat", **used, **models),
                    span_of(trace, 3, parent=1, name="chain"),
                    span_of(trace, 4, parent=3, gen_ai__operation__name="chat", **used),
                ]
            )
        )
        run = run_of(store, trace)
        assert (run.input_tokens, run.output_tokens, run.steps) == (200, 20, 2)
        assert run.models == ["answered"]

    def test_a_trace_without_a_tape_is_a_run_of_its_service(self, store: Store):
        child = span_of(b"f" * 16, 2, parent=1, service="shop")
        store.commit(Batch([child]))
        run = run_of(store, b"f" * 16)
        assert (run.name, run.agent, run.status) == ("shop-1", "shop", "running")
        assert (run.root_span_id, run.ended_ns, run.instances) == ("", None, [])
        root = span_of(b"f" * 16, 1, service="shop")
        store.commit(Batch([root]))
        run = run_of(store, b"f" * 16)
        assert (run.status, run.root_span_id) == ("success", root.span_id.hex())

    def test_the_root_may_have_a_parent_in_another_process(self, store: Store):
        local = span_of(b"f" * 16, 2, parent=9, flags=0x300)
        inner = span_of(b"f" * 16, 3, parent=2, error=True, flags=0x100)
        store.commit(Batch([inner, local]))
        run = run_of(store, b"f" * 16)
        assert (run.status, run.root_span_id, run.errors) == ("success", local.span_id.hex(), 1)

    def test_a_child_process_is_an_instance_of_the_run_that_started_it(self, store: Store):
        made = recorded_run()
        store.commit(batch_of(made))
        child = HandMade(instance=b"c" * 16)
        child.at_ns = made.at_ns
        child.fact(
            e.PLAYHEAD_PROCESS_START,
            span=0xB0,
            attributes={a.PLAYHEAD_RUN_AGENT: "helper"},
        )
        child.begin("run helper.py", number=0xB0, parent=1)
        child.fact(e.PLAYHEAD_PROCESS_EXIT, attributes={a.PLAYHEAD_PROCESS_EXIT_CODE: 3})
        store.commit(batch_of(child))
        run = run_of(store, TRACE)
        assert run.instances == [INSTANCE.hex(), (b"c" * 16).hex()]
        assert (run.name, run.status, run.root_span_id) == ("refund-1", "success", span_id(ROOT).hex())

    def test_a_request_to_a_service_is_a_run_of_its_own(self, store: Store):
        service = self._living()
        inbound = span_of(b"r" * 16, 7, service="refund", instance=INSTANCE)
        store.commit(Batch([inbound], service.facts))
        run = run_of(store, b"r" * 16)
        assert (run.name, run.status) == ("refund-2", "success")
        assert run.instances == [INSTANCE.hex()]
        assert run_of(store, TRACE).status == "running"

    def test_replays_are_listed_apart_and_name_their_origin(self, store: Store):
        made = recorded_run()
        store.commit(batch_of(made))
        origin = f"{TRACE.hex()}-{span_id(ROOT).hex()}"
        replay = HandMade(instance=b"p" * 16, trace_id=b"p" * 16)
        replay.start(**{a.PLAYHEAD_RUN_MODE: "replay", a.PLAYHEAD_RUN_ORIGIN: origin})
        store.commit(Batch(spans=replay.spans, facts=replay.facts))
        assert [run.trace_id for run in store.runs(Query())] == [TRACE.hex()]
        (listed,) = store.runs(Query(mode="replay"))
        assert (listed.trace_id, listed.mode, listed.origin) == ((b"p" * 16).hex(), "replay", origin)
        assert len(list(store.runs(Query(mode=None)))) == 2

    def test_runs_are_listed_newest_first_and_filtered(self, store: Store):
        for number in range(1, 6):
            trace = bytes([number]) * 16
            service = "odd" if number % 2 else "even"
            store.commit(Batch([span_of(trace, number, service=service, error=number == 3)]))
        assert [run.name for run in store.runs(Query())] == [
            "odd-3",
            "even-2",
            "odd-2",
            "even-1",
            "odd-1",
        ]
        assert [run.name for run in store.runs(Query(agent="even"))] == ["even-2", "even-1"]
        assert [run.name for run in store.runs(Query(status="failure"))] == ["odd-2"]
        assert [run.name for run in store.runs(Query(limit=2))] == ["odd-3", "even-2"]
        assert list(store.runs(Query(agent="nobody"))) == []

    def test_more_runs_than_are_read_at_a_time_are_listed_once_each(self, store: Store):
        spans = [
            span_of(number.to_bytes(16, "big"), 1 + number // 10, error=number % 40 == 0)
            for number in range(1, 201)
        ]
        store.commit(Batch(spans))
        listed = [int(run.trace_id, 16) for run in store.runs(Query(limit=1000))]
        assert listed == sorted(range(1, 201), key=lambda number: (-(number // 10), number))
        failed = [int(run.trace_id, 16) for run in store.runs(Query(status="failure", limit=3))]
        assert failed == [200, 160, 120]
        assert len(list(store.runs(Query(status="success", limit=1000)))) == 195

    @pytest.mark.parametrize("sort", get_args(Sort))
    @pytest.mark.parametrize("ascending", [False, True])
    def test_runs_are_paged_in_any_order(self, store: Store, sort: Sort, ascending: bool):
        for number in range(1, 24):
            trace = number.to_bytes(16, "big")
            end_ns = START_NS + 1_000_000 * (number % 4)
            spans = [span_of(trace, 1 + number % 3, end_ns=end_ns, **CHAT, **_usage(number % 5))]
            others = range(number % 4)
            spans += [span_of(trace, 100 + n, parent=1, error=n > 0, **CHAT) for n in others]
            store.commit(Batch(spans))
        whole = list(store.runs(Query(sort=sort, ascending=ascending)))
        assert len(whole) == 23
        measures = [measure_of(run, sort) for run in whole]
        assert measures == sorted(measures, reverse=not ascending)
        assert len(set(measures)) > 2 or sort == "cost"
        pages: list[RunSummary] = []
        query = Query(sort=sort, ascending=ascending, limit=5)
        while page := list(store.runs(query)):
            pages += page
            query = msgspec.structs.replace(query, after=place_of(page[-1], query))
        assert pages == whole

    def test_runs_are_found_by_what_they_used(self, store: Store):
        for number in range(1, 13):
            trace = bytes([number]) * 16
            used: dict[str, Any] = {
                "gen_ai__provider__name": "openai" if number % 2 else "anthropic",
                "gen_ai__request__model": "gpt-4o" if number % 2 else "claude-sonnet-4-5",
                "gen_ai__conversation__id": f"talk {number // 4}",
                "gen_ai__agent__version": f"1.{number % 3}",
            }
            spans = [
                span_of(trace, 1, name="root"),
                span_of(trace, 2, parent=1, gen_ai__operation__name="chat", **used, **_usage(number)),
                span_of(
                    trace,
                    3,
                    parent=1,
                    error=number > 8,
                    gen_ai__operation__name="execute_tool",
                    gen_ai__tool__name=f"tool {number % 5}",
                    **({"error.type": "timeout"} if number > 10 else {}),
                ),
            ]
            store.commit(Batch(spans))

        def found(**given: Any) -> list[int]:
            return [int(run.trace_id[:2], 16) for run in store.runs(Query(ascending=True, **given))]

        assert found(provider="anthropic") == [2, 4, 6, 8, 10, 12]
        assert found(model="gpt-4o", version="1.1") == [1, 7]
        assert found(conversation="talk 1") == [4, 5, 6, 7]
        assert found(tool="tool 3") == [3, 8]
        assert found(tool="tool 3", sort="cost", model="gpt-4o") == [3]
        assert found(has_errors=True) == [9, 10, 11, 12]
        assert found(has_errors=False, limit=2) == [1, 2]
        assert found(error_type="timeout", status="success") == [11, 12]
        assert found(error_type="_OTHER", agent="refund") == [9, 10]
        # 1000 and 10 tokens a step: $ 0.0026 of one model, $ 0.00315 of the other
        assert found(cost_from_usd=0.0286, cost_below_usd=0.0378) == [10, 11]
        assert found(model="gpt-5000") == found(environment="prod") == []
        (twelve,) = store.runs(Query(sort="cost", limit=1))
        assert (twelve.cost_usd, twelve.providers, twelve.error_types) == (
            0.0378,
            ["anthropic"],
            ["timeout"],
        )

    def test_version_and_environment_are_those_of_the_resource(self, store: Store):
        for number, environment in enumerate(("prod", "staging"), 1):
            envelope = ResourceSpans.FromString(span_of(bytes([number]) * 16, 1).otlp)
            more = {a.SERVICE_VERSION: f"2.{number}", a.DEPLOYMENT_ENVIRONMENT_NAME: environment}
            set_attributes(envelope.resource.attributes, more)
            span = StoredSpan(bytes([number]) * 16, b"", envelope.SerializeToString())
            store.commit(Batch([span]))
        (run,) = store.runs(Query(environment="staging"))
        assert (run.trace_id[:2], run.version, run.environment) == ("02", "2.2", "staging")
        assert [run.environment for run in store.runs(Query(version="2.1"))] == ["prod"]

    def test_each_kind_of_token_has_its_price(self, store: Store):
        used: dict[str, Any] = {
            "gen_ai.provider.name": "anthropic",
            "gen_ai.request.model": "claude-sonnet-4-5",
            "gen_ai.usage.input_tokens": 50_000,
            "gen_ai.usage.output_tokens": 1_000,
            "gen_ai.usage.cache_read.input_tokens": 40_000,
            "gen_ai.usage.cache_write.input_tokens": 8_000,
            "gen_ai.usage.reasoning.output_tokens": 600,
        }
        unknown = {**used, "gen_ai.request.model": "home-grown-1"}
        trace, other = b"1" * 16, b"2" * 16
        store.commit(Batch([span_of(trace, 1, **used), span_of(trace, 2, **unknown)]))
        store.commit(Batch([span_of(other, 1, **unknown)]))
        priced, unpriced = run_of(store, trace), run_of(store, other)
        # 2,000 at $ 3 a million, 40,000 at 0.30, 8,000 at 3.75, 1,000 at 15
        assert (priced.cost_usd, priced.unpriced) == (0.063, ["home-grown-1"])
        assert (unpriced.cost_usd, unpriced.unpriced) == (None, ["home-grown-1"])
        assert (priced.cached_tokens, priced.cache_write_tokens) == (80_000, 16_000)
        assert (priced.input_tokens, priced.reasoning_tokens) == (100_000, 1_200)

    def test_a_place_that_is_none_is_refused(self, store: Store):
        for after in ("x", "1", "1.xy", "1.00"):
            with pytest.raises(UsageError, match="no place"):
                list(store.runs(Query(after=after)))

    def test_a_run_is_found_by_what_a_user_types(self, store: Store):
        traces = ["4f2a1111" + "1" * 24, "4f2a1111" + "9" * 24, "bb" * 16]
        for number, trace in enumerate(traces, 1):
            store.commit(Batch([span_of(bytes.fromhex(trace), number, error=number == 2)]))
        for typed, name in {
            "refund-2": "refund-2",
            "last": "refund-3",
            "last-1": "refund-2",
            "last-2": "refund-1",
            "failed": "refund-2",
            "bbbbbbbb": "refund-3",
            "bb" * 16: "refund-3",
            traces[0].upper(): "refund-1",
            traces[0] + "-0000000000000001": "refund-1",
            "4f2a11111": "refund-1",
        }.items():
            assert store.resolve(typed).name == name, typed

    def test_what_cannot_be_found_is_said_with_what_is_near(self, store: Store):
        with pytest.raises(RunUnknown, match="no run yet") as caught:
            store.resolve("last")
        assert caught.value.hint == "playhead record agent.py"
        for number, trace in enumerate(("4f2a1111" + "1" * 24, "4f2a1111" + "9" * 24), 1):
            store.commit(Batch([span_of(bytes.fromhex(trace), number)]))
        with pytest.raises(RunUnknown, match='no run is called "refnd-2"') as caught:
            store.resolve("refnd-2")
        assert caught.value.hint == "did you mean refund-2, refund-1?"
        with pytest.raises(RunUnknown, match="only 2 runs"):
            store.resolve("last-2")
        with pytest.raises(RunUnknown, match="no run has failed"):
            store.resolve("failed")
        with pytest.raises(RunUnknown, match='no run has the id "cccccccc"'):
            store.resolve("cccccccc")
        with pytest.raises(RunUnknown, match='no run is called "4f2a111"'):
            store.resolve("4f2a111")
        with pytest.raises(RunAmbiguous, match=r"refund-1 \(4f2a1+\) or refund-2 \(4f2a1+9+\)"):
            store.resolve("4f2a1111")

    # Readers and writers in other processes

    def test_where_nothing_was_stored_a_reader_sees_an_empty_store(
        self, place: Path, reader: Callable[[], Store]
    ):
        store = reader()
        assert list(store.runs(Query(mode=None))) == []
        assert list(store.changes(0)) == []
        assert store.position() == 0
        with pytest.raises(StoreUnavailable, match="reading only"):
            store.commit(Batch(facts=facts_of(b"i" * 16, [0])))
        writer = ENGINES[self.engine].writer(place)
        writer.commit(Batch(facts=facts_of(b"i" * 16, [0])))
        assert store.position() == 1
        writer.close()

    def test_a_reader_sees_what_another_process_commits_while_it_does(
        self, place: Path, reader: Callable[[], Store]
    ):
        with self._writing(place, first_instance=1, threads=2) as process:
            assert process.stdout is not None
            process.stdout.readline()
            store = reader()
            positions = [0]
            seen: dict[bytes, list[int]] = {}
            deadline = time.monotonic() + DEADLINE_S
            while len(positions) < 600:
                assert time.monotonic() < deadline
                for change in store.changes(positions[-1], 50):
                    positions.append(change.position)
                    if isinstance(change.item, Fact):
                        seen.setdefault(change.item.instance, []).append(change.item.seq)
            process.kill()
        assert positions == list(range(len(positions)))
        assert len(seen) == 2
        for found in seen.values():
            assert found == list(range(len(found)))

    def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(self, place: Path):
        self._kill_the_writer(place, kills=3)

    @pytest.mark.acceptance
    def test_nothing_acknowledged_is_lost_in_twenty_kills(self, place: Path):
        self._kill_the_writer(place, kills=20)

    def _kill_the_writer(self, place: Path, kills: int) -> None:
        for round_ in range(kills):
            with self._writing(place, first_instance=1 + 4 * round_, threads=4) as process:
                assert process.stdout is not None
                lines = [process.stdout.readline() for _ in range(20 + 7 * round_)]
                process.kill()
                lines += process.stdout.readlines()
            acknowledged = [line.split() for line in lines if line.endswith("\n")]
            store = ENGINES[self.engine].writer(place)
            for thread in range(4):
                instance = bytes([1 + 4 * round_ + thread]) * 16
                mine = [words for words in acknowledged if words[0] == str(thread)]
                facts = numbers(store.tape(instance).facts())
                assert facts == list(range(len(facts)))
                assert len(facts) >= 3 * len(mine)
                spans = {span.span_id.hex() for span in store.spans(instance)}
                assert {words[3] for words in mine} <= spans
                assert len(spans) * 3 == len(facts)
            store.close()

    def _writing(self, place: Path, first_instance: int, threads: int) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [
                sys.executable,
                str(WRITING_PROCESS),
                self.engine,
                str(place),
                str(first_instance),
                str(threads),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )

    @staticmethod
    def _living(
        back_s: float = 0.0,
        heartbeat_ms: int = 60_000,
        instance: bytes = INSTANCE,
        trace: bytes = TRACE,
    ) -> HandMade:
        made = HandMade(instance=instance, trace_id=trace)
        made.at_ns = time.time_ns() - int(back_s * 1e9)
        return made.start(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: heartbeat_ms})
