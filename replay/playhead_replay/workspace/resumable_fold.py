"""A fold over a sequence that can be evaluated at any position without starting again.

>>> def add(sums, item):
...     sums.append(item)
>>> fold = ResumableFold(range(1000), list, add, list.copy, len)
>>> [len(fold.at(position)) for position in (999, 998, 3)]
[999, 998, 3]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
State = TypeVar("State")

EVERY: Final = 64
"""Items between two marks, until the marks exceed `MOST_WEIGHT`."""

MOST_WEIGHT: Final = 1 << 20
"""Largest total weight of all marks, by the given function."""


class ResumableFold(Generic[Item, State]):
    """The state after the first items of a sequence, for any number of items.

    Going forward costs the items in between; going back costs the items since a *mark*, a copy of the
    state that was made on the way.
    """

    def __init__(
        self,
        items: Sequence[Item],
        start: Callable[[], State],
        apply: Callable[[State, Item], object],
        copied: Callable[[State], State],
        weight: Callable[[State], int],
    ) -> None:
        """``apply`` changes a state; ``weight``: weight of a copy, in units of `MOST_WEIGHT`."""
        self._items, self._apply, self._copied, self._weight = items, apply, copied, weight
        self._position = 0
        self._state = start()
        self._every = EVERY
        self._marks: list[tuple[int, State, int]] = [(0, copied(self._state), 0)]

    def at(self, position: int) -> State:
        """Return the state after the first ``position`` items. It is valid until the next call."""
        if position < self._position:
            found = bisect_right(self._marks, position, key=lambda mark: mark[0]) - 1
            self._position, kept, _ = self._marks[found]
            self._state = self._copied(kept)
        for item in self._items[self._position : position]:
            self._apply(self._state, item)
            self._position += 1
            if self._position >= self._marks[-1][0] + self._every:
                self._mark()
        return self._state

    def _mark(self) -> None:
        kept = self._copied(self._state)
        self._marks.append((self._position, kept, self._weight(kept)))
        if sum(weight for _, _, weight in self._marks) > MOST_WEIGHT:
            self._marks = self._marks[:1] + self._marks[1:][1::2]
            self._every *= 2
