"""Ranges of numbers: first and last of each, both included."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

Ranges: TypeAlias = list[tuple[int, int]]


def extend(ranges: Ranges, first: int, last: int) -> None:
    """Append a range after all others; merge it with the last one where they are adjacent."""
    if ranges and first == ranges[-1][1] + 1:
        ranges[-1] = ranges[-1][0], last
    else:
        ranges.append((first, last))


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return the ranges in ascending order, with adjacent and overlapping ones merged."""
    found: Ranges = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = found[-1][0], max(last, found[-1][1])
        else:
            found.append((first, last))
    return found


def within(ranges: Ranges, number: int) -> bool:
    """Whether a number is in one of the ranges, which are ascending and do not overlap."""
    place = bisect_right(ranges, (number, 1 << 63)) - 1
    return place >= 0 and number <= ranges[place][1]


def outside(first: int, last: int, ranges: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the parts of a range outside of ``ranges``, which are ascending and do not overlap."""
    for place in range(max(0, bisect_right(ranges, (first, 1 << 63)) - 1), len(ranges)):
        begin, end = ranges[place]
        if begin > last:
            break
        if end < first:
            continue
        if begin > first:
            yield first, begin - 1
        first = end + 1
    if first <= last:
        yield first, last


def without(
    ranges: Iterable[tuple[int, int]], others: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, int]]:
    """Yield the parts of ``ranges`` outside of ``others``, which are ascending and do not overlap."""
    for first, last in ranges:
        yield from outside(first, last, others)
