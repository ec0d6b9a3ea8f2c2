"""Base of the calls that `grpc.aio` holds: keeps status and metadata until the gate permits them."""

from __future__ import annotations

import asyncio
import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, TypeAlias

from playhead_instrumentation.libraries.common.message_exchange import MessageExchange
from playhead_instrumentation.libraries.grpc.exchange import Status, begin, given_up
from playhead_instrumentation.session.session import Session

CANCELLED = 1

OBSERVED: TypeAlias = Callable[[], None]
"""Called when messages may be sent."""


class AioRequest:
    """The request of a call, once the call begins."""

    def __init__(self, session: Session, target: str, method: str, deadline: Any) -> None:
        self.session = session
        self.deadline = deadline
        self._target = target
        self._method = method

    def begin(self, metadata: Any, request: bytes | None) -> MessageExchange | None:
        """Begin the exchange; None when that failed."""
        return begin(self.session, self._target, self._method, metadata, request)


class AioCall:
    """Status and metadata of a call, as the library reads them."""

    core: Any = None

    def __init__(self, request: AioRequest) -> None:
        self._request = request
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
            self._exchange = self._request.begin(metadata, request)

    def done(self) -> bool:
        """Return whether the call has a status."""
        return self._status is not None

    def cancelled(self) -> bool:
        """Return whether the status is that of a cancelled call."""
        return self.done() and self._status.code() == CANCELLED

    def is_ok(self) -> bool:
        """Return whether the call has succeeded."""
        return self.done() and self._status.code() == 0

    def is_locally_cancelled(self) -> bool:
        """Return whether the program has cancelled the call."""
        return self._cancelled_here

    def time_remaining(self) -> float | None:
        """Seconds until the deadline; None if there is none."""
        deadline = self._request.deadline
        return None if deadline is None else max(0, deadline - time.time())

    def add_done_callback(self, callback: Callable[[], None]) -> None:
        """Call ``callback`` when there is a status; at once if there is one already."""
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
        """Make the whole call; None if it failed."""

    @abstractmethod
    async def initiate_unary_stream(self, request: bytes, metadata: Any, context: Any = None) -> None:
        """Begin the call and wait for the initial metadata."""

    @abstractmethod
    async def stream_unary(self, metadata: Any, begun: OBSERVED, context: Any = None) -> bytes | None:
        """Make the whole call, while its messages are sent; None if it failed."""

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
