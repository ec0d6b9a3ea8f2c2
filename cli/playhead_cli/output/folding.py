"""Fold repeated parts of a list of steps: ``3–22 same ×10``."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

LONGEST_PATTERN = 6
"""Largest number of steps in a pattern."""

FEWEST_REPEATS = 3
FEWEST_HIDDEN = 6
"""A pattern is folded if it occurs at least this often in a row and hides at least this many items."""


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

    @property
    def worth_it(self) -> bool:
        """Whether folding saves enough lines."""
        return self.times >= FEWEST_REPEATS and (self.times - 1) * self.pattern >= FEWEST_HIDDEN


def find_folds(items: Sequence[Hashable | None]) -> list[Fold]:
    """Return the repeated stretches among ``items``, without overlap. An item None never belongs to one.

    >>> find_folds(["a", "b", "s", "c", "s", "c", "s", "c", "s", "c", "z"])
    [Fold(first=2, end=10, pattern=2)]
    """
    numbers: dict[Hashable, int] = {}  # equal numbers for equal items: they are compared many times
    items = [None if one is None else numbers.setdefault(one, len(numbers)) for one in items]
    if len(numbers) == len(items) - items.count(None):
        return []
    folds: list[Fold] = []
    at = 0
    while at < len(items):
        best: Fold | None = None
        for pattern in range(1, LONGEST_PATTERN + 1):
            if at + pattern >= len(items) or items[at] != items[at + pattern]:
                continue
            found = Fold(at, _end_of_repeats(items, at, pattern), pattern)
            if found.worth_it and (best is None or found.end > best.end):
                best = found
        if best is None:
            at += 1
        else:
            folds.append(best)
            at = best.end
    return folds


def _end_of_repeats(items: Sequence[Hashable | None], first: int, pattern: int) -> int:
    unit = items[first : first + pattern]
    end = first
    while len(unit) == pattern and None not in unit and items[end : end + pattern] == unit:
        end += pattern
    return end
