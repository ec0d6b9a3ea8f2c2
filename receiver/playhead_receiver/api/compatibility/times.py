"""Parses durations and times in the formats of Go's tools."""

from __future__ import annotations

import re
from datetime import datetime

from playhead_core.errors import UsageError

UNITS_NS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
    "d": 86400 * 10**9,
}
PART = r"(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h|d)"
_PART = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h|d)")
_WHOLE = re.compile(f"(?:{PART})+\\Z")


def duration_ns(text: str) -> int:
    """``1.2s``, ``1h30m``. `UsageError`.

    >>> duration_ns("1m30s")
    90000000000
    """
    if not _WHOLE.match(text):
        raise UsageError(f"{text!r} is not a duration: 1.5s, 200ms, 1h30m")
    return sum(round(float(number) * UNITS_NS[unit]) for number, unit in _PART.findall(text))


def moment_ns(text: str, *, unit_ns: int = 10**9) -> int:
    """A multiple of ``unit_ns``, or an RFC 3339 time. `UsageError`."""
    if re.fullmatch(r"\d{1,20}", text):
        return int(text) * unit_ns
    try:
        found = datetime.fromisoformat(_micro(text))
        if found.tzinfo is None:
            raise ValueError
        return round(found.timestamp() * 10**6) * 10**3
    except (ValueError, OverflowError):
        raise UsageError(f"{text!r} is not a time") from None


def _micro(text: str) -> str:
    """An RFC 3339 time, cut to the number of digits that Python can parse."""
    return re.sub(r"(\.\d{6})\d+", r"\1", text)
