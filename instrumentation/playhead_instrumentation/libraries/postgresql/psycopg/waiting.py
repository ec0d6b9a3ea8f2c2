"""How a generator of psycopg waits for a permit at the gate, whether a thread or a task runs it.

A generator of psycopg yields what it waits for, and a function of `psycopg.waiting` runs it. Generators
of playhead also yield an `Arrival`, which the layers around these functions wait for.
"""

from __future__ import annotations

from collections.abc import Generator
from contextvars import ContextVar
from typing import Any, Final

from playhead_core.facts import Delivery
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.patching.lanes import Outside, Shadow
from playhead_instrumentation.patching.layers import ErrorInstead
from playhead_instrumentation.recorder.gate import Permit

Steps = Generator[Any, Any, Any]

_blocks: Final[ContextVar[bool]] = ContextVar("playhead_psycopg_blocks", default=True)
"""Whether the thread waits for the generator that runs now."""


class Arrival:
    """Yielded when something has arrived, or is on the tape: it waits for its permit."""

    def __init__(self, permit: Permit) -> None:
        self.permit = permit
        self.came = False


def arrival(exchange: MessageExchange) -> Generator[Any, Any, Delivery | None]:
    """Wait for the permit of the next item of ``exchange``."""
    while True:
        step = Arrival(exchange.permit())
        at = yield step
        if step.came:  # else the wait was cancelled, and the driver goes on waiting
            return at


def blocks() -> bool:
    """Return whether a thread waits for the generator that runs."""
    return _blocks.get()


def outside() -> Shadow:
    """Context manager around a wait for the world."""
    return Outside() if _blocks.get() else Shadow()


class DrivenSteps:
    """A generator, run from one arrival to the next."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        self._waited: Any = None
        self.arrival: Arrival | None = None
        """What the generator waits for; None: it waits for the world, or is over."""
        self.over = False
        self.value: Any = None
        """What it has returned."""

    def go(self, at: Delivery | None = None, error: BaseException | None = None) -> None:
        """Run until the generator waits for anything.

        Behind an arrival nothing else of the driver runs, since that may let other tasks go first.
        """
        self.arrival = None
        try:
            waited = self._steps.send(at) if error is None else self._steps.throw(error)
        except StopIteration as over:
            self.over, self.value = True, over.value
            return
        except Exception as raised:
            raise ErrorInstead(raised) from None
        self._took(waited)

    def on(self) -> Steps:
        """What runs from a wait for the world until the next arrival, or until the end."""
        while self.arrival is None:
            ready = yield self._waited
            try:
                self._took(self._steps.send(ready))
            except StopIteration as over:
                self.over, self.value = True, over.value
                return

    def _took(self, waited: Any) -> None:
        if isinstance(waited, Arrival):
            self.arrival = waited
        else:
            self._waited = waited


def wait(original: Any, steps: Steps, *args: Any, **kwargs: Any) -> Any:
    """Layer of the functions that block until a generator is over."""
    run = DrivenSteps(steps)
    token = _blocks.set(True)
    try:
        run.go()
        while not run.over:
            came = run.arrival
            if came is None:
                original(run.on(), *args, **kwargs)
                continue
            at = error = None
            try:
                at, came.came = came.permit.wait(), True
            except Exception as raised:
                error = raised
            run.go(at, error)
        return run.value
    finally:
        _blocks.reset(token)


async def wait_async(original: Any, steps: Steps, *args: Any, **kwargs: Any) -> Any:
    """Layer of the functions that await the end of a generator."""
    run = DrivenSteps(steps)
    token = _blocks.set(False)
    try:
        run.go()
        while not run.over:
            came = run.arrival
            if came is None:
                await original(run.on(), *args, **kwargs)
                continue
            at = error = None
            try:
                at, came.came = await came.permit, True
            except Exception as raised:
                error = raised
            run.go(at, error)
        return run.value
    finally:
        _blocks.reset(token)
