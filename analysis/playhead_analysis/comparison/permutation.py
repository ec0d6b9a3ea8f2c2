"""Tests of differences between two groups of runs, for any distribution and any number of measures.

Runs of both groups are mixed and dealt again many times. A difference counts if it is larger than the
largest difference of any measure in all but a few of these deals (Westfall and Young, 1993). No measure
needs a distribution, and measures that say the same thing do not cost any power.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from math import sqrt
from typing import Final

MOST_DEALS: Final = 2_000
FEWEST_DEALS: Final = 1_000
MOST_DRAWS: Final = 2_000_000
"""Runs that are drawn in all deals together, which bounds the time of a comparison of many runs."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Something that each run has: a number, or 1 and 0 for yes and no."""

    values: tuple[float, ...]
    """One of each run: first those of the left group, then those of the right."""
    is_share: bool
    """Whether the values are yes and no."""


def adjusted_p_values(families: Sequence[Sequence[Measure]], left: int) -> list[list[float]]:
    """Return the p value of each measure, adjusted for the number of measures of its family.

    ``left``: how many of the values belong to the left group. Numbers are compared by their ranks. The
    deals are the same each time, so the same runs give the same values.
    """
    total = max((len(one.values) for family in families for one in family), default=0)
    if not 0 < left < total:
        return [[1.0 for _ in family] for family in families]
    columns = [[_Column(one, left) for one in family] for family in families]
    undealt = range(left), (1 << left) - 1
    observed = [[column.distance(*undealt) for column in family] for family in columns]
    dealer, runs = random.Random(total), list(range(total))
    largest: list[list[float]] = [[] for _ in families]
    deals = max(FEWEST_DEALS, min(MOST_DEALS, MOST_DRAWS // total))
    for _ in range(deals):
        drawn = dealer.sample(runs, left)
        mask = _mask(drawn, total)
        for found, family in zip(largest, columns, strict=True):
            found.append(max((column.distance(drawn, mask) for column in family), default=0.0))
    for found in largest:
        found.sort()
    return [
        [(1 + deals - bisect_left(found, distance - 1e-9)) / (1 + deals) for distance in family]
        for found, family in zip(largest, observed, strict=True)
    ]


class _Column:
    """A measure, ready to be dealt: a set of bits if it is a share, else ranks."""

    def __init__(self, measure: Measure, left: int) -> None:
        total = len(measure.values)
        ranks = measure.values if measure.is_share else ranks_of(measure.values)
        mean = sum(ranks) / total if total else 0.0
        spread = sum((rank - mean) ** 2 for rank in ranks)
        self._expected = left * mean
        self._deviation = (
            sqrt(left * (total - left) * spread / (total * (total - 1))) if total > 1 else 0.0
        )
        self._bits = _mask(compress(range(total), ranks), total) if measure.is_share else None
        self._ranks = ranks

    def distance(self, drawn: Sequence[int], mask: int) -> float:
        """Return by how many standard deviations the left group is away from the mean of all deals."""
        if not self._deviation:
            return 0.0
        if self._bits is not None:
            found: float = (self._bits & mask).bit_count()
        else:
            found = sum(map(self._ranks.__getitem__, drawn))
        return abs(found - self._expected) / self._deviation


def ranks_of(values: Sequence[float]) -> tuple[float, ...]:
    """Return the rank of each value from 1; equal values have the mean of their ranks.

    >>> ranks_of([10.0, 5.0, 10.0])
    (2.5, 1.0, 2.5)
    """
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    start = 0
    for end in range(1, len(order) + 1):
        if end == len(order) or values[order[end]] != values[order[start]]:
            for at in order[start:end]:
                ranks[at] = (start + 1 + end) / 2
            start = end
    return tuple(ranks)


def cliffs_delta(left: Sequence[float], right: Sequence[float]) -> float:
    """Return how much larger the right values are, from -1 to 1.

    It is the share of pairs in which the right value is larger, less the share in which it is smaller.

    >>> cliffs_delta([1.0, 2.0], [3.0, 4.0]), cliffs_delta([1.0, 2.0], [1.0, 2.0])
    (1.0, 0.0)
    """
    if not left or not right:
        return 0.0
    ranks = ranks_of([*left, *right])
    above = sum(ranks[len(left) :]) - len(right) * (len(right) + 1) / 2
    return 2 * above / (len(left) * len(right)) - 1


def _mask(runs: Iterable[int], total: int) -> int:
    """Return a number whose bits are the runs."""
    digits = bytearray(b"0") * max(total, 1)
    for at in runs:
        digits[-1 - at] = 49
    return int(digits, 2)
