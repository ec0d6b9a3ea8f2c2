"""Which waiter may go next, in the order of a tape. Pure: no threads, no loops, no clocks."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from playhead_core.facts import Delivery

W = TypeVar("W")


class Order:
    """The sorted deliveries of a tape. Uses 8 bytes for each."""

    def __init__(self, dues: Iterable[Delivery] = ()) -> None:
        self._dues = array("Q")
        self.add(dues)

    def add(self, dues: Iterable[Delivery]) -> None:
        """Add deliveries in any order; `settle` sorts them."""
        self._dues.extend(map(_packed, dues))

    def settle(self) -> None:
        """Sort. Nothing may be added afterwards."""
        self._dues = array("Q", sorted(set(self._dues)))

    def place(self, due: Delivery) -> int:
        """Index of ``due``; -1 if the tape does not hold it."""
        packed = _packed(due)
        place = bisect_left(self._dues, packed)
        return place if place < len(self._dues) and self._dues[place] == packed else -1

    def __len__(self) -> int:
        return len(self._dues)

    def __iter__(self) -> Iterator[Delivery]:
        return map(self.__getitem__, range(len(self._dues)))

    def __getitem__(self, place: int) -> Delivery:
        return Delivery(*divmod(self._dues[place], 1 << 32))


def _packed(due: Delivery) -> int:
    return due.batch << 32 | due.order


class Schedule(Generic[W]):
    """Lets waiters through in the order of the tape.

    A batch is opened when everything is idle; its waiters then follow each other at once. So deliveries
    of one loop tick stay together, and later ones come after all consequences.
    A waiter may be any object.
    """

    def __init__(self, order: Order | Iterable[Delivery]) -> None:
        self._order = order if isinstance(order, Order) else Order(order)
        self._order.settle()
        self._next = 0
        self._batch: int | None = None
        self._waiting: dict[int, W] = {}
        self._late: dict[int, W] = {}
        self._skipped: set[int] = set()
        self._out: int | None = None
        """Index of the delivery whose waiter was let through and has not continued yet."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._late)

    def following(self) -> Delivery | None:
        """The next delivery on the tape; None at its end."""
        return self._order[self._next] if self._next < len(self._order) else None

    def passing(self) -> bool:
        """Whether a waiter was let through and has not continued yet."""
        return self._out is not None

    def waiting(self) -> list[W]:
        """All waiters."""
        return [*self._waiting.values(), *self._late.values()]

    def arrive(self, waiter: W, due: Delivery) -> bool:
        """Add a waiter. True if it may enter immediately; `went_on` is not called for it then."""
        place = self._order.place(due)
        if place == self._next and self._out is None and due.batch == self._batch:
            self._pass()
            return True
        (self._late if place < self._next else self._waiting)[place] = waiter
        return False

    def leave(self, waiter: W) -> None:
        """Remove a cancelled waiter, which may have been let through already."""
        for waiting in (self._waiting, self._late):
            for place, one in list(waiting.items()):
                if one is waiter:
                    del waiting[place]

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries; no waiter will claim them."""
        self._skipped.update(place for due in dues if (place := self._order.place(due)) >= self._next)
        self._pass_skipped()

    def release(self) -> W | None:
        """Everything is idle: take the next waiter. None if it has not arrived."""
        if self._out is not None:
            return None
        if self._late:
            return self._late.pop(min(self._late))
        if self._next not in self._waiting:
            return None
        self._batch = self._order[self._next].batch
        return self._let_through()

    def went_on(self, due: Delivery) -> W | None:
        """A waiter that was let through continues. Returns the next one of the same batch."""
        if self._out is None or self._order.place(due) != self._out:
            return None
        self._out = None
        self._pass()
        follows = self._next in self._waiting and self._order[self._next].batch == self._batch
        return self._let_through() if follows else None

    def force(self) -> W | None:
        """No thread can proceed: take the waiter with the oldest delivery, passing over missing ones."""
        if self._out is not None or not self._waiting:
            return None
        self._next = min(self._waiting)
        return self.release()

    def _let_through(self) -> W:
        self._out = self._next
        return self._waiting.pop(self._next)

    def _pass(self) -> None:
        self._next += 1
        self._pass_skipped()

    def _pass_skipped(self) -> None:
        while self._out is None and self._next in self._skipped:
            self._skipped.discard(self._next)
            self._next += 1
