"""Which waiter may go next, in the order of a tape. Pure: knows no thread, no loop and no clock."""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

from playhead_semconv.facts import Delivery

W = TypeVar("W")


class Order:
    """The deliveries of a tape, each at its place. Takes 8 bytes a delivery."""

    def __init__(self, dues: Iterable[Delivery] = ()) -> None:
        self._dues = array("Q")
        self.add(dues)

    def add(self, dues: Iterable[Delivery]) -> None:
        """In any order; places are given by `settle`."""
        self._dues.extend(map(_packed, dues))

    def settle(self) -> None:
        """Nothing is added any more."""
        self._dues = array("Q", sorted(set(self._dues)))

    def place(self, due: Delivery) -> int:
        """Where ``due`` stands, from 0; -1 where the tape does not hold it."""
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
    """Lets waiters through in the order in which they were delivered on tape.

    A batch is opened when everything is quiet, and passed one by one without waiting for quiet again:
    what one loop tick delivered is delivered together, what came later comes after all consequences.
    A waiter is whatever its owner calls one.
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
        """Place of the waiter that was let through and has not gone on yet."""

    def __len__(self) -> int:
        return len(self._waiting) + len(self._late)

    def following(self) -> Delivery | None:
        """What comes next on the tape; None: nothing more."""
        return self._order[self._next] if self._next < len(self._order) else None

    def passing(self) -> bool:
        """Whether somebody was let through and has not gone on yet."""
        return self._out is not None

    def waiting(self) -> list[W]:
        """Who waits."""
        return [*self._waiting.values(), *self._late.values()]

    def arrive(self, waiter: W, due: Delivery) -> bool:
        """Somebody wants to enter; True if at once, without a call of `went_on`."""
        place = self._order.place(due)
        if place == self._next and self._out is None and due.batch == self._batch:
            self._pass()
            return True
        (self._late if place < self._next else self._waiting)[place] = waiter
        return False

    def leave(self, waiter: W) -> None:
        """A waiter waits no longer: it was cancelled, perhaps after it was let through."""
        for waiting in (self._waiting, self._late):
            for place, one in list(waiting.items()):
                if one is waiter:
                    del waiting[place]

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Nobody will come for these."""
        self._skipped.update(place for due in dues if (place := self._order.place(due)) >= self._next)
        self._pass_skipped()

    def release(self) -> W | None:
        """Everything is quiet: who goes next. None: it has not arrived."""
        if self._out is not None:
            return None
        if self._late:
            return self._late.pop(min(self._late))
        if self._next not in self._waiting:
            return None
        self._batch = self._order[self._next].batch
        return self._let_through()

    def went_on(self, due: Delivery) -> W | None:
        """A waiter that was let through goes on; who follows in the same batch, at once."""
        if self._out is None or self._order.place(due) != self._out:
            return None
        self._out = None
        self._pass()
        follows = self._next in self._waiting and self._order[self._next].batch == self._batch
        return self._let_through() if follows else None

    def force(self) -> W | None:
        """Nobody can proceed: the waiter with the oldest delivery, past what has not arrived."""
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
