"""A fold of many items that can be had at any place without beginning anew.

>>> def add(sums, item):
...     sums.append(item)
>>> fold = MarkedFold(range(1000), list, add, list.copy, len)
>>> [len(fold.at(place)) for place in (999, 998, 3)]
[999, 998, 3]
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from typing import Final, Generic, TypeVar

Item = TypeVar("Item")
State = TypeVar("State")

EVERY: Final = 64
"""Items from one mark to the next, until marks are too heavy together."""

MOST_WEIGHT: Final = 1 << 20
"""Of all marks together, as the given function weighs them."""


class MarkedFold(Generic[Item, State]):
    """What came of the first items of a sequence, at any place.

    A place behind the last one that was asked for costs the items in between, one before it those since
    a *mark*: a copy of the state that was made on the way.
    """

    def __init__(
        self,
        items: Sequence[Item],
        start: Callable[[], State],
        apply: Callable[[State, Item], object],
        copied: Callable[[State], State],
        weight: Callable[[State], int],
    ) -> None:
        """``apply`` changes a state; ``weight``: of a copy, in the unit of `MOST_WEIGHT`."""
        self._items, self._apply, self._copied, self._weight = items, apply, copied, weight
        self._place = 0
        self._state = start()
        self._every = EVERY
        self._marks: list[tuple[int, State, int]] = [(0, copied(self._state), 0)]

    def at(self, place: int) -> State:
        """The state after the first ``place`` items. It is good until the next call."""
        if place < self._place:
            found = bisect_right(self._marks, place, key=lambda mark: mark[0]) - 1
            self._place, kept, _ = self._marks[found]
            self._state = self._copied(kept)
        for item in self._items[self._place : place]:
            self._apply(self._state, item)
            self._place += 1
            if self._place >= self._marks[-1][0] + self._every:
                self._mark()
        return self._state

    def _mark(self) -> None:
        kept = self._copied(self._state)
        self._marks.append((self._place, kept, self._weight(kept)))
        if sum(weight for _, _, weight in self._marks) > MOST_WEIGHT:
            self._marks = self._marks[:1] + self._marks[1:][1::2]
            self._every *= 2
