"""Who answers an ask: the world, a recording, or nobody."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from playhead_instrumentation.driver.exceptions import is_own_doing
from playhead_semconv.errors import PlayheadError
from playhead_semconv.facts import Ask, Content, Delivery, End, Exchange, ExchangeId, Fidelity
from playhead_semconv.rerun.plans import Edit, Reopen

if TYPE_CHECKING:
    from playhead_semconv.difference import Difference
    from playhead_semconv.volatile import Request


@dataclass(frozen=True, slots=True)
class Live:
    """Do it for real."""

    instead_of: Exchange | None = None
    """At replay: the recording that would have answered."""
    instance: bytes = b""
    """The process on whose tape that stands."""
    edits: Sequence[Edit] = ()
    """Changes of the request."""


@dataclass(frozen=True, slots=True)
class Played:
    """A recording answers."""

    exchange: Exchange
    fidelity: Fidelity
    instance: bytes
    """Whose tape it is on."""
    read: Callable[[Content], bytes]
    """The bytes of its content."""
    elsewhere: bool = True
    """Whether that tape holds them: the tape of now does not repeat them."""
    reopen: Reopen | None = None
    """Of a connection that the tape leaves open: how the world is to go on with it. None: it ended."""
    made: bool = False
    """It is on no tape: it enters as soon as it can."""
    pairs: str | None = None
    """What the request holds in the place of recorded values, as it stands on the tape."""
    varied: Callable[[Request, Request], str | None] = lambda recorded, now: None
    """The same of two messages; None where they differ in more."""
    translated: Callable[[int], bytes] | None = None
    """Gives parts with the values of now, by number; None: they are as they were."""

    def part(self, index: int) -> bytes:
        """The bytes of one of its parts."""
        if self.translated is not None:
            return self.translated(index)
        return self.read(self.exchange.parts[index].data)

    def deliveries(self, start: int = 0) -> Iterator[Delivery]:
        """Everything that was delivered, from the ``start``-th thing on."""
        for index in range(start, len(self.exchange.parts) + 2):
            due = self.due(index)
            if due is not None:
                yield due
        if self.left is not None:
            yield self.left

    @property
    def at_once(self) -> bool:
        """Whether the body was delivered together with its head."""
        end = self.exchange.end
        if end is None or end.how != "complete" or end.delivery is None:
            return False
        return end.delivery == self.exchange.head_delivery

    @property
    def left(self) -> Delivery | None:
        """When the program, which had cancelled it, or read no further, went on; None: at once."""
        end = self.exchange.end
        return end.delivery if end is not None and _is_left(end) else None

    def due(self, index: int) -> Delivery | None:
        """When the head (0), a part (from 1) or the end (last) was delivered; None: it never was."""
        exchange = self.exchange
        if index == 0 and exchange.head:
            return exchange.head_delivery
        if 1 <= index <= len(exchange.parts):
            return exchange.parts[index - 1].delivery
        end = exchange.end
        return None if end is None or _is_left(end) else end.delivery

    def past(self, index: int) -> bool:
        """Whether that, counted one further than `due` does, is from the world: the tape has no more."""
        return self.reopen is not None and index - 1 > len(self.exchange.parts)

    def after(self, index: int) -> int:
        """How many messages the program had sent before that."""
        exchange = self.exchange
        if index == 0 and exchange.head:
            return exchange.head_after
        if 1 <= index <= len(exchange.parts):
            return exchange.parts[index - 1].after
        return exchange.end.after if exchange.end is not None else 0

    def difference(self, number: int, data: bytes, attributes: Mapping[str, Any]) -> Difference | str:
        """How a message that the program sends differs from the recorded one; numbers from 0.

        A text: not at all, or only in values that were handed out, which it names as a tape does.
        """
        # A recording, which asks the world, has no use for these.
        from playhead_semconv.difference import Difference, message_difference, shown
        from playhead_semconv.volatile import Request

        recorded = self.exchange.sent
        if number >= len(recorded):
            return Difference(f"message {number + 1}", "(absent)", shown(data))
        before = self.read(recorded[number].data)
        sides = (before, recorded[number].attributes), (data, attributes)
        found = message_difference(number, *sides)
        if found is None:
            return ""
        return self.varied(Request.of(before), Request.of(data)) or found


def _is_left(end: End) -> bool:
    return end.how == "abandoned" or is_own_doing(end.error)


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing answers. ``error`` names the nearest recording."""

    error: PlayheadError
    difference: Difference | None = None
    """Where the request differs first from the nearest recording in what is not volatile."""


Verdict: TypeAlias = Live | Played | Refused

LIVE = Live()


class Source(Protocol):
    """Who answers. A pure lookup; never waits."""

    @property
    def closed(self) -> bool:
        """Whether the answer depends on the whole request body."""
        ...

    @property
    def fenced(self) -> bool:
        """Whether what no boundary asks for is kept from the world."""
        ...

    def expects(self) -> tuple[str, Played] | None:
        """The request that comes next and its lane root, where a tape says so; each once."""
        ...

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Verdict:
        """``body``: the bytes of ``ask.body`` as they go on tape. Each recording answers once."""
        ...

    def ended(self, id: ExchangeId) -> None:
        """What is done for real has ended."""
        ...


class World:
    """The source of a recording: everything is asked for real."""

    closed = False
    fenced = False

    def expects(self) -> None:
        """Nobody knows what comes."""

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Verdict:
        """Do it for real."""
        return LIVE

    def ended(self, id: ExchangeId) -> None:
        """Nothing depends on it."""
