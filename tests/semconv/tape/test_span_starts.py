"""Spans that began: told by a fact of their own, or by the ask that begins with them."""

from typing import Any

import pytest
from support.tapes.handmade import carried_start

from playhead_core.errors import MalformedOtlp
from playhead_core.facts import Delivery, ExchangeId, Fact
from playhead_core.otlp import pack, pack_resource, resource_logs, unpack
from playhead_core.tape.fact_shapes import check_shape
from playhead_core.tape.frames import HEAD, decoded, encode
from playhead_core.tape.span_starts import MOST_STARTS, starts_among, starts_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

TRACE, INSTANCE = b"t" * 16, b"i" * 16
INNER = carried_start(0xA1, 0xB2, "POST", 3, 50, {"url.full": "http://provider/"})
OUTER = carried_start(0xB2, 0, "chat gpt-4o", 3, 40, {"gen_ai.operation.name": "chat", "n": 1})


def ask(*begun: Any, **fields: Any) -> Fact:
    at = {a.PLAYHEAD_ASK_KEY: "POST http://provider/", a.PLAYHEAD_ASK_SPANS: list(begun)}
    fields = {"exchange": ExchangeId(1, "http", 0), "attributes": at, **fields}
    span = bytes(7) + b"\xa1"
    return Fact(60, 1, e.PLAYHEAD_EXCHANGE_REQUEST, TRACE, span, instance=INSTANCE, seq=7, **fields)


def test_an_ask_tells_the_starts_that_it_carries_under_its_own_number():
    inner, outer = starts_of(ask(INNER, OUTER, delivery=Delivery(3, 0)))
    assert (inner.name, inner.time_ns, inner.seq, inner.instance) == (
        e.PLAYHEAD_SPAN_START,
        50,
        7,
        INSTANCE,
    )
    assert (inner.trace_id, inner.span_id) == (TRACE, bytes(7) + b"\xa1")
    assert (inner.exchange, inner.delivery, inner.body) == (None, None, None)
    assert inner.attributes == {
        "url.full": "http://provider/",
        a.PLAYHEAD_SPAN_NAME: "POST",
        a.PLAYHEAD_SPAN_KIND: 3,
        a.PLAYHEAD_SPAN_PARENT: "00000000000000b2",
    }
    assert outer.attributes[a.PLAYHEAD_SPAN_PARENT] == ""
    assert (outer.time_ns, outer.span_id) == (40, bytes(7) + b"\xb2")


def test_a_start_fact_tells_itself_and_others_tell_none():
    start = Fact(1, 1, e.PLAYHEAD_SPAN_START, TRACE, b"s" * 8)
    plain = Fact(2, 1, e.PLAYHEAD_EXCHANGE_REQUEST, TRACE, exchange=ExchangeId(1, "http", 0))
    odd = Fact(3, 1, e.PLAYHEAD_EFFECT, TRACE, attributes={a.PLAYHEAD_ASK_SPANS: [INNER]})
    assert starts_of(start) == [start]
    assert starts_of(plain) == starts_of(odd) == []
    told = starts_among([start, plain, ask(OUTER), odd])
    assert [fact.span_id for fact in told] == [b"s" * 8, bytes(7) + b"\xb2"]


def test_they_come_back_from_a_tape_and_from_the_wire():
    fact = ask(INNER, OUTER)
    assert decoded(encode(fact)[HEAD.size :]) == fact
    [back] = unpack(resource_logs(pack_resource(INSTANCE, {}), pack([fact])))
    assert starts_of(back) == starts_of(fact)


WRONG: dict[str, Any] = {
    "no list": INNER,
    "a text": "0a",
    "no span": [7],
    "nothing of a span": [{}],
    "too many": [OUTER] * (MOST_STARTS + 1),
    "a short id": [{**INNER, "span_id": "a1"}],
    "an id in bytes": [{**INNER, "span_id": b"\0" * 8}],
    "an id that is no number": [{**INNER, "span_id": "x" * 16}],
    "an id and a line": [{**INNER, "span_id": "0" * 16 + "\n"}],
    "a short parent": [{**INNER, "parent_id": "b2"}],
    "no name": [{**INNER, "name": None}],
    "a kind that is a truth": [{**INNER, "kind": True}],
    "a negative kind": [{**INNER, "kind": -1}],
    "a time before all": [{**INNER, "time_ns": -1}],
    "a time after all": [{**INNER, "time_ns": 1 << 63}],
    "attributes in a list": [{**INNER, "attributes": []}],
}


@pytest.mark.parametrize("value", WRONG.values(), ids=WRONG)
def test_what_no_exporter_writes_is_refused(value: Any):
    check_shape(ask(OUTER, INNER))
    check_shape(ask(*[OUTER] * MOST_STARTS))
    fact = ask()
    fact.attributes[a.PLAYHEAD_ASK_SPANS] = value
    with pytest.raises(MalformedOtlp, match=r"playhead\.ask\.spans"):
        check_shape(fact)
