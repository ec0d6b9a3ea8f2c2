"""Find repeated parts of a list of steps: ``3–22 same ×10``."""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from operator import eq

LONGEST_PATTERN = 6
"""Largest number of steps in a pattern."""

FEWEST_REPEATS = 3
FEWEST_HIDDEN = 6
"""A pattern is folded if it occurs at least this often in a row and hides at least this many lines."""


@dataclass(frozen=True, slots=True)
class Repeat:
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
) -> list[Repeat]:
    """Return the repeated stretches among ``items``, without overlap. An item None never belongs to one.

    ``sizes``: lines of each item; one, by default.

    >>> find_folds(["a", "b", "s", "c", "s", "c", "s", "c", "s", "c", "z"])
    [Repeat(first=2, end=10, pattern=2)]
    """
    numbers: dict[Hashable, int] = {}  # equal numbers for equal items: they are compared many times
    places = [
        ~at if one is None else numbers.setdefault(one, len(numbers)) for at, one in enumerate(items)
    ]
    if len(numbers) == len(places) - items.count(None):
        return []
    lines = [0, *accumulate(sizes or [1] * len(places))]
    repeated = [_repeated(places, pattern) for pattern in range(1, LONGEST_PATTERN + 1)]
    # Few items begin a repeat; looking at all of them would take most of the time.
    starts = {
        at
        for pattern, some in enumerate(repeated, 1)
        for begin, end in some
        for at in range(begin, end - (FEWEST_REPEATS - 1) * pattern + 1)
    }
    folds: list[Repeat] = []
    done = 0
    for at in sorted(starts):
        if at < done:
            continue
        best: Repeat | None = None
        for pattern, some in enumerate(repeated, 1):
            while some and some[-1][1] <= at:
                some.pop()
            equal = some[-1][1] - at if some and some[-1][0] <= at else 0
            if equal < pattern * (FEWEST_REPEATS - 1):
                continue
            end = at + (equal // pattern + 1) * pattern
            if lines[end] - lines[at + pattern] < fewest_hidden:
                continue
            if best is None or end > best.end:
                best = Repeat(at, end, pattern)
        if best is not None:
            folds.append(best)
            done = best.end
    return folds


def _repeated(items: Sequence[int], pattern: int) -> list[tuple[int, int]]:
    """Return the ranges of items that equal the one ``pattern`` further, the last range first.

    Shorter ranges than a fold needs are left out.
    """
    equal = bytes(map(eq, items[:-pattern], items[pattern:]))
    least = (FEWEST_REPEATS - 1) * pattern
    return [match.span() for match in re.finditer(rb"\x01{%d,}" % least, equal)][::-1]


def folded(steps: Sequence[str]) -> str:
    """Return a way with its repeats folded: ``chat → (search → chat) ×3 → refund``."""
    parts: list[str] = []
    at = 0
    for fold in find_folds(steps, fewest_hidden=2):
        parts += steps[at : fold.first]
        pattern = " → ".join(steps[fold.first : fold.first + fold.pattern])
        parts.append(f"({pattern}) ×{fold.times}" if fold.pattern > 1 else f"{pattern} ×{fold.times}")
        at = fold.end
    return " → ".join([*parts, *steps[at:]]) or "(no steps)"
