"""gRPC through `grpc.aio`: the edge of a call, below all Python code of the library.

The class of channels that the library wraps is patched. What the library holds as a call replaces the
call of the core and keeps status and metadata itself, so that the program sees neither before their
turn. They come from a call of the core that is listened to, or from the tape.
"""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from playhead_instrumentation.boundaries.grpc.exchange import (
    Status,
    answered,
    begin,
    ended,
    given_up,
    play_again,
    refused,
    too_late,
)
from playhead_instrumentation.boundaries.message_exchange import MessageExchange, drive
from playhead_instrumentation.boundaries.recording import recording_requests_of_program
from playhead_instrumentation.driver.gate import Turn
from playhead_instrumentation.driver.verdict import Played
from playhead_instrumentation.runtime.lanes import Shadow
from playhead_instrumentation.runtime.patching import PATCHES, required
from playhead_instrumentation.session.session import Session, current
from playhead_semconv.errors import ExchangeExhausted, PlayheadError

READY = 2
"""Connectivity state of a channel at a replay."""

CANCELLED = 1
OBSERVED = Callable[[], None]


def patch(module: ModuleType) -> None:
    """Make the library use our subclass of channels."""
    core: Any = required(module, "cygrpc")
    channel: Any = required(core, "AioChannel")
    if hasattr(channel, "__playhead__"):
        return
    required(channel, "call")
    _Call.core = core
    PATCHES.put(core, "AioChannel", type("AioChannel", (_Channel, channel), {"__playhead__": True}))


class _Channel:
    """A channel of the core. Some of its calls are listened to or played."""

    def __init__(self, target: bytes, *_: Any, **__: Any) -> None:
        self._playhead_target = bytes(target).decode("utf-8", "replace")

    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Make a call that has not begun."""
        original: Any = super()
        return PATCHES.call(self._called, original.call, *args, **kwargs)

    def _called(self, call: Any, method: bytes, deadline: Any, *more: Any) -> Any:
        session = recording_requests_of_program()
        if session is None:
            return call(method, deadline, *more)
        asked = _Asked(session, self._playhead_target, method.decode(), deadline)

        def make() -> Any:
            with Shadow():
                return call(method, deadline, *more)

        return _PlayedCall(asked, make) if session.driver.closed else _HeardCall(asked, make())

    def check_connectivity_state(self, try_to_connect: bool) -> Any:
        """Return the connectivity state; at a replay always `READY`."""
        original: Any = super()
        session = current()
        if session is not None and session.driver.closed:
            return READY
        return original.check_connectivity_state(try_to_connect)


class _Asked:
    """The request of a call, once the call begins."""

    def __init__(self, session: Session, target: str, method: str, deadline: Any) -> None:
        self.session = session
        self.deadline = deadline
        self._target = target
        self._method = method

    def begin(self, metadata: Any, request: bytes | None) -> MessageExchange | None:
        """Begin the exchange; None when that failed."""
        return begin(self.session, self._target, self._method, metadata, request)


class _Call:
    """Status and metadata of a call, as the library reads them."""

    core: Any = None

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self._loop = asyncio.get_running_loop()
        self._exchange: MessageExchange | None = None
        self._came: Any = None
        self._status: Any = None
        self._waiting_for_head: list[asyncio.Future[None]] = []
        self._waiting_for_status: list[asyncio.Future[None]] = []
        self._callbacks: list[Callable[[], None]] = []
        self._cancelled_here = False

    def _begin(self, metadata: Any, request: bytes | None) -> None:
        if self._exchange is None:
            self._exchange = self._asked.begin(metadata, request)

    def done(self) -> bool:
        """Whether the call has a status."""
        return self._status is not None

    def cancelled(self) -> bool:
        """Whether the status is that of a cancelled call."""
        return self.done() and self._status.code() == CANCELLED

    def is_ok(self) -> bool:
        """Whether the call has succeeded."""
        return self.done() and self._status.code() == 0

    def is_locally_cancelled(self) -> bool:
        """Whether the program has cancelled the call."""
        return self._cancelled_here

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None where there is none."""
        deadline = self._asked.deadline
        return None if deadline is None else max(0, deadline - time.time())

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when there is a status; at once where there is one already."""
        if self.done():
            callback()
        else:
            self._callbacks.append(callback)

    async def status(self) -> Any:
        """Wait for the status and return it."""
        if self._status is None:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting_for_status.append(future)
            await future
        return self._status

    async def initial_metadata(self) -> Any:
        """Wait for the initial metadata and return it."""
        if self._came is None:
            future: asyncio.Future[None] = self._loop.create_future()
            self._waiting_for_head.append(future)
            await future
        return self._came

    @property
    def _initial_metadata(self) -> Any:
        return self._came

    def cancel(self, details: str) -> None:
        """The program cancels the call."""
        self._cancelled_here = True
        self._set_status(Status(CANCELLED, details, None, ""))
        if self._exchange is not None:
            given_up(self._exchange, details)

    def set_internal_error(self, text: str) -> None:
        """The call cannot continue."""
        self._set_status(Status(13, "Internal error from Core", (), text))

    def _set_head(self, metadata: Any) -> None:
        if self._came is None:
            self._came = tuple(metadata)
            _wake(self._waiting_for_head)

    def _set_status(self, status: Status) -> None:
        if self._status is not None:
            return
        make = self.core.AioRpcStatus
        self._status = make(status.code, status.details, status.trailers, status.debug or None)
        self._set_head(())
        _wake(self._waiting_for_status)
        callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            callback()

    @abstractmethod
    async def unary_unary(self, request: bytes, metadata: Any, context: Any = None) -> bytes | None:
        """Make the whole call; None where it failed."""

    @abstractmethod
    async def initiate_unary_stream(self, request: bytes, metadata: Any, context: Any = None) -> None:
        """Begin the call and wait for the initial metadata."""

    @abstractmethod
    async def stream_unary(self, metadata: Any, begun: OBSERVED, context: Any = None) -> bytes | None:
        """Make the whole call, while its messages are sent; None where it failed."""

    @abstractmethod
    async def initiate_stream_stream(self, metadata: Any, begun: OBSERVED, context: Any = None) -> None:
        """Begin the call and wait for the initial metadata.

        ``begun``: called when messages may be sent.
        """

    @abstractmethod
    async def receive_serialized_message(self) -> Any:
        """Return the next message of the answer."""

    @abstractmethod
    async def send_serialized_message(self, message: bytes) -> None:
        """Send a message."""

    @abstractmethod
    async def send_receive_close(self) -> None:
        """The program sends no more messages."""


def _wake(futures: list[asyncio.Future[None]]) -> None:
    for future in futures:
        if not future.done():
            future.set_result(None)
    futures.clear()


class _HeardCall(_Call):
    """A call of the core that is listened to."""

    def __init__(self, asked: _Asked, call: Any) -> None:
        super().__init__(asked)
        self._call = call
        self._headed = False

    def cancel(self, details: str) -> None:
        self._cancelled_here = True
        self._call.cancel(details)
        super().cancel(details)

    async def unary_unary(self, request: bytes, metadata: Any, context: Any = None) -> bytes | None:
        self._begin(metadata, request)
        return await self._whole(self._call.unary_unary(request, metadata, *_more(context)))

    async def stream_unary(self, metadata: Any, begun: OBSERVED, context: Any = None) -> bytes | None:
        self._begin(metadata, None)
        return await self._whole(self._call.stream_unary(metadata, begun, *_more(context)))

    async def initiate_unary_stream(self, request: bytes, metadata: Any, context: Any = None) -> None:
        self._begin(metadata, request)
        self._call.add_done_callback(self._over)
        await self._started(self._call.initiate_unary_stream(request, metadata, *_more(context)))

    async def initiate_stream_stream(self, metadata: Any, begun: OBSERVED, context: Any = None) -> None:
        self._begin(metadata, None)
        self._call.add_done_callback(self._over)
        await self._started(self._call.initiate_stream_stream(metadata, begun, *_more(context)))

    async def receive_serialized_message(self) -> Any:
        with Shadow():
            message = await self._call.receive_serialized_message()
        if message is not self.core.EOF:
            exchange = self._exchange
            at = None if exchange is None else await exchange.call.arrive()
            if exchange is not None:
                exchange.received(message, at)
        return message

    async def send_serialized_message(self, message: bytes) -> None:
        if self._exchange is not None:
            self._exchange.sent(message)
        with Shadow():
            await self._call.send_serialized_message(message)

    async def send_receive_close(self) -> None:
        with Shadow():
            await self._call.send_receive_close()

    async def _whole(self, made: Awaitable[Any]) -> bytes | None:
        exchange = self._exchange
        with Shadow():
            message = await made
        at = None if exchange is None else await exchange.call.arrive()
        metadata = await self._call.initial_metadata()
        status = await self._call.status()
        place = 0
        if exchange is not None and not self._cancelled_here:
            answered(exchange, self._asked.session, metadata, at)
            if message is not None:
                place = 1
                exchange.received(message, exchange.along(at, place))
            ended(exchange, self._asked.session, _status(status), exchange.along(at, place + 1))
        self._set_head(metadata)
        self._set_status(_status(status))
        return message

    async def _started(self, made: Awaitable[Any]) -> None:
        with Shadow():
            await made
        # A call that has failed gets its status anyway.
        if not self._call.done() and not self.done():
            await self._head()

    async def _head(self) -> None:
        if self._headed:
            return
        self._headed = True
        exchange = self._exchange
        at = None if exchange is None else await exchange.call.arrive()
        metadata = await self._call.initial_metadata()
        if exchange is not None:
            answered(exchange, self._asked.session, metadata, at)
        self._set_head(metadata)

    def _over(self) -> None:
        """The core has a status."""
        if not self._cancelled_here:
            drive(self._end())

    async def _end(self) -> None:
        exchange = self._exchange
        metadata: Any = (
            self._call._initial_metadata if hasattr(self._call, "_initial_metadata") else None
        )
        status = await self._call.status()
        at = None if exchange is None else await exchange.call.arrive()
        if self._cancelled_here:
            return
        if exchange is not None:
            if metadata and not self._headed:
                self._headed = True
                answered(exchange, self._asked.session, metadata, at)
                self._set_head(metadata)
                at = exchange.along(at, 1)
            ended(exchange, self._asked.session, _status(status), at)
        self._set_status(_status(status))


def _more(context: Any) -> tuple[Any, ...]:
    return () if context is None else (context,)


def _status(status: Any) -> Status:
    return Status(
        status.code(), status.details(), status.trailing_metadata(), status.debug_error_string() or ""
    )


class _PlayedCall(_Call):
    """A call that a recording answers or that is refused. A live call becomes a `_HeardCall`.

    What waited at the recording (the call, its start, a read) waits for the turn of the next item.
    """

    def __init__(self, asked: _Asked, make: Callable[[], Any]) -> None:
        """``make`` makes a call of the core, for a live call."""
        super().__init__(asked)
        self._make = make
        self._played: Played | None = None
        self._index = 0
        self._streams = False
        self._turn: Turn | None = None
        self._ending = False

    def cancel(self, details: str) -> None:
        super().cancel(details)
        if self._turn is not None:
            self._turn.give_up()

    async def unary_unary(self, request: bytes, metadata: Any, context: Any = None) -> bytes | None:
        if self._is_live(metadata, request):
            return await self.unary_unary(request, metadata, context)
        return await self._whole()

    async def stream_unary(self, metadata: Any, begun: OBSERVED, context: Any = None) -> bytes | None:
        if self._is_live(metadata, None):
            return await self.stream_unary(metadata, begun, context)
        begun()
        return await self._whole()

    async def initiate_unary_stream(self, request: bytes, metadata: Any, context: Any = None) -> None:
        if self._is_live(metadata, request):
            return await self.initiate_unary_stream(request, metadata, context)
        self._streams = True
        await self._head()

    async def initiate_stream_stream(self, metadata: Any, begun: OBSERVED, context: Any = None) -> None:
        if self._is_live(metadata, None):
            return await self.initiate_stream_stream(metadata, begun, context)
        self._streams = True
        begun()
        await self._head()

    async def receive_serialized_message(self) -> Any:
        if self._follows() == "part":
            message = await self._next()
            if isinstance(message, bytes):
                return message
        return self.core.EOF

    async def send_serialized_message(self, message: bytes) -> None:
        if self._exchange is None:
            return
        if too_late(self._exchange):
            await self.status()
            return
        try:
            self._exchange.sent(message)
        except PlayheadError as error:
            self._set_status(refused(error))

    async def send_receive_close(self) -> None:
        """No-op: nothing goes out."""

    def _is_live(self, metadata: Any, request: bytes | None) -> bool:
        """Begin the exchange; returns whether the call is live, so that ``self`` listens to it."""
        self._begin(metadata, request)
        exchange = self._exchange
        if exchange is None:
            self._set_status(refused(ExchangeExhausted("the call could not be looked up")))
        elif exchange.refusal is not None:
            exchange.failed(exchange.refusal)
            self._set_status(refused(exchange.refusal))
        elif exchange.played is None:
            call = self._make()
            self.__class__ = _HeardCall  # pyright: ignore[reportAttributeAccessIssue]
            self.__dict__.update(_call=call, _headed=False)
            return True
        else:
            self._played = exchange.played
        return False

    def _follows(self) -> str:
        """Kind of the next item: ``head``, ``part`` or ``end``; empty where there is a status."""
        played = self._played
        if played is None or self.done():
            return ""
        recorded = played.exchange
        place = self._index - bool(recorded.head)
        return "head" if place < 0 else "part" if place < len(recorded.parts) else "end"

    async def _whole(self) -> bytes | None:
        message = None
        while follows := self._follows():
            came = await self._next()
            if follows == "part":
                message = came
        return message if self.is_ok() else None

    async def _head(self) -> None:
        if self._follows() == "head":
            await self._next()
        self._expect_end()
        await self.initial_metadata()

    def _expect_end(self) -> None:
        """Deliver the status where it comes next, since nothing asks for it."""
        if self._follows() == "end" and not self._ending:
            self._ending = True
            with Shadow():
                drive(self._end())

    async def _end(self) -> None:
        await self._next()

    async def _next(self) -> Any:
        """Return the next item when its turn comes; None where there is none."""
        exchange, played = self._exchange, self._played
        if exchange is None or played is None:
            return None
        try:
            while True:
                self._turn = turn = exchange.turn()
                at = await turn
                self._turn = None
                if exchange.over or self.done():
                    return None
                if exchange.due(turn):
                    break
            if at is None:  # the session is over
                return None
        except ExchangeExhausted as error:
            exchange.exhausted(error)
            self._set_status(refused(error))
            return None
        came: Any = play_again(exchange, played, self._index, at)
        self._index += 1
        if type(came) is tuple:
            self._set_head(came)
        elif not isinstance(came, bytes):
            self._set_status(came or refused(ExchangeExhausted("the recorded call has no status")))
        if self._streams:
            self._expect_end()
        return came  # pyright: ignore[reportUnknownVariableType]
