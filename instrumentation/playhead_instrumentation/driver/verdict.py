"""Sources and their verdicts: who answers an ask, the world, a recording, or nobody."""

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
    from playhead_semconv.volatile import ComparedRequest


@dataclass(frozen=True, slots=True)
class Live:
    """The exchange is done for real."""

    instead_of: Exchange | None = None
    """Replay: the recording that would have answered."""
    instance: bytes = b""
    """Process instance of that recording."""
    edits: Sequence[Edit] = ()
    """Edits of the request, made by a fork."""


@dataclass(frozen=True, slots=True)
class Played:
    """A recording answers."""

    exchange: Exchange
    fidelity: Fidelity
    instance: bytes
    """Process instance of the tape with the recording."""
    read: Callable[[Content], bytes]
    """Reads the bytes of its content."""
    elsewhere: bool = True
    """Whether the *now* tape refers to the bytes on that tape instead of repeating them."""
    reopen: Reopen | None = None
    """For a connection that the tape leaves open: how to continue live. None: it ended on the tape."""
    made: bool = False
    """Whether the answer was made up and is on no tape: it enters as soon as possible."""
    pairs: str | None = None
    """The request's volatile values paired with the recorded ones, as written on the tape."""
    varied: Callable[[ComparedRequest, ComparedRequest], str | None] = lambda recorded, now: None
    """The same pairs for two messages; None if they differ in more."""
    translated: Callable[[int], bytes] | None = None
    """Returns a part, by number, with volatile values replaced by those of now; None: unchanged."""

    def part(self, index: int) -> bytes:
        """The bytes of a part of the answer."""
        if self.translated is not None:
            return self.translated(index)
        return self.read(self.exchange.parts[index].data)

    def deliveries(self, start: int = 0) -> Iterator[Delivery]:
        """All deliveries of the exchange, from index ``start`` on."""
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
        """The delivery at which the program continued after it cancelled or stopped reading, or None."""
        end = self.exchange.end
        return end.delivery if end is not None and _is_left(end) else None

    def due(self, index: int) -> Delivery | None:
        """The delivery of the head (0), a part (from 1) or the end (last); None: never delivered."""
        exchange = self.exchange
        if index == 0 and exchange.head:
            return exchange.head_delivery
        if 1 <= index <= len(exchange.parts):
            return exchange.parts[index - 1].delivery
        end = exchange.end
        return None if end is None or _is_left(end) else end.delivery

    def past(self, index: int) -> bool:
        """Whether item ``index`` (one more than `due` counts) comes from the world: the tape is over."""
        return self.reopen is not None and index - 1 > len(self.exchange.parts)

    def after(self, index: int) -> int:
        """Number of messages that the program had sent before item ``index``."""
        exchange = self.exchange
        if index == 0 and exchange.head:
            return exchange.head_after
        if 1 <= index <= len(exchange.parts):
            return exchange.parts[index - 1].after
        return exchange.end.after if exchange.end is not None else 0

    def difference(self, number: int, data: bytes, attributes: Mapping[str, Any]) -> Difference | str:
        """How sent message ``number`` (from 0) differs from the recorded one.

        A text means no difference, or one in volatile values only: it holds their pairs as on a tape.
        """
        # Lazy: recordings do not need these.
        from playhead_semconv.difference import Difference, message_difference, shown
        from playhead_semconv.volatile import ComparedRequest

        recorded = self.exchange.sent
        if number >= len(recorded):
            return Difference(f"message {number + 1}", "(absent)", shown(data))
        before = self.read(recorded[number].data)
        sides = (before, recorded[number].attributes), (data, attributes)
        found = message_difference(number, *sides)
        if found is None:
            return ""
        return self.varied(ComparedRequest.of(before), ComparedRequest.of(data)) or found


def _is_left(end: End) -> bool:
    return end.how == "abandoned" or is_own_doing(end.error)


@dataclass(frozen=True, slots=True)
class Refused:
    """Nothing answers. ``error`` names the nearest recording."""

    error: PlayheadError
    difference: Difference | None = None
    """First non-volatile difference from the nearest recording."""


Verdict: TypeAlias = Live | Played | Refused

LIVE = Live()


class Source(Protocol):
    """Decides who answers. A pure lookup; never waits."""

    @property
    def closed(self) -> bool:
        """Whether a decision needs the whole request body."""
        ...

    @property
    def fenced(self) -> bool:
        """Whether the program is kept from the world where no boundary is involved."""
        ...

    def expects(self) -> tuple[str, Played] | None:
        """Lane root and recording of the next inbound request, if a tape says so. Each comes once."""
        ...

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Verdict:
        """Decide who answers. ``body``: of ``ask``, as on tape. Each recording answers once."""
        ...

    def ended(self, id: ExchangeId) -> None:
        """An exchange that was done for real has ended."""
        ...


class World:
    """The source of a recording: everything is done for real."""

    closed = False
    fenced = False

    def expects(self) -> None:
        """No-op: no tape tells which request comes next."""

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Verdict:
        """Always `Live`."""
        return LIVE

    def ended(self, id: ExchangeId) -> None:
        """No-op: nothing depends on it."""
