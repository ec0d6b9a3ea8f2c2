"""Fold repeated parts of a list of steps: ``3–22 same ×10``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate

LONGEST_PATTERN = 6
"""Largest number of steps in a pattern."""

FEWEST_REPEATS = 3
FEWEST_HIDDEN = 6
"""A pattern is folded if it occurs at least this often in a row and hides at least this many lines."""


@dataclass(frozen=True, slots=True)
class Fold:
    """``times`` repetitions of a pattern, from item ``first`` to before item ``end``."""

    first: int
    end: int
    pattern: int
    """Number of items in one repetition."""

    @property
    def times(self) -> int:
        """Number of repetitions."""
        return (self.end - self.first) // self.pattern


def find_folds(
    items: Sequence[Hashable | None],
    sizes: Sequence[int] | None = None,
    fewest_hidden: int = FEWEST_HIDDEN,
) -> list[Fold]:
    """Return the repeated stretches among ``items``, without overlap. An item None never belongs to one.

    ``sizes``: lines of each item; one, by default.

    >>> find_folds(["a", "b", "s", "c", "s", "c", "s", "c", "s", "c", "z"])
    [Fold(first=2, end=10, pattern=2)]
    """
    numbers: dict[Hashable, int] = {}  # equal numbers for equal items: they are compared many times
    items = [None if one is None else numbers.setdefault(one, len(numbers)) for one in items]
    if len(numbers) == len(items) - items.count(None):
        return []
    lines = [0, *accumulate(sizes or [1] * len(items))]
    repeated = [_repeated(items, pattern) for pattern in range(1, LONGEST_PATTERN + 1)]
    folds: list[Fold] = []
    at = 0
    while at < len(items):
        best: Fold | None = None
        for pattern, equal in enumerate(repeated, 1):
            times = equal[at] // pattern + 1
            end = at + times * pattern
            if times < FEWEST_REPEATS or lines[end] - lines[at + pattern] < fewest_hidden:
                continue
            if best is None or end > best.end:
                best = Fold(at, end, pattern)
        if best is None:
            at += 1
        else:
            folds.append(best)
            at = best.end
    return folds


def _repeated(items: Sequence[int | None], pattern: int) -> list[int]:
    """Return for each index how many items from there on equal the one ``pattern`` further."""
    equal = [0] * len(items)
    for at in range(len(items) - pattern - 1, -1, -1):
        if items[at] is not None and items[at] == items[at + pattern]:
            equal[at] = equal[at + 1] + 1
    return equal
