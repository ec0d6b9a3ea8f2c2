"""Record a call of `grpc.aio` that the server answers."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

from playhead_instrumentation.libraries.common.message_exchange import drive
from playhead_instrumentation.libraries.grpc.aio_call import OBSERVED, AioCall, AioRequest
from playhead_instrumentation.libraries.grpc.exchange import (
    Status,
    answered,
    ended,
    metadata_with_context,
)
from playhead_instrumentation.patching.lanes import Shadow


class LiveCall(AioCall):
    """Call of the core that is recorded."""

    def __init__(self, request: AioRequest, call: Any) -> None:
        super().__init__(request)
        self._call = call
        self._headed = False

    def cancel(self, details: str) -> None:
        """See `AioCall.cancel`."""
        self._cancelled_here = True
        self._call.cancel(details)
        super().cancel(details)

    async def unary_unary(self, request: bytes, metadata: Any, context: Any = None) -> bytes | None:
        """See `AioCall.unary_unary`."""
        self._begin(metadata, request)
        return await self._whole(self._call.unary_unary(request, self._sent(metadata), *_more(context)))

    async def stream_unary(self, metadata: Any, begun: OBSERVED, context: Any = None) -> bytes | None:
        """See `AioCall.stream_unary`."""
        self._begin(metadata, None)
        return await self._whole(self._call.stream_unary(self._sent(metadata), begun, *_more(context)))

    async def initiate_unary_stream(self, request: bytes, metadata: Any, context: Any = None) -> None:
        """See `AioCall.initiate_unary_stream`."""
        self._begin(metadata, request)
        self._call.add_done_callback(self._over)
        await self._started(
            self._call.initiate_unary_stream(request, self._sent(metadata), *_more(context))
        )

    async def initiate_stream_stream(self, metadata: Any, begun: OBSERVED, context: Any = None) -> None:
        """See `AioCall.initiate_stream_stream`."""
        self._begin(metadata, None)
        self._call.add_done_callback(self._over)
        await self._started(
            self._call.initiate_stream_stream(self._sent(metadata), begun, *_more(context))
        )

    async def receive_serialized_message(self) -> Any:
        """See `AioCall.receive_serialized_message`."""
        with Shadow():
            message = await self._call.receive_serialized_message()
        if message is not self.core.EOF:
            exchange = self._exchange
            at = None if exchange is None else await exchange.call.arrive()
            if exchange is not None:
                exchange.received(message, at)
        return message

    async def send_serialized_message(self, message: bytes) -> None:
        """See `AioCall.send_serialized_message`."""
        if self._exchange is not None:
            self._exchange.sent(message)
        with Shadow():
            await self._call.send_serialized_message(message)

    async def send_receive_close(self) -> None:
        """See `AioCall.send_receive_close`."""
        with Shadow():
            await self._call.send_receive_close()

    def _sent(self, metadata: Any) -> Any:
        return metadata_with_context(self._exchange, metadata)

    async def _whole(self, made: Awaitable[Any]) -> bytes | None:
        exchange = self._exchange
        with Shadow():
            message = await made
        at = None if exchange is None else await exchange.call.arrive()
        metadata = await self._call.initial_metadata()
        status = await self._call.status()
        place = 0
        if exchange is not None and not self._cancelled_here:
            answered(exchange, metadata, at)
            if message is not None:
                place = 1
                exchange.received(message, exchange.along(at, place))
            ended(exchange, _status(status), exchange.along(at, place + 1))
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
            answered(exchange, metadata, at)
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
                answered(exchange, metadata, at)
                self._set_head(metadata)
                at = exchange.along(at, 1)
            ended(exchange, _status(status), at)
        self._set_status(_status(status))


def _more(context: Any) -> tuple[Any, ...]:
    return () if context is None else (context,)


def _status(status: Any) -> Status:
    return Status(
        status.code(), status.details(), status.trailing_metadata(), status.debug_error_string() or ""
    )
