"""What texts say about time."""

from __future__ import annotations

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from playhead_core.normalize.instants import DAY_NS, instant_at
from playhead_core.normalize.instants import SECOND_NS as S

DAY = (dt.date(2026, 11, 22) - dt.date(1970, 1, 1)).days * DAY_NS
TEN = 10 * 3600 * S


@pytest.mark.parametrize(
    ("text", "layout", "first_ns", "length_ns"),
    [
        ("2026-11-22", "dddd-dd-dd", DAY, DAY_NS),
        ("2026/11/22", "dddd/dd/dd", DAY, DAY_NS),
        ("20261122", "dddddddd", DAY, DAY_NS),
        ("2026-11-22T10:00", "dddd-dd-ddTdd:dd", DAY + TEN, 60 * S),
        ("2026-11-22 10:00:05", "dddd-dd-dd dd:dd:dd", DAY + TEN + 5 * S, S),
        ("2026-11-22 10:00:05,123", "dddd-dd-dd dd:dd:dd,ddd", DAY + TEN + 5_123_000_000, 10**6),
        ("2026-11-22T10:00:05.000001Z", "dddd-dd-ddTdd:dd:dd.ddddddZ", DAY + TEN + 5_000_000_500, 1500),
        (
            "2026-11-22T10:00:05+01:00",
            "dddd-dd-ddTdd:dd:dd+dd:dd",
            DAY + TEN - 3595 * S,
            S,
        ),
        (
            "2026-11-22T10:00:05-0100",
            "dddd-dd-ddTdd:dd:dd+dddd",
            DAY + TEN + 3605 * S,
            S,
        ),
        ("20261122T100005Z", "ddddddddTddddddZ", DAY + TEN + 5 * S, S),
        ("20261122100005", "dddddddddddddd", DAY + TEN + 5 * S, S),
        ("20261122-1000", "dddddddd-dddd", DAY + TEN, 60 * S),
        ("2026-11-22_10-00-05", "dddd-dd-dd_dd-dd-dd", DAY + TEN + 5 * S, S),
        (
            "Sun, 22 Nov 2026 10:00:05 GMT",
            "a, dd b dddd dd:dd:dd GMT",
            DAY + TEN + 5 * S,
            S,
        ),
        ("Sun Nov 22 10:00:05 2026", "a b dd dd:dd:dd dddd", DAY + TEN + 5 * S, S),
        ("22/Nov/2026:10:00:05 +0000", "dd/b/dddd:dd:dd:dd +dddd", DAY + TEN + 5 * S, S),
        ("Sunday, November 22, 2026", "a, b dd, dddd", DAY, DAY_NS),
        ("22 November 2026", "dd b dddd", DAY, DAY_NS),
        (
            "November 22, 2026 at 10:00 PM",
            "b dd, dddd at dd:dd PM",
            DAY + TEN + DAY_NS // 2,
            60 * S,
        ),
        ("10:00:05", "dd:dd:dd", TEN + 5 * S, S),
        ("12:05 am", "dd:dd pm", 300 * S, 60 * S),
    ],
)
def test_an_instant(text: str, layout: str, first_ns: int, length_ns: int):
    found = instant_at(f"<{text}> and", 1)
    assert found is not None
    assert (found.end, found.layout) == (len(text) + 1, layout)
    assert found.readings == ((first_ns, first_ns + length_ns),)
    assert found.of_day is (":" in text and "2026" not in text)


def test_day_and_month_that_cannot_be_told_apart():
    found = instant_at("04/05/2026", 0)
    assert found is not None
    assert [reading[0] // DAY_NS for reading in found.readings] == [
        (dt.date(2026, *day) - dt.date(1970, 1, 1)).days for day in ((5, 4), (4, 5))
    ]


@pytest.mark.parametrize(
    "text",
    [
        *("2026-13-22", "2026-02-30", "1026-11-22", "9026-11-22", "20261340", "1795341600", "12345678"),
        *(
            "25:00:00",
            "10:61:00",
            "13:00 PM",
            "9:05:00",
            "2026",
            "11-22",
            "1.2.3",
            "192.168.0.1",
            "16:9",
        ),
        *("Mon, 22 Nov 2026 10:00:05 GMT", "Foo 22, 2026", "November 31, 2026", "Sunday", "May", "16:9"),
        *("10:00:05:07", "10:00:05.1234567890", "2026-11-22T10:00:05x", "2026-11-22abc", "", "-", ":"),
    ],
)
def test_no_instant(text: str):
    found = instant_at(text, 0)
    assert found is None or found.end < len(text)


def test_a_piece_of_something_longer_is_none():
    for text, at in (("x2026-11-22", 1), ("12026-11-22", 1), ("1.10:00:05", 2), ("5:10:00:05", 2)):
        assert instant_at(text, at) is None


@given(st.datetimes(dt.datetime(1971, 1, 1), dt.datetime(2199, 12, 30)), st.integers(-840, 840))
def test_iso_in_any_zone(at: dt.datetime, minutes: int):
    zoned = at.replace(tzinfo=dt.timezone(dt.timedelta(minutes=minutes)))
    since = zoned - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    expected_ns = (since.days * 86_400 + since.seconds) * S + since.microseconds * 1000
    for text in (zoned.isoformat(timespec="microseconds"), zoned.isoformat(" ", "seconds")):
        found = instant_at(text, 0)
        assert found is not None
        assert found.end == len(text)
        first, past = found.readings[0]
        assert first <= expected_ns < past


@given(st.text("0123456789-:/. TZ+,aAbdeNovSunPM", max_size=80), st.integers(0, 80))
def test_any_text(text: str, at: int):
    found = instant_at(text, min(at, len(text)))
    assert found is None or (at < found.end <= len(text) and len(found.layout) <= 64)
