"""Recordings that can be used once: numbers by question, in order, the asking lane's first."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Q = TypeVar("Q", bound=Hashable)


class UnusedResponses(Generic[Q]):
    """Unused recordings, by number. Taking one needs constant time."""

    def __init__(self) -> None:
        self._anywhere: dict[Q, int | deque[int]] = {}
        self._in_lane: dict[tuple[int, Q], int | deque[int]] = {}
        self._used: set[int] = set()

    def put(self, number: int, question: Q, lane: int) -> None:
        """Add a recording that answers ``question``, asked in ``lane``."""
        _put(self._anywhere, question, number)
        _put(self._in_lane, (lane, question), number)

    def take(self, question: Q, lane: int, *, elsewhere: bool = True) -> tuple[int, bool] | None:
        """Take the next unused recording of ``lane``. Returns its number and whether it is of ``lane``.

        ``elsewhere``: if that lane has none left, take one of any lane.
        """
        number = self._next(self._in_lane, (lane, question))
        if number is not None:
            return number, True
        number = self._next(self._anywhere, question) if elsewhere else None
        return None if number is None else (number, False)

    def use(self, number: int) -> bool:
        """Mark a recording as used; False if it already was."""
        if number in self._used:
            return False
        self._used.add(number)
        return True

    def give_back(self, number: int) -> None:
        """Undo `use`."""
        self._used.discard(number)

    def used(self, number: int) -> bool:
        """Whether a recording is used."""
        return number in self._used

    def _next(self, shelf: dict[K, int | deque[int]], key: K) -> int | None:
        there = shelf.get(key)
        if isinstance(there, int):
            return there if self.use(there) else None
        while there:
            try:
                number = there.popleft()
            except IndexError:  # another thread took the last one
                return None
            if self.use(number):
                return number
        return None


def _put(shelf: dict[K, int | deque[int]], key: K, number: int) -> None:
    # Most questions are asked once; a queue for each would need most of the memory.
    there = shelf.setdefault(key, number)
    if isinstance(there, deque):
        there.append(number)
    elif there != number:
        shelf[key] = deque((there, number))
