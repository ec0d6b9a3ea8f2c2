"""Bodies and exchanges, put together from what was stored."""

from __future__ import annotations

import json

import msgspec
import pytest
from conformance.suite.base import OnEngine, recorded_run, run_of
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import START_NS, facts_of, span_of
from support.tapes.handmade import INSTANCE, TRACE
from support.tapes.log_records import batch_of as logs_of
from support.tapes.log_records import record_of
from support.whole_store import WholeStore

from playhead_core.errors import CorruptTape, TapeError
from playhead_core.facts import Content, ExchangeId, Fact, digest_of
from playhead_core.tape.folds import fold_exchanges
from playhead_receiver.storage import Batch, Store, StoredSpan
from playhead_receiver.storage.spans.span_view import open_frame, parse_span
from playhead_receiver.storage.values.span_labels import DerivedCall, Label, Usage
from playhead_semconv import attributes as a
from playhead_semconv import events as e


class Contents(OnEngine):
    @pytest.mark.parametrize("together", [False, True])
    @pytest.mark.parametrize("first", [0, 1])
    def test_spans_that_share_an_id_are_all_kept(self, store: WholeStore, first: int, together: bool):
        """Zipkin gives the client's and the server's span of a request one id."""
        trace, large = b"z" * 16, json.dumps([{"role": "user", "content": "text " * 500}] * 3)
        sides = [
            span_of(trace, 7, parent=1, name="asks", service="front", gen_ai__input__messages=large),
            span_of(
                trace, 7, parent=1, name="serves", service="back", kind=2, gen_ai__input__messages=large
            ),
        ]
        if first:
            sides.reverse()
        envelope = ResourceSpans.FromString(sides[1].otlp)
        envelope.scope_spans[0].spans[0].start_time_unix_nano += 100
        envelope.scope_spans[0].spans[0].name = "later"
        sides.append(StoredSpan(trace, sides[1].span_id, envelope.SerializeToString()))
        for _ in range(2):  # resending is harmless
            for spans in [sides] if together else [[side] for side in sides]:
                store.commit(Batch([span_of(trace, 1, name="root"), *spans]))
        spans = [(one, parse_span(open_frame(one.otlp)[1])) for one in store.spans(trace)]
        assert sorted(view.name for _, view in spans) == ["asks", "later", "root", "serves"]
        assert all(one.span_id == view.span_id for one, view in spans)
        assert all(
            large == view.attributes["gen_ai.input.messages"].string_value for _, view in spans[1:]
        )
        assert len({one.span_id for one, _ in spans}) == 4
        parents = {view.name: view.parent_span_id for _, view in spans}
        assert parents["serves"] == (bytes(7) + b"\x01" if first else sides[0].span_id)
        assert list(store.verify()) == []
        assert run_of(store, trace).spans == 4

    def test_names_are_those_of_the_spans(self, store: Store):
        trace = b"n" * 16
        long = "question " * 2000
        spans = [
            span_of(trace, 1, name="plain"),
            span_of(trace, 2, parent=1, name="große Frage \u202e" * 40),
            span_of(trace, 3, parent=1, name=""),
            span_of(trace, 4, parent=1, name="x" * 20_000),
            span_of(trace, 5, parent=1, name="with text", gen_ai__input__messages=long),
            span_of(trace, 6, parent=1, name="with flags", flags=0x300),
        ]
        store.commit(Batch(spans))
        wanted = {one.span_id: parse_span(open_frame(one.otlp)[1]).name[:600] for one in spans}
        assert store.names(trace) == wanted
        some = [spans[1].span_id, spans[4].span_id, bytes(8)]
        assert store.names(trace, some) == {one: wanted[one] for one in some[:2]}
        assert store.names(b"o" * 16) == {}

    def test_a_stamp_changes_with_the_spans_of_its_trace_and_with_no_others(self, store: Store):
        trace = b"s" * 16
        seen = [store.stamp(trace)]
        for span in (
            span_of(trace, 1),
            span_of(trace, 2, parent=1),
            span_of(trace, 2, parent=1, name="replaced", end_ns=2**61),
        ):
            store.commit(Batch([span]))
            assert store.stamp(trace) not in seen
            seen.append(store.stamp(trace))
        store.commit(Batch([span_of(b"t" * 16, 1)]))
        assert store.stamp(trace) == seen[-1]

    def test_stamp_and_version_change_with_whatever_a_run_is_loaded_from(self, store: WholeStore):
        made, late = recorded_run(), record_of(TRACE, 1, "late")
        seen = [(store.stamp(TRACE), store.version())]
        for change in (
            lambda: store.commit(Batch(made.spans)),
            lambda: store.commit(Batch(facts=made.facts[:-1])),
            lambda: store.commit(Batch(facts=made.facts)),
            lambda: store.commit(logs_of(late)),
            lambda: store.store_derived(
                TRACE, {made.spans[0].span_id: DerivedCall(Label(model="x"), Usage())}
            ),
        ):
            change()
            now = store.stamp(TRACE), store.version()
            assert now[0] not in [one for one, _ in seen]
            assert now[1] not in [one for _, one in seen]
            seen.append(now)
        while store.sum_up():
            pass
        store.mark(TRACE, "held")
        assert (store.stamp(TRACE), store.version()) == seen[-1]
        store.delete([TRACE])
        assert store.version().deletion > seen[-1][1].deletion
        assert store.stamp(TRACE) == seen[0][0]

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
