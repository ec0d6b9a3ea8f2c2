"""Instants as programs write them: parses text into an interval of time, and its layout.

Supported are ISO 8601 with any separators, precision and zone, dates and times of day alone, compact
forms
(``20260102T030405Z``), HTTP dates, asctime, timestamps of `logging` and of access logs, and dates with
English month names. Epoch numbers are in `forms`. Parsing takes constant time at each position.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import Final, NamedTuple, TypeAlias

SECOND_NS: Final = 1_000_000_000
DAY_NS: Final = 86_400 * SECOND_NS

LONGEST: Final = 64
"""Characters of the longest instant."""

Stretch: TypeAlias = tuple[int, int]
"""First nanosecond, and the one after the last."""

_EPOCH: Final = dt.date(1970, 1, 1).toordinal()
_YEARS: Final = range(1970, 2200)

_MONTHS: Final = {
    name[:length]: number
    for number, name in enumerate(
        (
            *("january", "february", "march", "april", "may", "june", "july"),
            *("august", "september", "october", "november", "december"),
        ),
        1,
    )
    for length in (3, 9)
}
_DAYS: Final = {
    name[:length]: number
    for number, name in enumerate(
        ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
    )
    for length in (3, 9)
}

_CLOCK = (
    r"(?P<hour>\d\d?):(?P<minute>\d\d)(?::(?P<second>\d\d)(?:[.,](?P<part>\d{1,9}))?)?"
    r"(?: ?(?P<half>[AaPp][Mm])(?![A-Za-z]))?"
)
_DASHED_CLOCK = r"(?P<hour>\d\d)(?P<colon>[-._])(?P<minute>\d\d)(?P=colon)(?P<second>\d\d)"
_ZONE = r"(?P<zone>Z| ?(?:UTC|GMT)|(?: (?=[+-]\d{4}))?[+-]\d\d(?::?\d\d)?)?"
_DATE = r"(?P<year>\d{4})(?P<dash>[-/.])(?P<month>\d\d)(?P=dash)(?P<day>\d\d)"
_WEEKDAY = r"(?P<weekday>[A-Z][a-z]{2,8})"
_MONTH = r"(?P<name>[A-Z][a-z]{2,8})"
_END = r"(?![0-9A-Za-z]|[:.]\d)"

# The first pattern that matches wins, so more specific ones come first.
_OF_DIGITS: Final = tuple(
    re.compile(text + _END, re.ASCII)
    for text in (
        _DATE + "(?:[T _-]|, | at )" + _CLOCK + _ZONE,
        _DATE + "[T _-]" + _DASHED_CLOCK + _ZONE,
        _DATE,
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)[T _-]?(?P<hour>\d\d)(?P<minute>\d\d)"
        r"(?:(?P<second>\d\d)(?:[.,_]?(?P<part>\d{1,9}))?)?" + _ZONE,
        r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)",
        r"(?P<first>\d\d?)(?P<dash>[-/.])(?P<other>\d\d?)(?P=dash)(?P<year>\d{4})"
        rf"(?:(?:[T ]|, | at ){_CLOCK}{_ZONE})?",
        rf"(?P<first>\d\d?)/(?P<other>\d\d?)/(?P<short>\d\d)(?:(?: |, ){_CLOCK}{_ZONE})?",
        rf"(?P<day>\d\d?)(?P<dash>[ /-]){_MONTH}(?P=dash)(?P<year>\d{{4}})"
        rf"(?:(?:[: ]|, | at ){_CLOCK}{_ZONE})?",
        _CLOCK + _ZONE,
    )
)
_OF_LETTERS: Final = tuple(
    re.compile(text + _END, re.ASCII)
    for text in (
        rf"{_WEEKDAY} {_MONTH} (?P<day>[ \d]\d) {_CLOCK} (?P<year>\d{{4}})",
        rf"(?:{_WEEKDAY},? )?(?P<day>\d\d?)(?P<dash>[ -]){_MONTH}(?P=dash)(?P<year>\d{{4}})"
        rf"(?:(?: |, | at ){_CLOCK}{_ZONE})?",
        rf"(?:{_WEEKDAY},? )?{_MONTH} (?P<day>\d\d?)(?:st|nd|rd|th)?,? (?P<year>\d{{4}})"
        rf"(?:(?: |, | at ){_CLOCK}{_ZONE})?",
    )
)
_NAME = re.compile(r"[A-Za-z]{2,9}")
_SHAPE = str.maketrans("0123456789", "dddddddddd")


class Instant(NamedTuple):
    """What a text says about time."""

    end: int
    """End of the instant in the text."""
    layout: str
    """The text with ``d`` for each digit, ``b`` for a month name, ``a`` for a weekday name."""
    readings: tuple[Stretch, ...]
    """Intervals since the epoch, in UTC where there is no zone; for a time of day, since midnight.

    Several where day and month are ambiguous, in the same order for each text of the layout.
    """
    zoned: bool
    of_day: bool


def instant_at(text: str, at: int) -> Instant | None:
    """Return the longest instant that starts at ``at``; None if none does.

    >>> instant_at("on 1970-01-01T00:00:02Z", 3).readings
    ((2000000000, 3000000000),)
    """
    first = text[at : at + 1]
    if at and text[at - 1].isalnum() and first.isalnum():
        return None
    if first.isdigit():
        patterns = _OF_DIGITS
        if at >= 2 and text[at - 1] in ":." and text[at - 2].isdigit():
            return None
    elif first.isupper():
        patterns = _OF_LETTERS
    else:
        return None
    for pattern in patterns:
        found = pattern.match(text, at, at + LONGEST)
        if found is not None and (instant := _instant(found)) is not None:
            return instant
    return None


def layout_fits(layout: str) -> bool:
    """Whether a layout from untrusted input can be one."""
    return 4 <= len(layout) <= LONGEST and layout.isascii() and layout.isprintable()


def _instant(found: re.Match[str]) -> Instant | None:
    parts = found.groupdict()
    try:
        clock = _since_midnight(parts)
        zone = parts.get("zone")
        shift_ns = 0 if zone is None else _offset_ns(zone)
        layout = _layout(found[0], parts)
        if parts.get("year") is None and parts.get("short") is None:
            assert clock is not None
            readings = ((clock[0] - shift_ns, clock[1] - shift_ns),)
            return Instant(found.end(), layout, readings, zone is not None, True)
        days = _dates(parts)
    except ValueError:
        return None
    first, last = (0, DAY_NS) if clock is None else clock
    readings = tuple((day + first - shift_ns, day + last - shift_ns) for day in days)
    return Instant(found.end(), layout, readings, zone is not None, False)


def _since_midnight(parts: dict[str, str | None]) -> Stretch | None:
    hour, minute = parts.get("hour"), parts.get("minute")
    if hour is None or minute is None:
        return None
    hours, half = int(hour), parts.get("half")
    if half is not None:
        if not 1 <= hours <= 12:
            raise ValueError
        hours = hours % 12 + (12 if half in ("pm", "PM", "Pm", "pM") else 0)
    elif len(hour) == 1:
        raise ValueError
    second, part = parts.get("second"), parts.get("part") or ""
    seconds = int(second or 0)
    if hours > 23 or int(minute) > 59 or seconds > 60:
        raise ValueError
    first = ((hours * 60 + int(minute)) * 60 + seconds) * SECOND_NS + int(part.ljust(9, "0"))
    if second is None:
        return first, first + 60 * SECOND_NS
    # A timestamp made from a float is rounded, not truncated.
    return first - (500 if len(part) >= 6 else 0), first + 10 ** (9 - len(part))


def _offset_ns(zone: str) -> int:
    digits = zone.strip().translate({ord("+"): None, ord("-"): None, ord(":"): None})
    if not digits.isdigit():
        return 0
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    if minutes > 18 * 60:
        raise ValueError
    return (-minutes if "-" in zone else minutes) * 60 * SECOND_NS


def _dates(parts: dict[str, str | None]) -> list[int]:
    """Return midnights, as nanoseconds since the epoch. ValueError if it is not a date."""
    short = parts.get("short")
    year = int(parts.get("year") or 0) if short is None else 2000 + int(short)
    if year not in _YEARS:
        raise ValueError
    first, other = parts.get("first"), parts.get("other")
    if first is not None and other is not None:
        both = [_midnight(year, int(other), int(first)), _midnight(year, int(first), int(other))]
        if max(both) < 0:
            raise ValueError
        return both
    name = parts.get("name")
    month = int(parts["month"] or 0) if name is None else _MONTHS.get(name.lower(), 0)
    midnight = _midnight(year, month, int(parts["day"] or 0))
    weekday = parts.get("weekday")
    # The epoch began on a Thursday.
    if midnight < 0 or (weekday and _DAYS.get(weekday.lower()) != (midnight // DAY_NS + 3) % 7):
        raise ValueError
    return [midnight]


def _midnight(year: int, month: int, day: int) -> int:
    """Return the midnight of a day; a value before the epoch where there is no such day."""
    try:
        return (dt.date(year, month, day).toordinal() - _EPOCH) * DAY_NS
    except ValueError:
        return -DAY_NS


def _layout(text: str, parts: dict[str, str | None]) -> str:
    def named(found: re.Match[str]) -> str:
        name = found[0]
        if name == parts.get("weekday"):
            return "a"
        return "b" if name == parts.get("name") else name

    sign = text.translate(_SHAPE)
    zone = parts.get("zone")
    if zone is not None and zone.strip()[0] in "+-":
        cut = len(zone.strip())
        sign = sign[:-cut] + "+" + sign[len(sign) - cut + 1 :]
    half = parts.get("half")
    if half is not None:
        sign = sign.replace(half, "PM" if half.isupper() else "pm")
    return _NAME.sub(named, sign) if parts.get("name") else sign
