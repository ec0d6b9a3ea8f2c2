"""Server-sent events: line ends, comments, pieces of any size, streams that are cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead_genai.providers import ServerSentEvent, SseParser

STREAM = (
    b"\xef\xbb\xbf: a comment\n\nevent: one\ndata: first\n\ndata:second\ndata\ndata:  third\r\n\r\n"
    b"id: 7\nretry: 10\ndata: fourth\r\rdata:\n\nevent: named only\n\ndata: caf\xc3\xa9\n\n\n\nda"
)
EVENTS = [
    ServerSentEvent("one", b"first"),
    ServerSentEvent("", b"second\n\n third"),
    ServerSentEvent("", b"fourth"),
    ServerSentEvent("", b"caf\xc3\xa9"),
]


def events(*pieces: bytes) -> tuple[list[ServerSentEvent], ServerSentEvent | None]:
    parser = SseParser()
    return [event for piece in pieces for event in parser.feed(piece)], parser.close()


def test_a_stream_at_once():
    assert events(STREAM) == (EVENTS, None)


def test_a_stream_byte_by_byte():
    assert events(*(STREAM[i : i + 1] for i in range(len(STREAM)))) == (EVENTS, None)


@given(st.lists(st.integers(0, len(STREAM))))
def test_a_stream_in_any_pieces(cuts: list[int]):
    bounds = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[low:high] for low, high in pairwise(bounds)]
    assert events(*pieces) == (EVENTS, None)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end(end: bytes):
    stream = b"event: a\ndata: 1\n\ndata: 2\n\n".replace(b"\n", end)
    assert events(stream) == ([ServerSentEvent("a", b"1"), ServerSentEvent("", b"2")], None)


@pytest.mark.parametrize(
    ("stream", "last"),
    [
        (b"data: a\n\ndata: b", ServerSentEvent("", b"b")),
        (b"data: a\n\ndata: b\n", ServerSentEvent("", b"b")),
        (b"data: a\n\nevent: x\r\ndata: b\r", ServerSentEvent("x", b"b")),
        (b"data: a\n\nevent: x", None),
        (b"data: a\n\n:", None),
    ],
)
def test_what_no_empty_line_ended_is_left(stream: bytes, last: ServerSentEvent | None):
    assert events(stream) == ([ServerSentEvent("", b"a")], last)


def test_an_event_comes_as_soon_as_it_is_complete():
    parser = SseParser()
    assert parser.feed(b"data: a\n") == []
    assert parser.feed(b"\n") == [ServerSentEvent("", b"a")]
    assert parser.feed(b"data: b\n\ndata: c\n\ndat") == [
        ServerSentEvent("", b"b"),
        ServerSentEvent("", b"c"),
    ]
    assert parser.feed(b"a: d\r\n\r") == [ServerSentEvent("", b"d")]
    assert parser.feed(b"\ndata: e\n\n") == [ServerSentEvent("", b"e")]


@given(st.binary(), st.integers(0, 200))
def test_any_bytes_in_any_pieces(stream: bytes, cut: int):
    assert events(stream) == events(stream[:cut], stream[cut:])
