"""Waits of the program for an operator: in a thread, or in a task without blocking its loop."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING, Any, Final, Protocol

from playhead_core.control.messages import MOST_BODY_BYTES, ControlOrder, Halted
from playhead_core.errors import PlayheadError
from playhead_core.facts import Delivery
from playhead_core.process.interpreter_threads import Bell
from playhead_instrumentation.control.manual_responses import check_edit, made_answer, made_rejection
from playhead_instrumentation.control.rules import PendingRequest
from playhead_instrumentation.manual import checkpoint
from playhead_instrumentation.patching.lanes import Outside, Shadow, resume
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.recorder.call import Call
from playhead_instrumentation.recorder.decision import Live
from playhead_instrumentation.recorder.driver import Driver, edited
from playhead_instrumentation.recorder.gate import Called, Permit, running_loop
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    import asyncio
    from contextvars import Context

STATE_S = 5.0
"""How long an edit of a state waits for the program's thread."""

LOOK_S = 1.0
"""Interval at which a blocked thread checks for its release, so that signals reach it."""


class PauseRegistry(Protocol):
    """Registry of paused requests. `server.ControlServer` implements it."""

    driver: Driver

    def trace_of(self, call: Call) -> str:
        """Trace id of the run that makes the request."""
        ...

    def halter(self, halt: PausedRequest) -> str:
        """Name of the operator or rule that paused the request."""
        ...

    def enters(self, halt: PausedRequest) -> bool:
        """A request is about to wait; False if it may go out."""
        ...

    def leaves(self, halt: PausedRequest) -> None:
        """A request does not wait any more."""
        ...

    def marks(self, call: Call, order: ControlOrder) -> None:
        """Make a checkpoint before a request goes out, in the thread that sends it."""
        ...

    def arrives(self, arrival: PausedArrival) -> bool:
        """A response has arrived; False if it may enter."""
        ...

    def arrived(self, arrival: PausedArrival) -> None:
        """A response does not wait any more."""
        ...


class Waiter:
    """Something that waits for orders, which come from another thread."""

    def __init__(self) -> None:
        self.going = False
        """Whether it has got an order, and is about to go on."""
        self._last: ControlOrder | None = None
        self._orders: deque[ControlOrder] = deque()
        self._bell = Bell()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._future: asyncio.Future[None] | None = None

    def order(self, order: ControlOrder) -> None:
        """Hand over the order that ends the wait, from any thread. It ends at `go`."""
        self._last = order
        self.going = True

    def go(self) -> None:
        """End the wait, if it has got an order for that. From any thread."""
        last, self._last = self._last, None
        if last is not None:
            self.wake(last)

    def wake(self, order: ControlOrder) -> None:
        """Hand over an order, from any thread."""
        self._orders.append(order)
        loop = self._loop
        if loop is None:
            self._bell.ring()
            return
        try:
            loop.call_soon_threadsafe(self._stir)
        except RuntimeError:  # the loop is closed
            return

    def _stir(self) -> None:
        if self._future is not None and not self._future.done():
            self._future.set_result(None)

    def block(self) -> ControlOrder:
        """Block until there is an order. The wait counts as one for the outside world."""
        with Outside():
            while not self._orders:
                self._bell.wait(LOOK_S)
        return self._orders.popleft()

    def suspend(self, loop: asyncio.AbstractEventLoop) -> Generator[Any, None, ControlOrder]:
        """The same for a task of ``loop``, which goes on meanwhile."""
        self._loop = loop
        with Shadow():
            while True:
                self._future = loop.create_future()
                if self._orders:
                    return self._orders.popleft()
                yield from self._future


class PausedRequest(Waiter):
    """A request that an operator or a rule has paused."""

    def __init__(
        self, registry: PauseRegistry, ask: PendingRequest, reason: str, *, by_rule: bool = False
    ) -> None:
        """``reason``: see `Halted.reason`. ``by_rule``: a rule halts it, and not an operator."""
        super().__init__()
        self.call: Final = ask.call
        self.reason: Final = reason
        self.by_rule: Final = by_rule
        self.number = 0
        """Given by the registry."""
        self.is_recorded = False
        """Whether the tape says that it waits. Before that no operator sees or edits it."""
        self.since_ns = time.time_ns()
        self.trace_id: Final = registry.trace_of(ask.call)
        self._registry: Final = registry
        self._key: Final = ask.key
        self._body = ask.body
        self._done = Bell()
        self._said = ""
        """Why the last edit of a state could not be made."""

    def wait(self) -> None:
        """Block until an operator lets the ask go out, or time does."""
        if not self._registry.enters(self):
            return
        try:
            order = self.block()
            resume()
            while self._is_chore(order):
                order = self.block()
                resume()
        except BaseException:
            self._left()
            raise
        self._goes_on(order, self._registry.driver.gate.arrive(None, self.call.id).wait())

    def __await__(self) -> Generator[Any, None, None]:
        loop = running_loop()
        if loop is None:  # a runtime other than asyncio: its thread blocks
            self.wait()
            return
        if not self._registry.enters(self):
            return
        try:
            order = yield from self.suspend(loop)
            while self._is_chore(order):
                order = yield from self.suspend(loop)
            at: Delivery | None = yield from self._registry.driver.gate.arrive(
                None, self.call.id
            ).__await__()
        except BaseException:
            self._left()
            raise
        self._goes_on(order, at)

    def halted(self, most_bytes: int) -> Halted:
        """What operators are told of it; of a body over ``most_bytes`` the size only."""
        shown = self.call.body if self._registry.driver.content and self._body is not None else None
        text: str | None = None
        if shown is not None and len(shown) <= min(most_bytes, MOST_BODY_BYTES):
            try:
                text = shown.decode()
            except UnicodeDecodeError:
                text = None
        id = self.call.id
        return Halted(
            self.number,
            self.trace_id,
            str(id),
            id.kind,
            self._key,
            f"{id.lane:016x}",
            self.reason,
            self.since_ns,
            len(self.call.body),
            text,
        )

    def halts(self) -> None:
        """Record that the ask waits, and the registered states as of now."""
        if RUNTIME.registered is not None:
            RUNTIME.registered.halted()
        self.call.intervened(
            e.PLAYHEAD_CONTROL_HALT,
            {a.PLAYHEAD_CONTROL_REASON: self.reason, a.PLAYHEAD_CONTROL_BY: self._registry.halter(self)},
        )
        self.is_recorded = True

    def edit(self, order: ControlOrder) -> None:
        """Put another body in the place of what would go out. `UsageError`, ValueError."""
        check_edit(self.call.id.kind)
        if self._body is None:
            raise ValueError("its body is made while it is sent: it cannot be edited")
        try:
            body = edited(self._body, order.edits)
        except ValueError as problem:
            raise ValueError(f"its body is no JSON: {problem}") from None
        if body is None:
            return
        self._body = self.call.replaced = body
        attributes: dict[str, Any] = {a.PLAYHEAD_CONTROL_BY: order.by}
        self.call.body, content = self._registry.driver.written(body, attributes)
        self.call.intervened(e.PLAYHEAD_CONTROL_EDIT, attributes, content)

    def edit_state(self, order: ControlOrder) -> str:
        """Have a registered state edited by the program's own thread. Returns why it could not be."""
        self._said, self._done = "the program does not answer: it is busy elsewhere", Bell()
        self.wake(order)
        self._done.wait(STATE_S)
        return self._said

    def _is_chore(self, order: ControlOrder) -> bool:
        """Whether an order does not end the wait. It is carried out: a checkpoint, a state."""
        if order.what == "checkpoint":
            self._registry.marks(self.call, order)
            return True
        if not order.state:
            return False
        self._said = ""
        try:
            checkpoint.edit_state(order.state, order.edits)
            self.call.intervened(
                e.PLAYHEAD_CONTROL_EDIT,
                {a.PLAYHEAD_CONTROL_BY: order.by, a.PLAYHEAD_STATE_NAME: order.state},
            )
        except PlayheadError as problem:
            words = (problem.what, problem.cause, problem.hint)
            self._said = "; ".join(word for word in words if word)
        except Exception as problem:  # the program's own functions
            self._said = f"{type(problem).__name__}: {problem}"
        self._done.ring()
        return True

    def _goes_on(self, order: ControlOrder, at: Delivery | None) -> None:
        call = self.call
        how = order.said if order.what == "continue" and order.said else order.what
        attributes: dict[str, Any] = {
            a.PLAYHEAD_CONTROL_ACTION: how,
            a.PLAYHEAD_CONTROL_BY: order.by,
        }
        call.intervened(e.PLAYHEAD_CONTROL_RELEASE, attributes, at=at)
        if order.what == "answer" and order.answer is not None:
            given = made_answer(call.id.kind, order.answer)
        elif order.what == "reject":
            given = made_rejection(call.id.kind, order.said)
        else:
            given = None
        if given is not None and isinstance(live := call.decision, Live):
            call.decision = given
            if live.ended is not None:
                live.ended(call.id)
        self._registry.leaves(self)

    def _left(self) -> None:
        """The program is interrupted, or cancels the task."""
        self._registry.leaves(self)
        self.call.intervened(e.PLAYHEAD_CONTROL_RELEASE, {a.PLAYHEAD_CONTROL_ACTION: "left"})


class PausedArrival(Waiter):
    """A permit of something that arrives while the program is paused."""

    def __init__(self, registry: PauseRegistry, call: Call, permit: Permit) -> None:
        super().__init__()
        self.asked: Final = call
        """The exchange that it belongs to."""
        self.number = 0
        """Given by the registry."""
        self.trace_id: Final = registry.trace_of(call)
        self._since_ns = time.time_ns()
        self._registry = registry
        self._permit = permit

    def give_up(self) -> None:
        """As the permit does."""
        self._permit.give_up()

    def call(
        self, loop: asyncio.AbstractEventLoop, called: Called, context: Context | None = None
    ) -> Callable[[], None]:
        """As the permit does: what arrives in a callback of a loop is not held."""
        return self._permit.call(loop, called, context)

    def halted(self, most_bytes: int) -> Halted:
        """What operators are told of it."""
        id = self.asked.id
        return Halted(
            self.number,
            self.trace_id,
            str(id),
            id.kind,
            "",
            f"{id.lane:016x}",
            "arrives",
            self._since_ns,
            0,
        )

    def wait(self) -> Delivery | None:
        """Block until the program continues, then until the permit comes. Never blocks a loop."""
        if running_loop() is None and self._registry.arrives(self):
            try:
                self.block()
            finally:
                self._registry.arrived(self)
        return self._permit.wait()

    def __await__(self) -> Generator[Any, None, Delivery | None]:
        loop = running_loop()
        if loop is not None and self._registry.arrives(self):
            try:
                yield from self.suspend(loop)
            finally:
                self._registry.arrived(self)
        at: Delivery | None = yield from self._permit.__await__()
        return at
