"""Answers that stand: recordings that answer as often as they are asked, as opened connections do."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

Asked = TypeVar("Asked", bound=Hashable)


class _OfLane:
    """The recordings of one lane for one question."""

    __slots__ = ("in_order", "last")

    def __init__(self) -> None:
        self.in_order: deque[int | None] = deque()
        self.last: int | None = None
        """The last that stands."""


class StandingAnswers(Generic[Asked]):
    """Numbers of recordings, by question and lane.

    A lane gets its own in order, and the last of them as often as it asks. A lane without any gets what
    stood when the first that had asked was done. What failed answers once, where it failed, and is not
    given here: it is found as any other recording is.
    """

    def __init__(self) -> None:
        self._found: dict[Asked, dict[int, _OfLane]] = {}

    def add(self, asked: Asked, lane: int, number: int | None) -> None:
        """Add the next recording of a lane; None: it failed."""
        of_lane = self._found.setdefault(asked, {}).setdefault(lane, _OfLane())
        of_lane.in_order.append(number)
        of_lane.last = of_lane.last if number is None else number

    def answer(self, asked: Asked, lane: int) -> int | None:
        """The recording that answers; None: none stands, or the next of this lane failed."""
        by_lane = self._found.get(asked)
        if by_lane is None:
            return None
        own = by_lane.get(lane)
        if own is not None and own.in_order:
            return own.in_order.popleft()
        if own is not None and own.last is not None:
            return own.last
        return next((one.last for one in by_lane.values() if one.last is not None), None)
