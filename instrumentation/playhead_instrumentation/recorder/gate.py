"""Gates decide when something may enter the program."""

from __future__ import annotations

import itertools
from asyncio import AbstractEventLoop, _get_running_loop  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
from collections.abc import Callable, Generator, Iterable
from contextvars import Context
from typing import Any, Protocol, TypeAlias

from playhead_core.facts import Delivery, ExchangeId

running_loop = _get_running_loop
"""Returns the event loop that runs in this thread, or None."""


Called: TypeAlias = Callable[[Delivery | None], None]
"""Callback that receives the delivery of a waiter that was let in."""


class Turn(Protocol):
    """A place in the order of deliveries, taken with `Gate.arrive` or `Gate.never`.

    The wait for it ends when the gate lets it through; its result is the delivery, which goes into the
    fact. That fact is appended before the program sees what was delivered::

        turn = gate.arrive(due, call.id)   # the bytes are there
        at = turn.wait()                   # or: at = await turn
        call.part(data, at)                # on the tape
        return data                        # to the program

    A turn is waited for once, in one of three forms: `wait`, ``await`` and `call`. The order of turns is
    that of the waits, not that of `Gate.arrive`. `give_up` may come from any thread and at any time.

    In each form the result is None where the turn was given up, and at a replay where the session is
    over or the item has no delivery on the tape. A replay raises `ExchangeExhausted` where the tape ends
    before this turn. Nothing else is raised, except a cancellation or an interrupt of the waiter.
    """

    def wait(self) -> Delivery | None:
        """Block this thread until the turn comes.

        An exception that ends the wait from outside (KeyboardInterrupt) gives the turn up.
        """
        ...

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        """Suspend this task until the turn comes. Cancelling the task gives the turn up.

        A turn that may come at once does not suspend. Outside of asyncio it blocks as `wait` does.
        """
        ...

    def give_up(self) -> None:
        """End the wait: the waiter continues without a delivery. Idempotent.

        No effect on a turn that has come. Before the wait it has the effect that the wait ends at once.
        """
        ...

    def call(
        self, loop: AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """Have ``called(delivery)`` called in ``loop``, which runs in this thread, when the turn comes.

        ``context``: as in `loop.call_soon`. A gate that holds nothing back calls it before it returns,
        any other gate in a later tick. Returns a function that gives the turn up, so that ``called`` is
        not called; to be called in this thread.
        """
        ...


class Gate(Protocol):
    """Decides when, and in which order, what has arrived enters the program.

    Gates that hold nothing back are `OpenGate` and `CountingGate`. `determinism.gates` has those that
    keep an order: one thing at a time (a strict recording), or that of a tape (a replay)::

        gate.arrive(None)                # recording: the next delivery
        gate.arrive(Delivery(7, 0))      # replay: what was delivered in batch 7, as the first
        gate.never(call.id).wait()       # replay: nothing came; the wait ends with the session
        gate.skip([Delivery(8, 0)])      # replay: the program has closed it, nobody will wait for it

    Deliveries with one batch enter together, in ``order``; the next batch when the program has done all
    that follows from them. A replay whose program waits for something else than the tape has next lets
    the oldest waiter in, out of order, and records that it moved.

    All methods may be called from any thread, and none raises; only the wait for a turn takes time.
    """

    level: str
    """``exchanges`` or ``causal``: nothing is held back; ``strict``: one thing enters at a time.

    It is that of the tape at a replay. A strict recording that steps down changes it."""

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Turn:
        """Take the turn of something that is there, or that a tape delivers.

        ``due``: its delivery on the played tape. None: it is on no tape; at a replay it enters at once.
        ``who``: the exchange, which is named in the fact if it enters out of order.
        """
        ...

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Turn:
        """Take the turn of something that had not arrived when the tape ended: it does not come.

        While the world answers it is the turn of whatever comes. ``after_s``: exception, for a wait with
        a timeout: after so many seconds it comes, if no other thread can proceed.
        """
        ...

    def alone(self) -> Delivery | None:
        """The delivery of something that has entered already, because nothing holds it back: a signal.

        None: at a replay it is on no tape.
        """
        ...

    def ripe(self, due: Delivery | None) -> bool:
        """Whether something may be told to a program that polls, without a wait.

        ``due``: its delivery on the tape; None: on no tape. In virtual time each question moves the
        time a little, so that a program that only polls comes to the recorded end.
        """
        ...

    def skip(self, dues: Iterable[Delivery]) -> None:
        """Drop deliveries that no waiter will claim, so that later ones do not wait for them.

        Idempotent; no effect on deliveries that have entered already.
        """
        ...

    def loosen(self) -> None:
        """Step down from strict: requests that are served concurrently must not wait for each other.

        No effect at the other levels and at a replay, which keeps the order of its tape.
        """
        ...

    def step_down(self) -> bool:
        """Hold nothing back from now on: a runtime is used in which that cannot be done.

        Returns whether a strict recording has become causal by it. A replay gives up its order.
        """
        ...

    def expects(self) -> bool:
        """Whether the tape has deliveries that have not entered yet; False while there is no tape."""
        ...

    def close(self) -> None:
        """Let all waiters through, now and from now on: the process ends. Idempotent."""
        ...


class Departure(Protocol):
    """The turn of an ask, before it goes out. A thread calls `wait`, a task awaits it; one, once."""

    def wait(self) -> None:
        """Block until the ask may go out."""
        ...

    def __await__(self) -> Generator[Any, None, None]:
        """The same for a task."""
        ...


class _GoesOut:
    """Nothing keeps the ask."""

    def wait(self) -> None:
        """At once."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


GOES_OUT: Departure = _GoesOut()


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

    def __init__(self) -> None:
        super().__init__()
        # A function of C: each chunk of a stream gets here.
        self.wait = map(Delivery, self._batches, itertools.repeat(0)).__next__


def nothing() -> None:
    """No-op: there is no turn to give up."""


class _Tick:
    """The batch of one tick of a loop."""

    __slots__ = ("batch", "order")

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.order = 0
