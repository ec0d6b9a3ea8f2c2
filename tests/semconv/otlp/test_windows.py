"""Windows: what goes in comes out as if it had come one by one; what is damaged is left out alone."""

import zlib

import msgspec
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from semconv.otlp.test_otlp import INSTANCE, chunks, fact_at, numbered, over_the_wire
from support.letters import LETTERS

from playhead_core.errors import MalformedOtlp
from playhead_core.facts import Content, Fact
from playhead_core.integrity import LinkStatement, What, first_link, next_link
from playhead_core.otlp import (
    attributes_of,
    is_window,
    pack_resource,
    pack_window,
    resource_logs,
    set_attributes,
    unpack_window,
)
from playhead_core.otlp_bytes import WINDOW_BYTES, window_request
from playhead_core.tape.fact_shapes import check_shape
from playhead_core.tape.frames import HEAD, MAGIC, Header, SpanRecord, encode
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def window_of(*records) -> LogRecord:
    return sent(MAGIC + b"".join(encode(record) for record in records))


def sent(tape: bytes) -> LogRecord:
    return LogRecord.FromString(pack_window(tape, 0, 9).SerializeToString())


def state(seq: int, **attributes) -> Fact:
    return Fact(5, 7, e.PLAYHEAD_STATE, attributes=attributes, instance=INSTANCE, seq=seq)


def has_shape(fact: Fact) -> bool:
    try:
        check_shape(fact)
    except MalformedOtlp:
        return False
    return True


@settings(max_examples=200, deadline=None)
@given(st.lists(fact_at, max_size=6))
def test_facts_come_back_as_if_they_had_come_one_by_one(facts: list[Fact]):
    good = [fact for fact in numbered(facts, [1] * 6) if has_shape(fact)]
    found = unpack_window(window_of(*good), INSTANCE)
    assert found.problems == []
    assert found.facts == over_the_wire(good)
    assert [repr(fact) for fact in found.facts] == [repr(fact) for fact in over_the_wire(good)]


def test_numbers_are_told_and_headers_passed_over():
    record = pack_window(MAGIC + encode(Header(INSTANCE, 1)) + encode(state(4)), 4, 4)
    assert is_window(record)
    assert attributes_of(record.attributes) == {a.PLAYHEAD_WINDOW_FIRST: 4, a.PLAYHEAD_WINDOW_LAST: 4}
    assert unpack_window(record, INSTANCE).facts == [state(4)]


def test_links_come_with_their_process_and_those_that_are_none_are_left_out_alone():
    good = next_link(first_link(INSTANCE), INSTANCE, LinkStatement(What.CAME, [(0, 0)], 1), bytes(32))
    others = [
        msgspec.structs.replace(good, instance=bytes(16)),
        msgspec.structs.replace(good, link=b"short"),
        msgspec.structs.replace(good, said=b"\xc1"),
        msgspec.structs.replace(good, digests=bytes(64)),
    ]
    tape = MAGIC + b"".join(map(encode, [others[0], good, *others[1:], state(4)]))
    found = unpack_window(pack_window(tape, 4, 4), INSTANCE)
    assert (found.links, found.facts, len(found.problems)) == ([good], [state(4)], 4)


def test_a_number_of_more_than_64_bits_is_text_as_it_is_one_by_one():
    found = unpack_window(window_of(state(0, n=2**64 - 1, deep=[{"n": 2**63}])), INSTANCE)
    n, deep = "18446744073709551615", "9223372036854775808"
    assert found.facts[0].attributes == {"n": n, "deep": [{"n": deep}]}


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (Fact(5, 7, e.PLAYHEAD_STATE, instance=bytes(16), seq=1), "is not that of its resource"),
        (Fact(5, 7, "playhead.nothing", instance=INSTANCE, seq=1), "does not know"),
        (Fact(5, 7, e.PLAYHEAD_WINDOW, instance=INSTANCE, seq=1), "does not know"),
        (Fact(5, 7, e.PLAYHEAD_STATE, b"x", instance=INSTANCE, seq=1), "trace_id has 1 bytes"),
        (Fact(5, 7, e.PLAYHEAD_STATE, b"", b"xy", instance=INSTANCE, seq=1), "span_id has 2 bytes"),
        (Fact(5, 7, e.PLAYHEAD_STATE, instance=INSTANCE), "below zero"),
        (Fact(5, -1, e.PLAYHEAD_STATE, instance=INSTANCE, seq=1), "not of 64 bits"),
        (Fact(5, 7, e.PLAYHEAD_EXCHANGE_END, instance=INSTANCE, seq=1), "is missing"),
        (
            Fact(5, 7, e.PLAYHEAD_STATE, body=Content(b"", -1), instance=INSTANCE, seq=1),
            "playhead.content.size is -1",
        ),
    ],
)
def test_a_bad_fact_is_left_out_alone(bad: Fact, why: str):
    found = unpack_window(window_of(state(0), bad, state(2)), INSTANCE)
    assert found.facts == [state(0), state(2)]
    assert [why in str(problem) for problem in found.problems] == [True]


@pytest.mark.parametrize(
    "value",
    [msgspec.msgpack.Ext(5, b"x"), {1: 2}, [{"y": {2: 3}}]],
)
def test_values_that_no_attribute_has_are_refused(value):
    found = unpack_window(window_of(state(0, x=value), state(1)), INSTANCE)
    assert found.facts == [state(1)]
    assert "x holds what is no value" in str(found.problems[0])


def test_values_nested_too_deep_are_refused():
    deep: list = []
    for _ in range(65):
        deep = [deep]
    far: bytes = b"\x91" * 100_000 + b"\xc0"
    payload = msgspec.msgpack.encode(state(1, x="HERE")).replace(b"\xa4HERE", far)
    frame = HEAD.pack(len(payload), zlib.crc32(payload)) + payload
    tape = MAGIC + encode(state(0, x=deep)) + frame + encode(state(2))
    found = unpack_window(sent(tape), INSTANCE)
    assert found.facts == [state(2)]
    assert "nested more than 64 deep" in str(found.problems[0])
    assert "holds no record" in str(found.problems[1])


def test_damage_costs_what_it_hits():
    frames = [encode(fact) for fact in chunks(5)]
    frames[2] = frames[2][:-1] + bytes([frames[2][-1] ^ 1])
    found = unpack_window(sent(MAGIC + b"".join(frames)), INSTANCE)
    assert [fact.seq for fact in found.facts] == [5, 6, 8, 9]
    assert "checksum differs" in str(found.problems[0])
    cut = unpack_window(sent(MAGIC + b"".join(frames[:2]) + b"\x05\x00"), INSTANCE)
    assert [fact.seq for fact in cut.facts] == [5, 6]
    assert "half a frame" in str(cut.problems[0])


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"", "cannot be decompressed"),
        (b"nothing", "cannot be decompressed"),
        (zstandard.compress(bytes(WINDOW_BYTES + 1)), "are the most"),
        (zstandard.ZstdCompressor(write_content_size=False).compress(MAGIC), "window"),
        (zstandard.compress(MAGIC) + b"x", "cannot be decompressed"),
    ],
)
def test_what_is_no_window_is_refused_and_takes_no_room(body: bytes, why: str):
    record = LogRecord(event_name=e.PLAYHEAD_WINDOW)
    record.body.bytes_value = body
    with pytest.raises(MalformedOtlp, match=why):
        unpack_window(record, INSTANCE)


def test_a_window_of_another_file_brings_nothing():
    found = unpack_window(sent(b"GIF89a" * 10), INSTANCE)
    assert (found.facts, found.spans) == ([], [])
    assert "not a playhead tape" in str(found.problems[0])


def test_spans_come_as_they_were_sent():
    found = unpack_window(window_of(SpanRecord(b"\xff"), state(1), SpanRecord(b"x")), INSTANCE)
    assert (found.facts, found.spans, found.problems) == ([state(1)], [b"\xff", b"x"], [])


def test_nobody_knows_whose_a_window_without_a_resource_is():
    with pytest.raises(MalformedOtlp, match="is not on the resource"):
        unpack_window(window_of(state(0)), None)


PLAIN = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(LETTERS)
    | st.binary()
)
VALUES = st.recursive(
    PLAIN,
    lambda one: st.lists(one) | st.tuples(one) | st.dictionaries(st.text("abü"), one),
    max_leaves=9,
)


@settings(max_examples=100, deadline=None)
@given(
    resource=st.dictionaries(st.text("abü.") | st.just(a.PLAYHEAD_INSTANCE), VALUES),
    tape=st.binary(max_size=2_000),
    first=st.integers(-1, 2**63 - 1),
)
def test_a_request_is_what_the_protobuf_library_makes_of_it(resource, tape: bytes, first: int):
    record = LogRecord(event_name=e.PLAYHEAD_WINDOW)
    record.body.bytes_value = zstandard.ZstdCompressor(level=3).compress(tape)
    numbers = {a.PLAYHEAD_WINDOW_FIRST: first, a.PLAYHEAD_WINDOW_LAST: first}
    set_attributes(record.attributes, numbers)
    logs = resource_logs(pack_resource(INSTANCE, resource), [record])
    made = window_request(tape, first, first, INSTANCE, resource)
    assert ExportLogsServiceRequest.FromString(made) == ExportLogsServiceRequest(resource_logs=[logs])


def test_a_resource_whose_text_is_none_holds_up_no_window():
    made = window_request(MAGIC, 0, 0, INSTANCE, {"host.name": "caf\udce9"})
    [logs] = ExportLogsServiceRequest.FromString(made).resource_logs
    assert attributes_of(logs.resource.attributes)["host.name"] == "caf?"
