"""When something may enter the program."""

from __future__ import annotations

import itertools
from asyncio import AbstractEventLoop, _get_running_loop  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
from collections.abc import Callable, Generator, Iterable
from contextvars import Context
from typing import Any, Protocol, TypeAlias

from playhead_semconv.facts import Delivery, ExchangeId

running_loop = _get_running_loop
"""The loop that runs in this thread, else None."""


Called: TypeAlias = Callable[[Delivery | None], None]
"""Told of the delivery at which somebody was let in."""


class Turn(Protocol):
    """A place in the order of deliveries: the only doubling of sync and async."""

    def wait(self) -> Delivery | None:
        """Block until it is this one's turn."""
        ...

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        """Suspend until it is this one's turn. Cancelling gives the place up."""
        ...

    def give_up(self) -> None:
        """Have it wait no longer, from any thread: it goes on without a delivery."""
        ...

    def call(
        self, loop: AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """Have ``called`` called in this thread's ``loop`` at this one's turn, at once where it may.

        What is returned gives the place up.
        """
        ...


class Gate(Protocol):
    """Orders what enters the program."""

    level: str
    """``exchanges`` or ``causal``: nothing is held back; ``strict``: one thing enters at a time."""

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Turn:
        """Something has come. ``due``: when it came on the tape that is played; None: it is live.

        ``who``: how it is called where it enters out of order.
        """
        ...

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Turn:
        """What had not come when the tape was made: its turn does not come either.

        ``after_s``: but where nobody else goes on, because so much time has passed.
        """
        ...

    def ripe(self, due: Delivery | None) -> bool:
        """Whether the time of a recorded delivery has come, for a poll. None: there is none."""
        ...

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Nobody will come for what was delivered then."""
        ...

    def loosen(self) -> None:
        """Whoever is served at the same time as others is not held back for them: strict no more."""
        ...

    def expects(self) -> bool:
        """Whether somebody is still to enter, as a tape says."""
        ...

    def close(self) -> None:
        """Let everybody through."""
        ...


class OpenGate:
    """Holds nothing back, and numbers what enters: what one tick of an event loop lets in is a batch.

    In a thread without a loop every delivery is a batch of its own.
    """

    level = "causal"

    def __init__(self, after: int = 0) -> None:
        """``after``: number of the last batch there was."""
        self._batches = itertools.count(after + 1)
        self._ticks: dict[AbstractEventLoop, _Tick] = {}

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Turn:
        """At once."""
        return self

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Turn:
        """A live thing comes when it comes."""
        return self

    def ripe(self, due: Delivery | None) -> bool:
        """What is live is there."""
        return True

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Nothing is waited for."""

    def loosen(self) -> None:
        """Nobody is held back."""

    def expects(self) -> bool:
        """There is no tape."""
        return False

    def close(self) -> None:
        """Nobody waits."""

    def wait(self) -> Delivery:
        """The delivery of what has just entered."""
        loop = running_loop()
        if loop is None:
            return Delivery(next(self._batches), 0)
        tick = self._ticks.get(loop)
        if tick is None:
            tick = self._ticks[loop] = _Tick(next(self._batches))
            try:
                # Runs in the next tick, before anything that this tick or a later one makes ready.
                loop.call_soon(self._ticks.pop, loop, None)
            except RuntimeError:  # the loop is being closed
                del self._ticks[loop]
        delivery = Delivery(tick.batch, tick.order)
        tick.order += 1
        return delivery

    def give_up(self) -> None:
        """Nobody waits."""

    def alone(self) -> Delivery:
        """The delivery of what enters alone: a batch of its own."""
        return Delivery(next(self._batches), 0)

    def __await__(self) -> Generator[Any, None, Delivery]:
        return self.wait()
        yield

    def call(
        self, loop: AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """At once."""
        called(self.wait())
        return nothing


class CountingGate(OpenGate):
    """Holds nothing back, and numbers what enters, each by itself."""

    level = "exchanges"

    def wait(self) -> Delivery:
        """The delivery of what has just entered."""
        return self.alone()


def nothing() -> None:
    """There is no place to give up."""


class _Tick:
    """The batch of one tick of a loop."""

    __slots__ = ("batch", "order")

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.order = 0
