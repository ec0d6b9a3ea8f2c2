"""What was committed comes back as it was, once."""

from __future__ import annotations

from pathlib import Path

import pytest
from conformance.engines import ENGINES
from conformance.suite.base import OnEngine, batch_of, recorded_run
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import START_NS, facts_of, span_of
from support.tapes.handmade import INSTANCE, TRACE

from playhead_core.errors import MalformedOtlp, StoreUnavailable
from playhead_core.facts import Content, Fact
from playhead_receiver.storage import Batch, Query, Receipt, Store, StoredSpan
from playhead_semconv import events as e


class Commits(OnEngine):
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

    def test_resources_of_spans_are_told_once_each(self, store: Store):
        spans = [span_of(TRACE, 1, service="a"), span_of(TRACE, 2, service="a")]
        store.commit(Batch([*spans, span_of(b"o" * 16, 1, service="b")]))
        found = [ResourceSpans.FromString(one).resource for one in store.resources()]
        assert sorted(one.attributes[0].value.string_value for one in found) == ["a", "b"]
