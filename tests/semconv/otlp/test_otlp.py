import math

import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from support.letters import LETTERS

from playhead_core.errors import MalformedOtlp
from playhead_core.facts import Content, Delivery, ExchangeId, Fact
from playhead_core.otlp import (
    MAX_EVENT_BYTES,
    instance_of,
    is_fact,
    pack,
    pack_resource,
    resource_logs,
    unpack,
    unpack_record,
)
from playhead_core.otlp.any_values import set_attributes, short_pair, value_of
from playhead_core.otlp.unpack import KNOWN
from playhead_semconv import attributes as a
from playhead_semconv import events as e

INSTANCE = bytes(range(16))
CALL = ExchangeId(7, "http", 0)
RESOURCE = pack_resource(INSTANCE, {"service.name": "refund"})

int64 = st.integers(-(2**63), 2**63 - 1)
natural = st.integers(0, 2**63 - 1)
text = st.text(LETTERS, max_size=12)
values = st.recursive(
    st.none() | st.booleans() | int64 | st.floats(allow_nan=False) | text | st.binary(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=6,
)
names = text | st.sampled_from(
    [a.PLAYHEAD_SEQ, a.PLAYHEAD_COUNT, a.PLAYHEAD_EXCHANGE_ID, "playhead.own.x", "playhead.own."]
)
attributes = st.just({}) | st.dictionaries(names, values, max_size=4)
digest = st.binary(min_size=32, max_size=32)
chunk = st.binary(max_size=20).map(Content.chunk)
content = (
    chunk
    | st.binary(max_size=20).map(Content.of)
    | st.builds(Content, digest, natural)
    | st.builds(Content, digest, natural, st.binary(max_size=20), digest, natural)
    | st.builds(Content, digest | st.just(b""), natural, st.binary(max_size=20))
)
exchange = st.builds(
    ExchangeId, st.integers(0, 2**64 - 1), st.sampled_from(["http", "clock"]), st.integers(0, 2)
)
delivery = st.none() | st.builds(Delivery, natural, natural) | st.just(Delivery(-1, -1))
event_names = st.sampled_from(sorted(KNOWN))
fact_at = st.builds(
    Fact,
    time_ns=st.integers(0, 2**64 - 1),
    lane=st.integers(0, 2**64 - 1),
    name=event_names,
    trace_id=st.just(b"") | st.binary(min_size=16, max_size=16),
    span_id=st.just(b"") | st.binary(min_size=8, max_size=8),
    exchange=st.none() | exchange,
    delivery=delivery,
    attributes=attributes,
    body=st.none() | content,
)
stream_fact = st.builds(
    Fact,
    time_ns=st.integers(0, 2**63 - 1),
    lane=st.sampled_from([1, 2]),
    name=st.sampled_from([e.PLAYHEAD_EXCHANGE_DATA, e.PLAYHEAD_READ]),
    exchange=st.sampled_from([CALL, None]),
    delivery=delivery,
    attributes=st.sampled_from([{}, {}, {}, {"x": 1}, {"x": True}]),
    body=chunk | content,
)


def numbered(facts: list[Fact], steps: list[int]) -> list[Fact]:
    seq = -1
    result: list[Fact] = []
    for fact, step in zip(facts, steps, strict=False):
        seq += step
        fields = {name: getattr(fact, name) for name in fact.__struct_fields__}
        result.append(Fact(**{**fields, "instance": INSTANCE, "seq": seq}))
    return result


def over_the_wire(facts: list[Fact]) -> list[Fact]:
    sent = resource_logs(RESOURCE, pack(facts)).SerializeToString()
    return list(unpack(ResourceLogs.FromString(sent)))


@settings(max_examples=100, deadline=None)
@given(
    st.lists(fact_at | stream_fact, max_size=12),
    st.lists(st.sampled_from([1, 1, 1, 2]), min_size=12, max_size=12),
)
def test_every_fact_comes_back_equal(facts: list[Fact], steps: list[int]):
    sent = numbered(facts, steps)
    back = over_the_wire(sent)
    assert back == sent
    assert [repr(fact) for fact in back] == [repr(fact) for fact in sent]


def chunks(count: int, size: int = 20, first: int = 5) -> list[Fact]:
    return [
        Fact(
            1000 + n,
            7,
            e.PLAYHEAD_EXCHANGE_DATA,
            bytes(16),
            bytes(8),
            CALL,
            Delivery(n, 0),
            {},
            Content.chunk(bytes([n % 256]) * size),
            INSTANCE,
            first + n,
        )
        for n in range(count)
    ]


def test_chunks_of_one_exchange_share_a_record():
    (record,) = pack(chunks(3))
    found = {pair.key: pair.value for pair in record.attributes}
    assert record.event_name == "playhead.exchange.data"
    assert record.time_unix_nano == 1000
    assert record.body.bytes_value == b"\0" * 20 + b"\1" * 20 + b"\2" * 20
    assert found["playhead.seq"].int_value == 5
    assert found["playhead.count"].int_value == 3
    assert [v.int_value for v in found["playhead.data.lengths"].array_value.values] == [20, 20, 20]
    assert [v.int_value for v in found["playhead.data.times"].array_value.values] == [1000, 1001, 1002]
    assert [v.int_value for v in found["playhead.data.batches"].array_value.values] == [0, 1, 2]
    assert [v.int_value for v in found["playhead.data.orders"].array_value.values] == [0, 0, 0]


@pytest.mark.parametrize("size", [0, 1, 90, 5000, 300_000])
def test_no_coalesced_record_exceeds_the_bound(size: int):
    facts = chunks(20_000 if size < 5000 else 40, size)
    records = list(pack(facts))
    assert max(record.ByteSize() for record in records) <= MAX_EVENT_BYTES
    assert len(records) < len(facts)
    assert [fact for record in records for fact in unpack_record(record, INSTANCE)] == facts


def test_the_numbers_of_a_record_stay_under_the_bound_at_their_widest():
    wide = 2**63 - 1
    facts = [
        Fact(
            wide - n, 7, e.PLAYHEAD_READ, exchange=CALL, delivery=Delivery(wide, wide),
            body=Content.chunk(b"x" * 128), instance=INSTANCE, seq=n,
        )
        for n in range(8192)
    ]  # fmt: skip
    (record,) = pack(facts)
    assert record.ByteSize() <= MAX_EVENT_BYTES


def test_an_interrupted_sequence_starts_another_record():
    facts = chunks(6)
    assert len(list(pack(facts[:2] + facts[3:]))) == 2


def test_the_resource_names_the_instance():
    assert instance_of(RESOURCE) == INSTANCE
    assert {pair.key for pair in RESOURCE.attributes} == {
        "service.name",
        "playhead.instance",
        "playhead.schema",
    }


def test_whole_numbers_beyond_64_bits_travel_as_text():
    fact = Fact(1, 1, e.PLAYHEAD_STATE, attributes={"n": 2**70}, instance=INSTANCE, seq=0)
    assert over_the_wire([fact])[0].attributes == {"n": str(2**70)}


def test_infinities_survive():
    fact = Fact(1, 1, e.PLAYHEAD_STATE, attributes={"n": math.inf}, instance=INSTANCE, seq=0)
    assert over_the_wire([fact]) == [fact]


def test_ordinary_log_records_are_not_facts():
    line = LogRecord(event_name="gen_ai.evaluation.result")
    line.body.string_value = "hello"
    assert not is_fact(line)
    assert not is_fact(LogRecord())
    assert not is_fact(LogRecord(event_name="playhead.decision"))
    assert list(unpack(resource_logs(RESOURCE, [line]))) == []


def record_with(**changes: object) -> LogRecord:
    (record,) = pack(chunks(2))
    for name, value in changes.items():
        if name in ("event_name", "trace_id", "span_id"):
            setattr(record, name, value)
            continue
        key = "playhead." + name.replace("__", ".")
        kept = [pair for pair in record.attributes if pair.key != key]
        del record.attributes[:]
        record.attributes.extend(kept)
        if value is not None:
            pair = record.attributes.add(key=key)
            if isinstance(value, int):
                pair.value.int_value = value
            elif isinstance(value, list):
                for number in value:  # type: ignore[reportUnknownVariableType]
                    pair.value.array_value.values.add().int_value = number
            else:
                pair.value.string_value = str(value)
    return record


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"event_name": "playhead.unheard"}, "event_name is 'playhead.unheard'"),
        ({"trace_id": b"abc"}, "trace_id has 3 bytes"),
        ({"span_id": b"abc"}, "span_id has 3 bytes"),
        ({"seq": None}, "playhead.seq is missing"),
        ({"seq": "five"}, "playhead.seq is 'five', not a whole number"),
        ({"seq": -3}, "playhead.seq is -3, below zero"),
        ({"lane": "main"}, "playhead.lane is 'main', not 16 hex digits"),
        ({"exchange__id": "x/http/0"}, "playhead.exchange.id is 'x/http/0', not lane/kind/ordinal"),
        ({"delivery__batch": 1}, "playhead.delivery.order is missing"),
        ({"content__digest": "zz"}, "playhead.content.digest is 'zz', not hex digits"),
        ({"content__size": "big"}, "playhead.content.size is 'big', not a whole number"),
        ({"count": 3}, "playhead.data.lengths has 2 values for 3 facts"),
        ({"data__lengths": [20, 21]}, "playhead.data.lengths do not add up to the body's 40 bytes"),
        ({"data__lengths": [-1, 41]}, "playhead.data.lengths do not add up to the body's 40 bytes"),
        ({"data__times": [1]}, "playhead.data.times has 1 values for 2 facts"),
        ({"data__times": "now"}, "playhead.data.times is not a list of whole numbers"),
        ({"data__orders": None}, "playhead.data.orders is missing"),
    ],
)
def test_what_is_malformed_is_named(changes: dict[str, object], message: str):
    with pytest.raises(MalformedOtlp) as caught:
        unpack_record(record_with(**changes), INSTANCE)
    assert caught.value.what.startswith(message)


def test_a_body_that_is_not_bytes_is_refused():
    record = record_with()
    record.body.string_value = "text"
    with pytest.raises(MalformedOtlp, match="body is a string_value, not bytes"):
        unpack_record(record, INSTANCE)


def test_a_resource_without_an_instance_is_refused():
    with pytest.raises(MalformedOtlp, match=r"playhead\.instance is not on the resource"):
        unpack_record(record_with(), None)
    with pytest.raises(MalformedOtlp, match=r"playhead\.instance is 'abc', not 32 hex digits"):
        instance_of(pack_resource(INSTANCE, {"playhead.instance": "abc"}))


def test_a_coalesced_event_without_a_body_is_refused():
    record = record_with()
    record.ClearField("body")
    with pytest.raises(MalformedOtlp, match="body is missing from a coalesced event"):
        unpack_record(record, INSTANCE)


@given(
    st.text(max_size=40),
    st.one_of(st.text(max_size=150), int64, st.floats(), st.booleans(), st.binary(max_size=9)),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 255)), max_size=2),
)
def test_a_short_attribute_is_read_as_protobuf_reads_it_or_left_to_it(key, value, changed):
    holder = LogRecord()
    set_attributes(holder.attributes, {key: value})
    data = bytearray(holder.attributes[0].SerializeToString())
    for at, byte in changed:
        data[at % len(data)] = byte
    found = short_pair(bytes(data))
    try:
        pair = KeyValue.FromString(bytes(data))
    except DecodeError:
        assert found is None
        return
    usual = type(value) in (str, int, float) and key and value != "" and len(data) < 100
    assert found is not None or changed or not usual
    if found is not None:
        assert repr(found) == repr((pair.key, value_of(pair.value)))
