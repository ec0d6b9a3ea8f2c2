"""Pairs on a tape: read, and verified against both requests."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.letters import LETTERS

from playhead_core.errors import CorruptTape
from playhead_core.normalize import Bijection, ComparedRequest, Pair, Unlike, pairs_of, text_of, verify

ONE, OTHER = "0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11", "7d444840-9dc0-41d1-b245-5ffdce74fad2"
ID = Pair(ONE, OTHER, "uuid:4")
AT = Pair("2026-11-22 10:00:07", "2026-11-22 10:00:04", "time:dddd-dd-dd dd:dd:dd")
NUMBER = Pair("1795341607", "1795341604", "epoch:s")


def request(value: Any) -> ComparedRequest:
    return ComparedRequest.of(json.dumps(value).encode())


def test_equal_up_to_the_pairs():
    recorded = request({"id": ONE, "text": f"at {AT.recorded}: {ONE}", "n": 1795341607, "order": 17})
    now = request({"id": OTHER, "text": f"at {AT.now}: {OTHER}", "n": 1795341604, "order": 17})
    assert verify(recorded, now, [ID, AT, NUMBER]) is None
    assert verify(recorded, recorded, []) is None
    for missing in range(3):
        pairs = [pair for index, pair in enumerate([ID, AT, NUMBER]) if index != missing]
        found = verify(recorded, now, pairs)
        assert isinstance(found, Unlike)
        assert found.why == "no volatile value is given for it"


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ({"id": ONE, "order": 17}, {"id": OTHER, "order": 18}),
        ({"id": ONE}, {"id": ONE, "more": 1}),
        (f"{ONE} a", f"{OTHER} b"),
        (ONE, AT.now),
        ({"n": 1795341607}, {"n": "1795341604"}),
        ("17953416071", "17953416041"),
        ({"a": OTHER}, {"a": ONE}),
        (f"{ONE}{ONE}", OTHER),
    ],
)
def test_anything_else_is_a_difference(recorded: Any, now: Any):
    assert isinstance(verify(request(recorded), request(now), [ID, AT, NUMBER]), Unlike)


def test_request_lines_and_values_count():
    sides = [
        ComparedRequest.of(b"x=1", f"GET https://h/{id}?a=%2F&at={at}", [("header a", id)])
        for id, at in ((ONE, "1795341607"), (OTHER, "1795341604"))
    ]
    assert verify(sides[0], sides[1], [ID, NUMBER]) is None
    found = verify(sides[0], sides[1], [ID])
    assert isinstance(found, Unlike)
    assert found.path == "request line"


def test_pairs_are_one_to_one_over_a_tape():
    third = "6fa459ea-ee8a-4ca4-894e-db77e160355e"
    earlier = Bijection()
    assert verify(request(ONE), request(OTHER), [ID], earlier) is None
    found = verify(request(ONE), request(third), [Pair(ONE, third, "uuid:4")], earlier)
    assert isinstance(found, Unlike)
    assert found.why == f"recorded {ONE} stands for {OTHER}, and here for {third}"
    found = verify(request(third), request(OTHER), [Pair(third, OTHER, "uuid:4")], earlier)
    assert isinstance(found, Unlike)
    assert found.why == f"{OTHER} stands in the place of recorded {ONE}, and here of {third}"
    assert len(earlier) == 1


def test_pairs_are_read_as_they_were_written():
    assert pairs_of(text_of([ID, AT, NUMBER])) == (ID, AT, NUMBER)
    assert text_of([]) == "[]"
    assert text_of([ID]) == f'[["{ONE}","{OTHER}","uuid:4"]]'


@pytest.mark.parametrize(
    "text",
    [
        *("", "{}", "null", "[1]", '[["a"]]', '[["a", "b", "c"]]', '[["a", "b", 3]]', "[" * 100_000),
        json.dumps([["17", "18", "decimal:2"]]),
        json.dumps([["order 17", "order 18", "text:8"]]),
        json.dumps([["7", "8", "hex:1"]]),
        json.dumps([["1f3a9b2c", "1f3a9b2", "hex:8"]]),
        json.dumps([[ONE, OTHER, "uuid:1"]]),
        json.dumps([["", "", "text:8"]]),
        json.dumps([["a" * 9000, "b" * 9000, "hex:9000"]]),
        json.dumps([list(ID)] * 10_001),
        "[" + " " * (9 << 20) + "]",
    ],
)
def test_what_can_be_no_pairs(text: str):
    with pytest.raises(CorruptTape) as caught:
        pairs_of(text)
    assert caught.value.cause


@given(st.text(LETTERS))
def test_any_text(text: str):
    try:
        assert isinstance(pairs_of(text), tuple)
    except CorruptTape:
        pass
