"""Sources and their decisions: the world answers a request, a recording does, or it is refused."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    NamedTuple,
    Protocol,
    TypeAlias,
)

import msgspec

from playhead_core.errors import PlayheadError
from playhead_core.facts import Ask, Exchange, ExchangeId, Fidelity
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

if TYPE_CHECKING:
    from playhead_core.difference import Difference
    from playhead_core.normalize import ComparedRequest
    from playhead_core.rerun.plans import Edit, Unknown


class Origin(NamedTuple):
    """The recorded exchange to which an exchange of now corresponds."""

    instance: bytes
    """Process instance of the tape."""
    exchange: Exchange


class Live(msgspec.Struct, frozen=True):
    """The exchange is done for real."""

    instead_of: Exchange | None = None
    """Replay: the recording that would have answered."""
    instance: bytes = b""
    """Process instance of that recording."""
    edits: Sequence[Edit] = ()
    """Edits of the request, made by a fork."""
    unknown: Unknown = "rule"
    """What the user has decided about the recording, where that has no end."""
    ended: Callable[[ExchangeId], object] | None = None
    """Called once, when the end fact is on the tape or when somebody else answers after all."""

    @property
    def origin(self) -> Origin | None:
        """The recording that it replaces; None: there is none."""
        return None if self.instead_of is None else Origin(self.instance, self.instead_of)


class Played(PlayedExchange, frozen=True, kw_only=True):
    """A recording answers."""

    fidelity: Fidelity
    elsewhere: bool = True
    """Whether the *now* tape refers to the bytes on that tape instead of repeating them."""
    made: bool = False
    """Whether the answer was made up and is on no tape: it enters as soon as possible."""
    pairs: str | None = None
    """The request's volatile values paired with the recorded ones, as written on the tape."""
    varied: Callable[[ComparedRequest, ComparedRequest], str | None] = lambda recorded, now: None
    """The same pairs for two messages; None if they differ in more."""

    @property
    def origin(self) -> Origin:
        """The recording that answers."""
        return Origin(self.instance, self.exchange)

    def difference(self, number: int, data: bytes, attributes: Mapping[str, Any]) -> Difference | str:
        """How sent message ``number`` (from 0) differs from the recorded one.

        A text means no difference, or one in volatile values only: it holds their pairs as on a tape.
        """
        # Lazy: recordings do not need these.
        from playhead_core.difference import Difference, message_difference, shown
        from playhead_core.normalize import ComparedRequest

        recorded = self.exchange.sent
        if number >= len(recorded):
            return Difference(f"message {number + 1}", "(absent)", shown(data))
        before = self.read(recorded[number].data)
        sides = (before, recorded[number].attributes), (data, attributes)
        found = message_difference(number, *sides)
        if found is None:
            return ""
        return self.varied(ComparedRequest.of(before), ComparedRequest.of(data)) or found


class Refused(msgspec.Struct, frozen=True):
    """Nothing answers. ``error`` names the nearest recording."""

    error: PlayheadError
    difference: Difference | None = None
    """First non-volatile difference from the nearest recording."""

    @property
    def origin(self) -> Origin | None:
        """None: no recording corresponds to the exchange."""
        return None


Decision: TypeAlias = Live | Played | Refused

LIVE = Live()


class Source(Protocol):
    """Decides who answers at a replay: a tape or the world. A pure lookup that never waits.

    `Driver.open` asks it once for each exchange, between the ask of the program and the request fact.
    The decision holds to the end of the exchange::

        ask = Ask("http", "GET https://api.example/", content, "read", "out", {})
        decision = source.decide(id, ask, body)
        call.answer(send, again)       # Live: send();  Played: again(decision);  Refused: raises

    Methods may be called from any thread, several at a time.
    """

    @property
    def closed(self) -> bool:
        """Whether a tape is asked first: nothing goes out before `decide`, which needs the whole body.

        It does not become true again: a fork that goes on live behind its tape is open from then on.
        """
        ...

    @property
    def fenced(self) -> bool:
        """Whether the program is kept from the world where no boundary is involved."""
        ...

    def expects(self) -> tuple[str, Played] | None:
        """Take the next inbound request of the tape: the name of its lane root, and the recording.

        In the order of the tape, each once. None: the world says which requests come.
        """
        ...

    def decide(self, id: ExchangeId, ask: Ask, body: bytes) -> Decision:
        """Decide who answers.

        ``id``: the exchange of now. ``ask``: what is asked, without credentials. ``body``: the bytes of
        ``ask.body``, as they go on the tape.

        Returns `Live`, `Played` with the recording that answers, or `Refused` with the error that the
        program gets; a refusal is returned, not raised. Each recording answers once: the one with the
        same kind, key and body that was recorded first, of the asking lane before others. `TapeError`
        where the tape cannot be read; the exchange is then not opened.
        """
        ...
