"""Waits for a permit: in a thread, in a task, or as a callback of a loop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Generator
from contextvars import Context
from typing import Any, Final, Protocol

from playhead_core.errors import ExchangeExhausted
from playhead_core.facts import Delivery, ExchangeId
from playhead_core.process.interpreter_threads import get_ident, make_lock
from playhead_instrumentation.patching.runtime import RUNTIME, HubLike
from playhead_instrumentation.recorder.gate import Called, running_loop
from playhead_instrumentation.scheduler import idle_loops

SIGNAL: Final = "signal"
"""Kind in the id of a waiter that a signal handler ends."""


class PermitGate(Protocol):
    """The gate as seen by its waiters. Safe from any thread."""

    poll_s: float
    """Seconds between a waiter's checks whether the other threads are stuck."""

    def enter(self, waiter: Waiting) -> bool:
        """Begin to wait; True if the permit is immediate."""
        ...

    def goes_on(self) -> None:
        """Note that this thread continues without a wait."""
        ...

    def block(self, waiter: Waiting) -> None:
        """Block this thread until the permit of ``waiter`` comes."""
        ...

    def went_on(self, waiter: Waiting) -> None:
        """Note that ``waiter`` continues."""
        ...

    def leave(self, waiter: Waiting) -> None:
        """Remove a cancelled waiter."""
        ...

    def dismiss(self, waiter: Waiting) -> None:
        """End the wait of ``waiter`` without a permit."""
        ...

    def advance(self) -> None:
        """Let the next waiter through, if it is due."""
        ...

    def unwatched(self, waiter: Waiting) -> None:
        """Poll for ``waiter``: it is about to wait in an event loop that cannot be observed."""
        ...


class Waiting:
    """A permit, and the wait for it."""

    __slots__ = (
        "_called",
        "_context",
        "_future",
        "_gate",
        "_let_in",
        "_loop",
        "after_s",
        "came",
        "cancelled",
        "due",
        "given_up",
        "left_alone",
        "moved",
        "opened",
        "place",
        "refused",
        "stays",
        "who",
    )

    def __init__(
        self,
        gate: PermitGate,
        due: Delivery | None,
        who: ExchangeId | None = None,
        after_s: float | None = None,
    ) -> None:
        self.due = due
        """Its delivery on the played tape; in a recording set when it is let through."""
        self.who = who
        self.after_s = after_s
        """Time limit of a wait that did not end by time on the tape."""
        self.came = False
        """Whether it was let through."""
        self.given_up = False
        self.stays = False
        """Cancelling does not end this wait: anyio cancels in every tick until the task ends."""
        self.cancelled: asyncio.CancelledError | None = None
        """The cancellation that came during such a wait."""
        self.moved = False
        self.refused = False
        self.left_alone = False
        """The gate was closed during the wait, which continues in real time."""
        self.place = get_ident()
        self.opened = make_lock()
        self._gate = gate
        self._let_in = False
        self._loop: Any = None
        self._future: asyncio.Future[None] | None = None
        self._called: Called | None = None
        self._context: Context | None = None

    @property
    def sudden(self) -> bool:
        """Whether it waits from the beginning, so that its being there says nothing: a signal."""
        return False

    @property
    def for_signal(self) -> bool:
        """Whether a signal handler ends this wait."""
        return self.who is not None and self.who.kind == SIGNAL

    @property
    def blocks(self) -> bool:
        """Whether a thread is blocked, not a task."""
        return self._loop is None

    def wait(self) -> Delivery | None:
        """Block until this permit comes."""
        hub = None if RUNTIME.hub is None else RUNTIME.hub()
        if hub is not None:
            return self._wait_in(hub)
        self.opened.acquire()
        if self._gate.enter(self):
            self._gate.goes_on()
        else:
            self._gate.block(self)
            self._gate.went_on(self)
        return self._delivery()

    def _wait_in(self, hub: HubLike) -> Delivery | None:
        """Block this greenlet until the permit comes."""
        parked = hub.parked()
        self._loop, self._called = hub, parked.switch
        if self._gate.enter(self):
            return self._delivery()
        hub.holds()
        try:
            parked.get()
        except BaseException:
            self._gives_up()
            raise
        finally:
            hub.lets_go()
        return self._delivery()

    def arrives(self) -> None:
        """Arrive at the gate, for `comes_first`. `opened` is held."""
        if self._gate.enter(self):
            self._let_in = True
            self.opened.release()

    def comes_first(self) -> bool:
        """Block until the permit comes, or another thread releases `opened` (held here).

        Returns whether the permit came. The thread is already marked as waiting in the ledger.
        """
        gate = self._gate
        try:
            while not self.opened.acquire(timeout=gate.poll_s):
                gate.advance()
        except BaseException:
            gate.leave(self)
            raise
        if not self._let_in:
            gate.leave(self)
        else:
            gate.went_on(self)
        return self._let_in and not self.left_alone

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        loop = running_loop()
        if loop is None:  # a runtime other than asyncio
            self._gate.unwatched(self)
            return self.wait()
        self._future = loop.create_future()
        self._loop = loop
        if not idle_loops.can_be_watched(loop):
            self._gate.unwatched(self)
        if self._gate.enter(self):
            return self._delivery()
        waits = True
        while waits:
            try:
                yield from self._future
                waits = False
            except asyncio.CancelledError as error:
                if not self.stays:
                    self._gate.leave(self)
                    raise
                self.cancelled = error
                self._future = loop.create_future()  # before the check of `_let_in`
                waits = not self._let_in
            except BaseException:
                self._gate.leave(self)
                raise
        self._gate.went_on(self)
        return self._delivery()

    def call(
        self, loop: asyncio.AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """Call ``called`` in ``loop`` in a later tick, when this permit comes."""
        self._loop, self._called, self._context = loop, called, context
        if not idle_loops.can_be_watched(loop):
            self._gate.unwatched(self)
        if self._gate.enter(self):
            self._let_in = True
            loop.call_soon(self._goes_on, context=context)
        else:
            idle_loops.stir(loop)
        return self._gives_up

    def _goes_on(self) -> None:
        self._gate.went_on(self)
        if self._called is not None:
            self._called(self.due)

    def _gives_up(self) -> None:
        self._called = None
        if not self._let_in:
            self._gate.leave(self)

    def give_up(self) -> None:
        """End the wait, from any thread: the waiter continues without a delivery."""
        self._gate.dismiss(self)

    def _delivery(self) -> Delivery | None:
        if self.given_up:
            return None
        if self.refused:
            raise ExchangeExhausted(
                "the tape ends before this was answered", hint="what happened after it was not recorded"
            )
        return self.due

    def done(self) -> bool:
        """Whether an async wait is over."""
        if self.stays:
            return self._let_in
        return self._let_in or (self._called is None and (self._future is None or self._future.done()))

    def let_through(self) -> bool:
        """Let the waiter through; False if its loop is closed. Called with the gate's lock."""
        self._let_in = self.came = True
        loop = self._loop
        if loop is None:
            with contextlib.suppress(RuntimeError):  # already released by another thread
                self.opened.release()
            return True
        try:
            if self._future is None:
                call = loop.call_soon if running_loop() is loop else loop.call_soon_threadsafe
                call(self._goes_on, context=self._context)
            elif running_loop() is loop:
                _settle(self._future)
            else:
                loop.call_soon_threadsafe(_settle, self._future)
        except RuntimeError:
            return False  # the loop is closed
        return True


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
