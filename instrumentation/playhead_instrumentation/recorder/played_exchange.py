"""An exchange on a played tape: what a boundary makes an answer from."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from playhead_core.facts import Content, Delivery, End, Exchange
from playhead_instrumentation.recorder.exceptions import is_own_doing

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Reopen


class PlayedExchange(msgspec.Struct, frozen=True):
    """One exchange of a played tape, with its bytes and the times at which it was delivered.

    Items are counted in the order in which they were delivered: the head is 0, the parts follow from 1,
    and the end is one more than the last part.
    """

    exchange: Exchange
    instance: bytes
    """Process instance of that tape."""
    read: Callable[[Content], bytes]
    """Reads the bytes of its content. `TapeError` if the tape does not hold them."""
    reopen: Reopen | None = None
    """For a connection that the tape leaves open: how to continue live. None: it ended on the tape."""
    translated: Callable[[int], bytes] | None = None
    """Returns a part, by number, with volatile values replaced by those of now; None: unchanged."""

    def part(self, index: int) -> bytes:
        """The bytes of a part of the answer, counted from 0."""
        if self.translated is not None:
            return self.translated(index)
        return self.read(self.exchange.parts[index].data)

    @property
    def at_once(self) -> bool:
        """Whether the body was delivered together with its head."""
        end = self.exchange.end
        if end is None or end.how != "complete" or end.delivery is None:
            return False
        return end.delivery == self.exchange.head_delivery

    @property
    def is_left(self) -> bool:
        """Whether the program cancelled it or stopped reading."""
        end = self.exchange.end
        return end is not None and _is_left(end)

    @property
    def left(self) -> Delivery | None:
        """The delivery at which the program continued after it cancelled or stopped reading, or None."""
        end = self.exchange.end
        return end.delivery if end is not None and _is_left(end) else None

    def due(self, index: int) -> Delivery | None:
        """The delivery of item ``index``; None: it was never delivered."""
        return due_of(self.exchange, index)

    def deliveries(self, start: int = 0) -> Iterator[Delivery]:
        """All deliveries of the exchange, from item ``start`` on."""
        return deliveries_of(self.exchange, start)

    def past(self, index: int) -> bool:
        """Whether item ``index - 1`` comes from the world, because the tape is over."""
        return self.reopen is not None and index - 1 > len(self.exchange.parts)

    def after(self, index: int) -> int:
        """Number of messages that the program had sent before item ``index``."""
        exchange = self.exchange
        if index == 0 and exchange.head:
            return exchange.head_after
        if 1 <= index <= len(exchange.parts):
            return exchange.parts[index - 1].after
        return exchange.end.after if exchange.end is not None else 0


def due_of(exchange: Exchange, index: int) -> Delivery | None:
    """The delivery of an item, as `PlayedExchange` counts them; None: it was never delivered."""
    if index == 0 and exchange.head:
        return exchange.head_delivery
    if 1 <= index <= len(exchange.parts):
        return exchange.parts[index - 1].delivery
    end = exchange.end
    return None if end is None or _is_left(end) else end.delivery


def deliveries_of(exchange: Exchange, start: int = 0) -> Iterator[Delivery]:
    """All deliveries of an exchange, from item ``start`` on; last, when the program left it.

    From the first item on, that is with the one at which it went out if it had been halted.
    """
    if start == 0 and exchange.released is not None:
        yield exchange.released
    for index in range(start, len(exchange.parts) + 2):
        due = due_of(exchange, index)
        if due is not None:
            yield due
    end = exchange.end
    if end is not None and end.delivery is not None and _is_left(end):
        yield end.delivery


def _is_left(end: End) -> bool:
    return end.how == "abandoned" or is_own_doing(end.error)
