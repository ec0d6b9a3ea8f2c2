"""What can be taken once: numbers by question, in their order, those of the asking lane first."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
Q = TypeVar("Q", bound=Hashable)


class Shelf(Generic[Q]):
    """Recordings, by number. Taking one takes the same time however many there are."""

    def __init__(self) -> None:
        self._anywhere: dict[Q, int | deque[int]] = {}
        self._in_lane: dict[tuple[int, Q], int | deque[int]] = {}
        self._used: set[int] = set()

    def put(self, number: int, question: Q, lane: int) -> None:
        """A recording answers ``question``, which was asked in ``lane``."""
        _put(self._anywhere, question, number)
        _put(self._in_lane, (lane, question), number)

    def take(self, question: Q, lane: int, *, elsewhere: bool = True) -> tuple[int, bool] | None:
        """The next unused one of ``lane``, used from then on; whether it is of ``lane``.

        ``elsewhere``: where that has none left, of any.
        """
        number = self._next(self._in_lane, (lane, question))
        if number is not None:
            return number, True
        number = self._next(self._anywhere, question) if elsewhere else None
        return None if number is None else (number, False)

    def use(self, number: int) -> bool:
        """Nobody is to take this one any more; False where somebody has."""
        if number in self._used:
            return False
        self._used.add(number)
        return True

    def give_back(self, number: int) -> None:
        """Undo `use`."""
        self._used.discard(number)

    def used(self, number: int) -> bool:
        """Whether it was taken."""
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
    # Most questions are asked once, and a queue for one would be most of the memory.
    there = shelf.setdefault(key, number)
    if isinstance(there, deque):
        there.append(number)
    elif there != number:
        shelf[key] = deque((there, number))
