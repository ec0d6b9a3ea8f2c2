"""Durations in words."""

from __future__ import annotations

MS, SECOND = 10**6, 10**9


def brief(ns: int) -> str:
    """Return a duration in one short word.

    >>> brief(12_000_000), brief(3_400_000_000), brief(125 * 10**9), brief(2 * 3600 * 10**9)
    ('12ms', '3.4s', '2m05s', '2h00m')
    """
    if ns < SECOND:
        return f"{ns // MS}ms"
    if ns < 60 * SECOND:
        return f"{ns / SECOND:.1f}s"
    seconds = ns // SECOND
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    return f"{seconds // 3600}h{seconds % 3600 // 60:02}m"
