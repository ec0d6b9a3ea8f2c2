"""Gates decide when something may enter the program."""

from __future__ import annotations

import itertools
from asyncio import AbstractEventLoop, _get_running_loop  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
from collections.abc import Callable, Generator, Iterable
from contextvars import Context
from typing import Any, Protocol, TypeAlias

from playhead_semconv.facts import Delivery, ExchangeId

running_loop = _get_running_loop
"""Returns the event loop that runs in this thread, or None."""


Called: TypeAlias = Callable[[Delivery | None], None]
"""Callback that receives the delivery of a waiter that was let in."""


class Turn(Protocol):
    """A place in the order of deliveries. The only interface with a sync and an async form."""

    def wait(self) -> Delivery | None:
        """Block until this turn comes."""
        ...

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        """Suspend until this turn comes. Cancelling gives it up."""
        ...

    def give_up(self) -> None:
        """End the wait, from any thread: the waiter continues without a delivery."""
        ...

    def call(
        self, loop: AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """Call ``called`` in this thread's ``loop`` when this turn comes; immediately if it may.

        Returns a function that gives the turn up.
        """
        ...


class Gate(Protocol):
    """Decides in which order things enter the program."""

    level: str
    """``exchanges`` or ``causal``: nothing is held back; ``strict``: one thing enters at a time."""

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Turn:
        """The turn of something that has arrived. ``due``: its delivery on the played tape; None: live.

        ``who``: the exchange, named in the fact if it enters out of order.
        """
        ...

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Turn:
        """The turn of something that had not arrived on the tape: it does not come.

        ``after_s``: exception: after this time it comes, if no other thread can proceed.
        """
        ...

    def ripe(self, due: Delivery | None) -> bool:
        """For a poll: whether a recorded delivery is due now. None: there is none."""
        ...

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop these deliveries; no waiter will claim them."""
        ...

    def loosen(self) -> None:
        """Step down from strict: requests that are served concurrently must not wait for each other."""
        ...

    def step_down(self) -> bool:
        """Hold nothing back from now on: a runtime is used in which that cannot be done.

        Returns whether a strict recording has become causal by it.
        """
        ...

    def expects(self) -> bool:
        """Whether the tape has deliveries that have not entered yet."""
        ...

    def close(self) -> None:
        """Let all waiters through."""
        ...


class OpenGate:
    """Holds nothing back and numbers deliveries: one tick of an event loop is one batch.

    In a thread without a loop each delivery is a batch of its own.
    """

    level = "causal"

    def __init__(self, after: int = 0) -> None:
        """``after``: number of the last batch so far."""
        self._batches = itertools.count(after + 1)
        self._ticks: dict[AbstractEventLoop, _Tick] = {}

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Turn:
        """At once."""
        return self

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Turn:
        """Live: it comes when it comes."""
        return self

    def ripe(self, due: Delivery | None) -> bool:
        """Live: what has arrived may enter."""
        return True

    def skip(self, dues: Iterable[Delivery]) -> None:
        """No-op: nothing waits."""

    def loosen(self) -> None:
        """No-op: nothing is held back."""

    def step_down(self) -> bool:
        """No: nothing is held back."""
        return False

    def expects(self) -> bool:
        """There is no tape."""
        return False

    def close(self) -> None:
        """No-op: nothing waits."""

    def wait(self) -> Delivery:
        """The delivery of what has just entered."""
        loop = running_loop()
        if loop is None:
            return Delivery(next(self._batches), 0)
        tick = self._ticks.get(loop)
        if tick is None:
            tick = self._ticks[loop] = _Tick(next(self._batches))
            try:
                # Runs at the start of the next tick, before anything that becomes ready from now on.
                loop.call_soon(self._ticks.pop, loop, None)
            except RuntimeError:  # the loop is being closed
                del self._ticks[loop]
        delivery = Delivery(tick.batch, tick.order)
        tick.order += 1
        return delivery

    def give_up(self) -> None:
        """No-op: nothing waits."""

    def alone(self) -> Delivery:
        """A delivery that is a batch of its own."""
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
    """Holds nothing back; each delivery is a batch of its own."""

    level = "exchanges"

    def wait(self) -> Delivery:
        """The delivery of what has just entered."""
        return self.alone()


def nothing() -> None:
    """No-op: there is no turn to give up."""


class _Tick:
    """The batch of one tick of a loop."""

    __slots__ = ("batch", "order")

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.order = 0
