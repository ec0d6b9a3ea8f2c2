"""Gates decide when something that has arrived may enter the program, and in which order.

A recording numbers arrivals; a replay repeats their order. A boundary asks the gate for a `Permit` when
its bytes are there, waits for it, and appends the fact with the `Delivery` that the wait returns. Only
then the program sees the bytes. Without this order a replay would deliver two concurrent responses in
the order in which the machine happens to produce them, and the program could take another path.
"""

from __future__ import annotations

import itertools
from asyncio import AbstractEventLoop, _get_running_loop  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
from collections.abc import Callable, Generator, Iterable
from contextvars import Context
from typing import Any, Protocol, TypeAlias

from playhead_core.facts import Delivery, ExchangeId
from playhead_instrumentation.patching.runtime import RUNTIME

running_loop = _get_running_loop
"""Returns the event loop that runs in this thread, or None."""


Called: TypeAlias = Callable[[Delivery | None], None]
"""Callback that receives the delivery of a waiter that was let in."""


class Permit(Protocol):
    """A position in the order of deliveries, taken with `Gate.arrive` or `Gate.never`.

    The wait ends when the gate grants the permit. Its result is the delivery, which goes into the fact.
    That fact is appended before the program sees what was delivered::

        permit = gate.arrive(due, call.id)   # the bytes are there
        at = permit.wait()                   # or: at = await permit
        call.part(data, at)                # on the tape
        return data                        # to the program

    Wait for a permit once, in one of three forms: `wait`, ``await`` or `call`. Permits have the order of
    the waits, not that of the calls of `Gate.arrive`. Any thread may call `give_up` at any time.

    In each form the result is None where the permit was given up, and at a replay where the session is
    over or the item has no delivery on the tape. A replay raises `ExchangeExhausted` where the tape ends
    before this permit. Nothing else is raised, except a cancellation or an interrupt of the waiter.
    """

    def wait(self) -> Delivery | None:
        """Block this thread until the gate grants the permit.

        An exception that ends the wait from outside (KeyboardInterrupt) gives the permit up.
        """
        ...

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        """Suspend this task until the gate grants the permit. Cancelling the task gives it up.

        A permit that may come at once does not suspend. Outside of asyncio it blocks as `wait` does.
        """
        ...

    def give_up(self) -> None:
        """End the wait: the waiter continues without a delivery. Idempotent.

        No effect on a granted permit. A call before the wait makes the wait end at once.
        """
        ...

    def call(
        self, loop: AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """Call ``called(delivery)`` in ``loop``, which runs in this thread, when the permit is granted.

        ``context``: as in `loop.call_soon`. A gate that holds nothing back calls it before it returns,
        any other gate in a later tick. Returns a function that gives up the permit, so that ``called``
        is not called. Call that function in this thread.
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

    All methods may be called from any thread, and none raises; only the wait for a permit takes time.
    """

    level: str
    """``exchanges`` or ``causal``: nothing is held back; ``strict``: one thing enters at a time.

    It is that of the tape at a replay. A strict recording that steps down changes it."""

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Permit:
        """Take the permit of something that has arrived, or that a tape delivers.

        ``due``: its delivery on the played tape. None: it is on no tape; at a replay it enters at once.
        ``who``: the exchange, which is named in the fact if it enters out of order.
        """
        ...

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Permit:
        """Take the permit of something that had not arrived when the tape ended: it is never granted.

        While the world answers it is the permit of whatever arrives. ``after_s``: for a wait with a
        timeout: the permit is granted after so many seconds, if no other thread can proceed.
        """
        ...

    def alone(self) -> Delivery | None:
        """The delivery of something that has entered already, because nothing holds it back: a signal.

        None: at a replay it is on no tape.
        """
        ...

    def is_due(self, due: Delivery | None) -> bool:
        """Whether a program that polls may see something, without a wait.

        ``due``: its delivery on the tape; None: on no tape. In virtual time each poll moves the
        time a little, so that a program that only polls reaches the recorded end.
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


class Release(Protocol):
    """The release of a pending request. A thread calls `wait`, a task awaits it; once, not both."""

    def wait(self) -> None:
        """Block until the request may go out."""
        ...

    def __await__(self) -> Generator[Any, None, None]:
        """The same for a task."""
        ...


class _Released:
    """Nothing holds the request back."""

    def wait(self) -> None:
        """At once."""

    def __await__(self) -> Generator[Any, None, None]:
        return
        yield


RELEASED: Release = _Released()


class OpenGate:
    """Holds nothing back and numbers deliveries: one tick of an event loop, or of a hub, is one batch.

    In a thread without a loop each delivery is a batch of its own.
    """

    level = "causal"

    def __init__(self, after: int = 0) -> None:
        """``after``: number of the last batch so far."""
        self._batches = itertools.count(after + 1)
        self._ticks: dict[Any, _Tick] = {}

    def arrive(self, due: Delivery | None, who: ExchangeId | None = None) -> Permit:
        """At once."""
        return self

    def never(self, who: ExchangeId | None = None, after_s: float | None = None) -> Permit:
        """Live: it comes when it comes."""
        return self

    def is_due(self, due: Delivery | None) -> bool:
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
        loop: Any = running_loop()
        if loop is None and RUNTIME.hub is not None:
            loop = RUNTIME.hub()
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
    """No-op: there is no permit to give up."""


class _Tick:
    """The batch of one tick of a loop."""

    __slots__ = ("batch", "order")

    def __init__(self, batch: int) -> None:
        self.batch = batch
        self.order = 0
