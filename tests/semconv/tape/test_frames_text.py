import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.letters import LETTERS

from playhead_core.errors import CorruptTape, TapeTooNew
from playhead_core.facts import Content, Delivery, ExchangeId, Fact, digest_of
from playhead_core.tape.frames import Footer, Header, SpanRecord
from playhead_core.tape.frames_text import FIRST_LINE, from_text, is_text, lane_of, to_text
from playhead_semconv import attributes as a
from playhead_semconv import events as e

HEADER = Header(bytes(range(16)), 1_700_000_000_000_000_000, resource={"service.name": "refund"})
MAIN = lane_of("main")


def fact(seq: int, name: str = e.PLAYHEAD_EFFECT, **fields: object) -> Fact:
    given = {"time_ns": HEADER.created_ns + seq * 1_000_000, "lane": MAIN, "instance": HEADER.instance}
    return Fact(name=name, seq=seq, **(given | fields))  # pyright: ignore


def test_what_is_written_is_what_people_read():
    lane = fact(0, e.PLAYHEAD_LANE, attributes={a.PLAYHEAD_LANE_NAME: "main"})
    asked = fact(
        1,
        e.PLAYHEAD_EXCHANGE_REQUEST,
        exchange=ExchangeId(MAIN, "http", 0),
        attributes={a.PLAYHEAD_ASK_KEY: "POST http://provider/v1/chat/completions"},
        body=Content.of(b'{"model":"gpt-4o"}'),
    )
    said = fact(2, e.PLAYHEAD_EXCHANGE_DATA, delivery=Delivery(3, 1), body=Content.chunk(b"a\nb\n"))
    text = to_text([HEADER, lane, asked, said])
    assert text.splitlines()[0] == "playhead tape, text 1"
    decoder, found, at = json.JSONDecoder(), [], len(FIRST_LINE)
    while at < len(text):
        one, at = decoder.raw_decode(text, at)
        found.append(one)
        at += 1
    assert found[2] == {
        "fact": "exchange.request",
        "lane": "main",
        "exchange": "http/0",
        "attributes": {"playhead.ask.key": "POST http://provider/v1/chat/completions"},
        "content": {"json": {"model": "gpt-4o"}},
    }
    assert found[3] == {
        "fact": "exchange.data",
        "lane": "main",
        "delivery": "3.1",
        "content": {"text": ["a\n", "b\n"], "chunk": True},
    }


@pytest.mark.parametrize(
    "options", [{"separators": (",", ":")}, {}], ids=["without spaces", "with spaces"]
)
@pytest.mark.parametrize("ascii_alone", [True, False])
def test_json_of_whatever_style_is_written_as_json_and_comes_back(options, ascii_alone):
    body = json.dumps({"a": ["gr\u00fc\u00df", 1]}, ensure_ascii=ascii_alone, **options).encode()
    said = fact(0, body=Content.of(body))
    text = to_text([HEADER, said])
    assert '"json": {' in text and "gr\u00fc\u00df" in text
    found = [one for one in from_text(text, "x") if isinstance(one, Fact)]
    assert [one.body.inline for one in found if one.body] == [body]


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.text(LETTERS)
    | st.binary()
    | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(LETTERS), inner, max_size=3),
    max_leaves=6,
)
bodies = (
    st.binary()
    | st.text(LETTERS).map(str.encode)
    | values.map(lambda value: json.dumps(value, default=str).encode())
)
contents = st.one_of(
    st.none(),
    bodies.map(Content.of),
    bodies.map(Content.chunk),
    bodies.map(lambda data: Content(digest_of(data), len(data))),
    bodies.map(lambda data: Content(digest_of(b"x" + data), 9, data, digest_of(b"y"), 3)),
    st.builds(Content, st.just(b""), st.integers(0, 99)),
)
facts = st.builds(
    Fact,
    time_ns=st.integers(0, 2**62),
    lane=st.sampled_from([MAIN, lane_of("main/fetch.1"), 7]),
    name=st.sampled_from([e.PLAYHEAD_READ, e.PLAYHEAD_EFFECT, "another.event"]),
    trace_id=st.sampled_from([b"", b"\x01" * 16]),
    span_id=st.sampled_from([b"", b"\x02" * 8]),
    exchange=st.none() | st.builds(ExchangeId, st.just(MAIN), st.sampled_from(["http"]), st.integers(0)),
    delivery=st.none() | st.builds(Delivery, st.integers(0), st.integers(0)),
    attributes=st.dictionaries(st.text(LETTERS), values, max_size=3),
    body=contents,
    instance=st.sampled_from([HEADER.instance, b"\x03" * 16]),
    seq=st.integers(0, 2**40),
)


@given(st.lists(facts | st.binary(max_size=40).map(SpanRecord), max_size=6))
def test_nothing_is_lost(records: list[Fact | SpanRecord]):
    lane = fact(0, e.PLAYHEAD_LANE, attributes={a.PLAYHEAD_LANE_NAME: "main"})
    written = [HEADER, lane, *records, Footer(len(records), 0)]
    text = to_text(written)
    assert is_text(text.encode())
    assert list(from_text(text)) == written


def test_damage_is_named_by_its_line():
    text = to_text([HEADER, fact(0, body=Content.chunk(b"one"))])
    with pytest.raises(CorruptTape, match=r"golden\.tape is damaged at line 10"):
        list(from_text(text.replace('"lane"', '"lain"'), "golden.tape"))
    with pytest.raises(CorruptTape, match="damaged at line"):
        list(from_text(text[:-3]))
    with pytest.raises(TapeTooNew, match="format 9") as later:
        list(from_text(text.replace("text 1", "text 9", 1)))
    assert later.value.hint == ("read it with that version, or upgrade: pip install --upgrade playhead")
    for other in ("text 9", "playhead tape, text nine", ""):
        with pytest.raises(CorruptTape, match="in a form that is not known here"):
            list(from_text(f"{other}\n{{}}"))
    # What is no JSON is named by its own line, what is none of our records by the line where it begins.
    with pytest.raises(CorruptTape, match=r"damaged at line 13: Expecting"):
        list(from_text(text.replace('"content"', "content")))
    of_bytes = to_text([HEADER, fact(0, attributes={"a": b"bytes"})])
    with pytest.raises(CorruptTape, match="damaged at line"):
        list(from_text(of_bytes.replace("Ynl0ZXM=", "Yn_l0ZXM=")))


def test_what_follows_from_what_came_before_is_not_written():
    lane = fact(0, e.PLAYHEAD_LANE, attributes={a.PLAYHEAD_LANE_NAME: "main"})
    traced = {"trace_id": b"\x01" * 16}
    other = b"\x03" * 16
    records = [
        HEADER,
        lane,
        fact(1, **traced),
        fact(2, **traced),
        fact(3),
        fact(7, instance=other, exchange=ExchangeId(MAIN, "mcp/tools", 3)),
    ]
    text = to_text(records)
    decoder, found, at = json.JSONDecoder(), [], len(FIRST_LINE)
    while at < len(text):
        one, at = decoder.raw_decode(text, at)
        found.append(one)
        at += 1
    assert "seq" not in found[1] and "trace" not in found[1]
    assert [sorted(one.keys() & {"seq", "trace", "instance", "exchange"}) for one in found[2:]] == [
        ["trace"],
        ["trace"],
        [],
        ["exchange", "instance", "seq"],
    ]
    assert list(from_text(text)) == records


def test_lanes_have_the_numbers_of_recordings():
    for name in ("main", "worker", "task 7"):
        assert lane_of(name) == int.from_bytes(digest_of(name.encode())[:8]) >> 1
    assert lane_of("main").bit_length() <= 63


def test_the_span_of_a_fact_comes_back():
    said = fact(0, trace_id=bytes(range(16)), span_id=bytes(range(1, 9)))
    back = [one for one in from_text(to_text([HEADER, said]), "x") if isinstance(one, Fact)]
    assert back == [said]


def test_the_first_fact_may_come_without_a_header():
    said = fact(0)
    back = [one for one in from_text(to_text([said]), "x") if isinstance(one, Fact)]
    assert [one.time_ns for one in back] == [said.time_ns]
    written = FIRST_LINE + json.dumps({"fact": "effect", "lane": "main", "after_ns": 7})
    assert [one.time_ns for one in from_text(written, "x") if isinstance(one, Fact)] == [7]


def test_damage_says_where_the_text_is_to_be_had_whole():
    with pytest.raises(CorruptTape) as caught:
        list(from_text(FIRST_LINE + "{", "a.golden"))
    assert "git checkout" in str(caught.value.hint)


@pytest.mark.parametrize("text", ["one line", "ends\n", "two\nlines", ""])
def test_a_text_of_one_line_is_written_as_one(text: str):
    said = fact(0, body=Content.chunk(text.encode()))
    written = to_text([HEADER, said])
    assert ('"text": [' in written) == (len(text.splitlines()) > 1)
    back = [one for one in from_text(written, "x") if isinstance(one, Fact)]
    assert back == [said]
