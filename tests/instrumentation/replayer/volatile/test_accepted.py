"""What differs only in what the clock and entropy of the replay gave."""

from __future__ import annotations

import base64
import datetime as dt
import random
import time
import uuid
from collections.abc import Callable
from email.utils import format_datetime
from zoneinfo import ZoneInfo

import pytest
from support.tapes.volatile import START_NS, Replay, instant

from playhead_core.normalize import ComparedRequest, Pair

FROM_BYTES: list[tuple[str, int, Callable[[bytes], str]]] = [
    ("uuid:4", 16, lambda data: str(uuid.UUID(bytes=data, version=4))),
    ("UUID:4", 16, lambda data: str(uuid.UUID(bytes=data, version=4)).upper()),
    ("hex:32:4", 16, lambda data: uuid.UUID(bytes=data, version=4).hex),
    ("uuid:-", 16, lambda data: str(uuid.UUID(bytes=data))),
    ("hex:32", 16, bytes.hex),
    ("HEX:32", 16, lambda data: data.hex().upper()),
    ("hex:8", 4, bytes.hex),
    ("hex:128", 64, bytes.hex),
    ("hex:8", 16, lambda data: uuid.UUID(bytes=data, version=4).hex[:8]),
    ("hex:12", 16, lambda data: uuid.UUID(bytes=data, version=4).hex[:12]),
    ("hex:24", 16, lambda data: uuid.UUID(bytes=data, version=4).hex[:24]),
    ("hex:8-4", 16, lambda data: str(uuid.UUID(bytes=data, version=4))[:13]),
    ("hex:12", 16, lambda data: uuid.UUID(bytes=data, version=4).hex[-12:]),
    ("hex:4-12", 16, lambda data: str(uuid.UUID(bytes=data, version=4))[-17:]),
    ("base64:22", 16, lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()),
    ("base64:22:2", 16, lambda data: base64.b64encode(data).decode()),
    ("base64:43", 32, lambda data: base64.urlsafe_b64encode(data).rstrip(b"=").decode()),
    ("base64:10", 32, lambda data: base64.urlsafe_b64encode(data).decode()[:10]),
    ("decimal:39", 16, lambda data: str(int.from_bytes(b"\xe0" + data[1:], "big"))),
    ("decimal:20", 8, lambda data: str(int.from_bytes(b"\xe0" + data[1:], "big"))),
]
PLACES = [
    *("{}", "id {}", "a {} b", "req_{}", "call-{}.txt", '{{"id": "{}"}}', "https://h/v1/{}?x=1", "ü{} "),
]


@pytest.mark.parametrize(("form", "size", "write"), FROM_BYTES)
@pytest.mark.parametrize("place", PLACES)
def test_a_draw_in_each_of_its_forms(form: str, size: int, write: Callable[[bytes], str], place: str):
    for seed in range(1, 6):
        replay = Replay()
        drawn = replay.draws(size, seed)
        if form.startswith("decimal"):
            replay.handed_out.note_bytes(b"\xe0" + drawn[1:])
        if form == "uuid:-" and drawn[6] >> 4 == 4:
            continue  # it looks like a UUID of version 4 by chance, as one draw in 64 does
        sides = [write(data) for data in (random.Random(-seed).randbytes(size), drawn)]
        pairs = replay.accepts({"text": place.format(sides[0])}, {"text": place.format(sides[1])})
        assert [one[:2] for one in pairs] == [tuple(sides)]
        # The same chance: then it is looked at as what it is.
        assert pairs[0].form == form or (form, pairs[0].form) == ("hex:32:4", "hex:32")


def test_a_number_in_its_forms():
    replay = Replay()
    replay.handed_out.note_bytes(bytes(range(200, 216)))
    made = uuid.UUID(bytes=bytes(range(200, 216)), version=4)
    replay.handed_out.note_number(0.13436424411240122)
    replay.handed_out.note_number(3.8474337369372327)
    replay.handed_out.note_number(3_333_222_111, bits=32)
    replay.handed_out.note_number(1 << 100 | 12345, bits=128)
    little = int.from_bytes(bytes(range(200, 216)), "little")
    now = [made.int, little, made.int >> 64, 0.13436424411240122, 3.8474337369372327, 3_333_222_111]
    recorded = [made.int - 7, little - 3, made.int >> 65, 0.84743373693723, 9.7637746189766, 9_222_111]
    assert [one.form for one in replay.accepts(recorded, now)] == [
        *("decimal:39", "decimal:39", "decimal:20", "fraction", "float", "decimal:10")
    ]
    assert replay.pairs({"n": 5e29}, {"n": 5e29}) == []
    assert [one.form for one in replay.accepts([1 << 99], [1 << 100 | 12345])] == ["decimal:31"]
    assert drew(0.13436424411240122).accepts(
        "jitter 0.1349876543210001s", "jitter 0.13436424411240122s"
    ) == [Pair("0.1349876543210001", "0.13436424411240122", "fraction")]


def drew(number: float) -> Replay:
    replay = Replay()
    replay.handed_out.note_number(number)
    return replay


def test_a_name_that_tempfile_made():
    replay = Replay()
    replay.handed_out.note_text("k3_x9qzt")
    found = replay.accepts({"path": "/tmp/tmpabcdefgh/in.txt"}, {"path": "/tmp/tmpk3_x9qzt/in.txt"})
    assert found == [Pair("abcdefgh", "k3_x9qzt", "text:8")]


INSTANTS: list[Callable[[dt.datetime], str]] = [
    lambda at: at.isoformat(),
    lambda at: at.isoformat(timespec="milliseconds"),
    lambda at: at.isoformat(timespec="seconds"),
    lambda at: at.isoformat(" "),
    lambda at: at.replace(tzinfo=None).isoformat(),
    lambda at: at.strftime("%Y-%m-%dT%H:%M:%SZ"),
    lambda at: at.strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    lambda at: at.strftime("%Y-%m-%d %H:%M:%S,") + f"{at.microsecond // 1000:03}",
    lambda at: at.strftime("%Y%m%dT%H%M%SZ"),
    lambda at: at.strftime("%Y%m%d_%H%M%S"),
    lambda at: at.strftime("%Y%m%d%H%M%S"),
    lambda at: at.strftime("%Y-%m-%d_%H-%M-%S"),
    lambda at: at.strftime("%H:%M:%S"),
    lambda at: at.strftime("%H:%M:%S.%f"),
    lambda at: at.strftime("%I:%M:%S %p"),
    lambda at: at.ctime(),
    lambda at: format_datetime(at, usegmt=True),
    lambda at: format_datetime(at),
    lambda at: at.strftime("%d/%b/%Y:%H:%M:%S +0000"),
    lambda at: at.strftime("%A, %B %d, %Y at %H:%M:%S"),
    lambda at: at.strftime("%d %B %Y %H:%M:%S UTC"),
    lambda at: at.strftime("%m/%d/%Y, %I:%M:%S %p"),
    lambda at: at.strftime("%d.%m.%Y %H:%M:%S"),
    lambda at: at.astimezone(ZoneInfo("Asia/Kolkata")).isoformat(),
    lambda at: at.astimezone().replace(tzinfo=None).isoformat(),
    lambda at: str(int(at.timestamp())),
    lambda at: str(round(at.timestamp())),
    lambda at: str(int(at.timestamp() * 1e3)),
    lambda at: str(int(at.timestamp() * 1e6)),
    lambda at: str(int(at.timestamp() * 1e6) * 1000),
    lambda at: str(at.timestamp()),
    lambda at: f"{at.timestamp():.3f}",
    lambda at: str(at.timestamp() * 1000),
]


@pytest.mark.parametrize("write", INSTANTS)
@pytest.mark.parametrize("place", ["{}", "now: {}", "at {}. Then", '{{"at": "{}"}}', "[{}] INFO"])
def test_an_instant_in_each_of_its_forms(write: Callable[[dt.datetime], str], place: str):
    replay = Replay()
    replay.reads(0.5, 4.703125, 20)
    sides = [write(instant(7.328125)), write(instant(4.703125))]
    pairs = replay.accepts({"text": place.format(sides[0])}, {"text": place.format(sides[1])})
    assert len(pairs) == 1
    assert pairs[0].now in sides[1]


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_an_epoch_as_a_number(scale: int):
    replay = Replay()
    replay.reads(4.703125)
    now, recorded = ((START_NS + part) * scale // 10**9 for part in (4_703_125_000, 7_328_125_000))
    assert len(replay.accepts({"created": recorded}, {"created": now})) == 1
    replay.refuses({"created": recorded - 60 * scale}, {"created": now})


def test_a_date_of_midnight_passed():
    replay = Replay((START_NS - 86_400 * 10**9, START_NS))
    replay.reads(0)
    for form in ("%Y-%m-%d", "%Y%m%d", "%d.%m.%Y", "%B %d, %Y", "%A, %d %B %Y", "%m/%d/%y"):
        texts = [f"Today is {instant(after).strftime(form)}, id 7" for after in (-86_400, 0)]
        assert len(replay.accepts(*texts)) == 1
    replay.accepts(20261121, 20261122)


def test_times_in_a_zone_that_was_asked_for():
    replay = Replay()
    replay.handed_out.note_time(START_NS + 4 * 10**9, offset_s=20_700)
    replay.accepts("it is 15:45:07", "it is 15:45:04")
    replay.refuses("it is 14:45:07", "it is 14:45:04")


def test_ids_with_a_time_in_them():
    replay = Replay()
    replay.reads(4.0)
    milliseconds = START_NS // 10**6
    ids: list[list[str]] = []
    for after, tail in ((7000, "a1b2c3d4e5f6a7b8"), (4000, "0102030405060708")):
        number = f"{milliseconds + after:012x}"
        ids.append(
            [
                f"{number[:8]}-{number[8:]}-7{tail[:3]}-8{tail[3:6]}-{tail[4:]}",
                crockford(milliseconds + after, 10) + crockford(int(tail, 16), 16),
                f"{START_NS // 10**9 + after // 1000:08x}{tail}",
            ]
        )
    sides = [" ".join(one) for one in ids]
    assert [one.form for one in replay.accepts(*sides)] == ["uuid:7", "ulid", "objectid"]
    old = "01935341-6000-7abc-8def-0123456789ab 01JD8Z7N6Q3V0B5H4M2K9T8R7W 6743f2a5e4b0c1d2e3f4a5b6"
    for index, older in enumerate(old.split()):
        replay = Replay()
        replay.reads(4.0)
        assert "time of the recording" in replay.refuses(older, ids[1][index]).why
        assert replay.refuses(ids[0][index], older).why.startswith("no clock")


def test_a_uuid_that_was_noted_whole():
    for version in (1, 7):
        replay = Replay(None)
        now = uuid.UUID(f"01935341-6000-{version}abc-8def-0123456789ab")
        replay.handed_out.note_bytes(now.bytes)
        recorded = f"01935341-5000-{version}123-8fff-0123456789ff"
        assert replay.accepts(recorded, str(now))[0].form == f"uuid:{version}"
        replay.refuses("0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11", str(now))


def crockford(number: int, length: int) -> str:
    signs = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
    return "".join(signs[number >> 5 * place & 31] for place in range(length - 1, -1, -1))


def test_a_duration_between_two_reads():
    replay = Replay()
    replay.reads(1.0, 1.000003, 3.25)
    found = replay.pairs({"took": 0.8312345678901}, {"took": 3.0000000000000002e-06})
    assert found[0].form == "duration:s"
    replay.accepts({"took": 0.8312345678901}, {"took": 2.249997})
    replay.accepts("took 0.831234s", "took 2.249997s")
    replay.reads(3.25002)
    replay.accepts({"took": 0.83123}, {"took": 2e-05})
    replay.accepts({"took_ms": 831.2345678901}, {"took_ms": 0.02})
    replay.refuses({"took": 0.8312}, {"took": 2e-05})
    replay.refuses({"took": 31.2345678901 * 2}, {"took": 2e-05})
    replay.accepts({"ms": 831.2345678901}, {"ms": 2249.9969999999})


def test_a_duration_goes_on_in_a_conversation():
    replay = Replay()
    replay.reads(1.0, 3.25)
    replay.accepts({"took": 0.8312345678901}, {"took": 2.25})
    replay.reads(*(4 + number / 97 for number in range(1000)))
    replay.accepts(["took 0.8312345678901s"], ["took 2.25s"])
    replay.refuses(["took 0.7312345678901s"], ["took 2.25s"])


def test_what_a_clock_with_an_arbitrary_zero_said():
    replay = Replay()
    replay.handed_out.note_count(12_345_678_901_234)
    replay.accepts({"t": 991.123456789}, {"t": 12345.678901234})
    replay.accepts({"t": 9_123_456_789_000}, {"t": 12_345_678_901_234})


def test_many_places_of_one_text():
    replay = Replay()
    replay.reads(4.0)
    draws = [replay.draws(16, seed) for seed in range(20)]
    others = [random.Random(f"r{seed}").randbytes(16) for seed in range(20)]

    def text(drawn: list[bytes], after: float) -> str:
        ids = [uuid.UUID(bytes=one, version=4) for one in drawn]
        listed = ", ".join(map(str, ids))
        return f"Today is {instant(after):%Y-%m-%d %H:%M:%S}; ids {listed}; the end. {ids[3].hex}"

    pairs = replay.accepts(text(others, 7), text(draws, 4))
    assert len(pairs) == 22


def test_names_of_objects_and_their_order():
    replay = Replay()
    one, other = (str(uuid.UUID(bytes=replay.draws(16, seed), version=4)) for seed in (1, 2))
    was, before = "7d444840-9dc0-41d1-b245-5ffdce74fad2", "6fa459ea-ee8a-4ca4-894e-db77e160355e"
    recorded = {"b": 1, was: {"n": 1}, before: 2}
    now = {one: {"n": 1}, "b": 1, other: 2}
    assert len(replay.accepts(recorded, now)) == 2
    replay.refuses(recorded, {one: {"n": 1}, "b": 1, "c": 2})


def test_lines_forms_and_headers():
    replay = Replay()
    replay.reads(4.0)
    now = str(uuid.UUID(bytes=replay.draws(16), version=4))
    was = "0d6f0a1e-5b1c-4c63-9a53-0f3f6b7f3c11"
    when = [instant(after).isoformat().replace("+", "%2B").replace(":", "%3A") for after in (7, 4)]
    sides = [
        ComparedRequest.of(
            f"a=%26&id={id}&at={at}".encode(),
            f"POST https://example.org/v1/{id}/a%20b?since={at}",
            [("header x-request-id", id)],
        )
        for id, at in ((was, when[0]), (now, when[1]))
    ]
    found = replay.compare_requests(*sides)
    assert [one[:2] for one in found.pairs] == [
        (was, now),
        ("2026-11-22T10:00:07+00:00", "2026-11-22T10:00:04+00:00"),
    ]


def test_a_value_that_was_accepted_is_known_when_it_is_long_forgotten():
    replay = Replay()
    data = replay.draws(16)
    replay.accepts("id " + "a" * 32, "id " + data.hex())
    for seed in range(100_001):
        replay.handed_out.note_bytes(seed.to_bytes(8, "big"))
    replay.accepts({"history": ["id " + "a" * 32]}, {"history": ["id " + data.hex()]})
    replay.refuses("id " + "b" * 32, "id " + data.hex())


def test_local_time_is_known(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TZ", "America/St_Johns")
    time.tzset()
    try:
        replay = Replay()
        replay.reads(4.0)
        replay.accepts("it is 06:30:07", "it is 06:30:04")
    finally:
        monkeypatch.undo()
        time.tzset()
