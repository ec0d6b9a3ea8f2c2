"""What is no volatile value stays a difference, however much of it looks like one."""

from __future__ import annotations

import copy
import random
import uuid
from typing import Any

import pytest
from support.tapes.volatile import START_NS, Replay, instant

from playhead_core.normalize import ComparedRequest

WAS = "0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11"


def busy() -> Replay:
    """A replay that has handed out a lot: reads everywhere in 30 seconds, draws of every size."""
    replay = Replay()
    draw = random.Random(7)
    replay.reads(*(draw.uniform(0, 30) for _ in range(1000)))
    for size in range(1, 65):
        for _ in range(20):
            replay.handed_out.note_bytes(draw.randbytes(size))
    for number in range(1000):
        replay.handed_out.note_number(number)
        replay.handed_out.note_number(draw.random())
        replay.handed_out.note_number(draw.getrandbits(20))
        replay.handed_out.note_text(str(number))
    return replay


CHANGED: list[tuple[Any, Any, str]] = [
    ("order 17", "order 18", "$"),
    ({"prompt": "order 17"}, {"prompt": "order 18"}, "$.prompt"),
    ({"n": 17}, {"n": 18}, "$.n"),
    ({"temperature": 0.7}, {"temperature": 0.8}, "$.temperature"),
    ({"temperature": 1}, {"temperature": 0.5}, "$.temperature"),
    ({"max_tokens": 1024}, {"max_tokens": 2048}, "$.max_tokens"),
    ({"seed": 123_456_789}, {"seed": 987_654_321}, "$.seed"),
    ({"seed": 1_234_567_890}, {"seed": 1_234_567_891}, "$.seed"),
    ({"since": START_NS // 10**9 - 600}, {"since": START_NS // 10**9 + 3}, "$.since"),
    ({"since": START_NS // 10**9 + 3}, {"since": START_NS // 10**9 - 600}, "$.since"),
    ({"model": "gpt-4o-2024-08-06"}, {"model": "gpt-4o-2024-11-20"}, "$.model"),
    ({"model": "m-2026-11-20"}, {"model": "m-2026-11-22"}, "$.model"),
    ({"at": "2026-11-22"}, {"at": "2026-11-23"}, "$.at"),
    ({"at": "2026-11-22T09:00:03"}, {"at": "2026-11-22T10:00:03"}, "$.at"),
    ({"at": "2025-11-22 10:00:04"}, {"at": "2025-11-22 10:00:03"}, "$.at"),
    ("meet at 10:30", "meet at 10:45", "$"),
    ("meet at 11:30:00", "meet at 11:30:07", "$"),
    ({"id": WAS}, {"id": "7d444840-9dc0-41d1-b245-5ffdce74fad2"}, "$.id"),
    ({"id": "1f3a9b2c"}, {"id": "77aa0d1e"}, "$.id"),
    ({"sha": "a" * 64}, {"sha": "b" * 64}, "$.sha"),
    ({"lat": 52.520008}, {"lat": 52.516275}, "$.lat"),
    ({"lat": 2.520008}, {"lat": 2.516275}, "$.lat"),
    ({"v": [0.1234567891, -0.5]}, {"v": [0.3334567891, -0.5]}, "$.v[0]"),
    ({"v": [-0.1234567891]}, {"v": [0.1234567891]}, "$.v[0]"),
    ({"third": 0.3333333333333333}, {"third": 0.6666666666666666}, "$.third"),
    ({"learning": 1e-06}, {"learning": 2e-06}, "$.learning"),
    ({"version": "1.2.3"}, {"version": "1.2.4"}, "$.version"),
    ({"a": [1, 2]}, {"a": [1, 2, 3]}, "$.a[2]"),
    ({"a": [1, 2]}, {"a": [1]}, "$.a[1]"),
    ({"a": 1}, {"a": 1, "b": 2}, "$.b"),
    ({"a": 1, "b": 2}, {"a": 1}, "$.b"),
    ({"a": 1}, {"b": 1}, "$.b"),
    ({"a": 1}, {"a": "1"}, "$.a"),
    ({"a": 1}, {"a": True}, "$.a"),
    ({"a": None}, {"a": False}, "$.a"),
    ({"a": {}}, {"a": []}, "$.a"),
    ("a", "b", "$"),
    ("", "a", "$"),
    ("aa", "a", "$"),
    ("price 12345678 EUR", "price 12345679 EUR", "$"),
    ("price 1234.5678 EUR", "price 1234.5679 EUR", "$"),
    ("wait 1.5s", "wait 2.5s", "$"),
    ("refund 17 of 20260101-0001", "refund 17 of 20260101-0002", "$"),
    (b"a=1&b=2%20", b"a=1&b=3%20", "$"),
    (b"a=1%26b=2", b"a=1&b=2", "$"),
    (b"\xff\x00\x01", b"\xff\x00\x02", "$"),
    (b'{"a": 1}', b"a: 1", "$"),
    (b'{"a": 1, "a": 2}', b'{"a": 3, "a": 2}', "$"),
    (b'{"a": 12345678901234567890}', b'{"a": 12345678901234567891}', "$.a"),
    (b"[" * 300 + b"1" + b"]" * 300, b"[" * 300 + b"2" + b"]" * 300, "$" + "[0]" * 201),
]


@pytest.mark.parametrize(("recorded", "now", "path"), CHANGED)
def test_a_change_is_named_with_both_values(recorded: Any, now: Any, path: str):
    found = busy().refuses(recorded, now)
    assert found.path == path
    assert found.why
    assert max(len(found.recorded), len(found.now)) <= 200


def test_a_change_beside_what_is_volatile():
    replay = Replay()
    now = uuid.UUID(bytes=replay.draws(16), version=4)
    text = "id {} for order {}"
    replay.accepts(text.format(WAS, 17), text.format(now, 17))
    found = replay.refuses({"a": text.format(WAS, 17)}, {"a": text.format(now, 18)})
    assert (found.path, found.recorded[-12:], found.now[-12:]) == ("$.a", "for order 17", "for order 18")
    for recorded, other in (
        ("{} tail", "{} tale"),
        ("{}", "{} more"),
        ("{}", "more {}"),
        ("{} {}", "{}"),
        ("a{}", "b{}"),
        ("{}0", "{}1"),
    ):
        replay.refuses(recorded.format(WAS, WAS), other.format(now, now))
    replay.refuses({"id": WAS}, {"id": None})
    replay.refuses({"id": WAS, "n": 1}, {"id": str(now), "n": 2})


@pytest.mark.parametrize(
    "recorded",
    [
        "the customer's id",
        WAS.upper(),
        WAS.replace("-4c63", "-1c63"),
        WAS.replace("-", ""),
        WAS[:-1],
        WAS + "0",
        f"x{WAS}",
        f"{{{WAS}}}",
        "0d6f0a1e",
        "2026-11-22T10:00:05",
        "",
    ],
)
def test_the_recorded_value_has_to_be_of_the_same_form(recorded: str):
    replay = Replay()
    now = str(uuid.UUID(bytes=replay.draws(16), version=4))
    replay.refuses({"id": recorded}, {"id": now})
    replay.refuses(f"id {recorded}.", f"id {now}.")
    replay.refuses({recorded: 1}, {now: 1})


@pytest.mark.parametrize(
    ("recorded", "now"),
    [
        ("2026-11-22T10:00:07", "2026-11-22T10:00:04.5"),
        ("2026-11-22T10:00:07Z", "2026-11-22T10:00:04"),
        ("2026-11-22 10:00:07", "2026-11-22T10:00:04"),
        ("2026-11-22T10:00:07.123", "2026-11-22T10:00:04.000000"),
        ("10:00", "10:00:04"),
        ("22/11/2026", "2026-11-22"),
        ("1795341607", "1795341604000"),
        ("1795341607.25", "1795341604"),
        (WAS, "2026-11-22T10:00:04"),
        ("2026-11-22T10:00:37", "2026-11-22T10:00:04"),
        ("2026-11-22T09:59:57", "2026-11-22T10:00:04"),
        ("2026-11-22T10:00:07+01:00", "2026-11-22T10:00:04+00:00"),
        ("Mon, 22 Nov 2026 10:00:07 GMT", "Sun, 22 Nov 2026 10:00:04 GMT"),
    ],
)
def test_the_recorded_instant_is_written_alike_and_of_the_recording(recorded: str, now: str):
    replay = Replay()
    replay.reads(4.0)
    replay.refuses(recorded, now)
    replay.refuses({"at": f"at {recorded}"}, {"at": f"at {now}"})


def test_an_instant_between_two_reads_was_not_read():
    replay = Replay()
    replay.reads(*(after / 1000 for after in range(4000, 4100)), 12)
    replay.accepts("10:00:07", "10:00:04")
    replay.refuses("10:00:07", "10:00:08")
    replay.refuses("2026-11-22T10:00:07.000500", "2026-11-22T10:00:04.200000")
    replay.accepts("2026-11-22T10:00:07.000500", "2026-11-22T10:00:04.050500")


def test_nothing_was_handed_out():
    replay = Replay(None)
    for recorded, now in (
        (WAS, str(uuid.UUID(int=5, version=4))),
        (instant(1).isoformat(), instant(2).isoformat()),
        ("1795341601", "1795341602"),
        ("0.123456789", "0.223456789"),
    ):
        replay.refuses(recorded, now)


def test_too_little_is_never_volatile():
    replay = Replay()
    replay.handed_out.note_bytes(b"\x12\x34\x56")
    replay.handed_out.note_number(18)
    replay.handed_out.note_number(123_456_789, bits=27)
    replay.handed_out.note_number(0.5)
    replay.handed_out.note_text("abcdefg")
    replay.refuses("id 654321", "id 123456")
    replay.refuses({"n": 17}, {"n": 18})
    replay.refuses({"n": 123_456_788}, {"n": 123_456_789})
    replay.refuses({"p": 0.25}, {"p": 0.5})
    replay.refuses("gfedcba", "abcdefg")
    data = replay.draws(16).hex()
    replay.refuses("id 1234567", f"id {data[:7]}")
    replay.refuses("id 12345678", f"id {data[4:12]}")


def test_a_value_that_was_forgotten():
    replay = Replay()
    data = replay.draws(16).hex()
    for seed in range(100_000):
        replay.handed_out.note_bytes(seed.to_bytes(8, "big"))
    replay.refuses("a" * 32, data)


def test_request_lines_and_values():
    replay = Replay()
    now = str(uuid.UUID(bytes=replay.draws(16), version=4))
    for recorded, other in (
        ("POST https://h/v1", "GET https://h/v1"),
        ("POST https://h/v1", "POST https://g/v1"),
        (f"POST https://h/{WAS}/a", f"POST https://h/{now}/b"),
        ("POST https://h/a?b=1%26c=2", "POST https://h/a?b=1&c=2"),
        ("POST https://h/a%2Fb", "POST https://h/a/b"),
    ):
        found = replay.volatile.compare(
            ComparedRequest.of(b"", recorded), ComparedRequest.of(b"", other)
        )
        assert getattr(found, "path", None) == "request line"
    sides = [ComparedRequest.of(b"", "", [("header a", value)]) for value in ("x", "y")]
    assert getattr(replay.volatile.compare(*sides), "path", None) == "header a"
    assert getattr(replay.volatile.compare(sides[0], ComparedRequest.of(b"")), "path", None) == "values"


def test_any_one_change_of_a_request_is_found():
    """Every leaf of a real request, changed a little, while all else is volatile as it may be."""
    replay = busy()
    now_id = str(uuid.UUID(bytes=replay.draws(16), version=4))

    def request(id: str, at: str) -> dict[str, Any]:
        return {
            "model": "gpt-4o-mini-2024-07-18",
            "temperature": 0.7,
            "max_tokens": 1024,
            "stream": True,
            "user": id,
            "messages": [
                {"role": "system", "content": f"Today is {at}. You are agent {id[:8]} of 3."},
                {"role": "user", "content": "Refund order 4711 of 2026-10-02, 19.99 EUR, ref 8f3a."},
                {
                    "role": "tool",
                    "tool_call_id": "call_Zp3xQw81",
                    "content": '{"ok": true, "n": 100000}',
                },
            ],
        }

    recorded, now = request(WAS, "2026-11-22 10:00:07"), request(now_id, "2026-11-22 10:00:04")
    assert len(replay.pairs(recorded, now)) == 3
    draw = random.Random(3)
    for _ in range(400):
        changed = copy.deepcopy(now)
        message = draw.choice(changed["messages"])
        key = draw.choice(list(message))
        text = message[key]
        at = draw.randrange(len(text))
        sign = draw.choice("0123456789abcdefXYZ -.:")
        message[key] = text[:at] + sign + text[at + 1 :]
        if message[key] != text and not (key == "content" and "Today" in text and 9 <= at < 28):
            replay.refuses(recorded, changed)
