"""Decide how a call of `grpc.aio` is answered when it begins: tape, refusal, operator, or server."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playhead_core.errors import ExchangeExhausted, PlayheadError
from playhead_instrumentation.libraries.common.message_exchange import drive
from playhead_instrumentation.libraries.grpc.aio_call import OBSERVED, AioCall, AioRequest
from playhead_instrumentation.libraries.grpc.aio_live import LiveCall
from playhead_instrumentation.libraries.grpc.exchange import arelease, play_again, refused, too_late
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.recorder.gate import Permit
from playhead_instrumentation.recorder.played_exchange import PlayedExchange


class RecordedCall(AioCall):
    """A call that a recording or an operator answers, or that is refused. Else it becomes a `LiveCall`.

    What waited in the recording (the call, its start, a read) waits for the permit of the next item.
    """

    def __init__(self, request: AioRequest, make: Callable[[], Any]) -> None:
        """``make`` makes a call of the core, for a live call."""
        super().__init__(request)
        self._make = make
        self._played: PlayedExchange | None = None
        self._index = 0
        self._streams = False
        self._permit: Permit | None = None
        self._ending = False

    def cancel(self, details: str) -> None:
        """See `AioCall.cancel`."""
        super().cancel(details)
        if self._permit is not None:
            self._permit.give_up()

    async def unary_unary(self, request: bytes, metadata: Any, context: Any = None) -> bytes | None:
        """See `AioCall.unary_unary`."""
        if await self._is_live(metadata, request):
            return await self.unary_unary(request, metadata, context)
        return await self._whole()

    async def stream_unary(self, metadata: Any, begun: OBSERVED, context: Any = None) -> bytes | None:
        """See `AioCall.stream_unary`."""
        if await self._is_live(metadata, None):
            return await self.stream_unary(metadata, begun, context)
        begun()
        return await self._whole()

    async def initiate_unary_stream(self, request: bytes, metadata: Any, context: Any = None) -> None:
        """See `AioCall.initiate_unary_stream`."""
        if await self._is_live(metadata, request):
            return await self.initiate_unary_stream(request, metadata, context)
        self._streams = True
        await self._head()

    async def initiate_stream_stream(self, metadata: Any, begun: OBSERVED, context: Any = None) -> None:
        """See `AioCall.initiate_stream_stream`."""
        if await self._is_live(metadata, None):
            return await self.initiate_stream_stream(metadata, begun, context)
        self._streams = True
        begun()
        await self._head()

    async def receive_serialized_message(self) -> Any:
        """See `AioCall.receive_serialized_message`."""
        if self._follows() == "part":
            message = await self._next()
            if isinstance(message, bytes):
                return message
        return self.core.EOF

    async def send_serialized_message(self, message: bytes) -> None:
        """See `AioCall.send_serialized_message`."""
        if self._exchange is None:
            return
        if too_late(self._exchange, self._played):
            await self.status()
            return
        try:
            self._exchange.sent(message)
        except PlayheadError as error:
            self._set_status(refused(error))

    async def send_receive_close(self) -> None:
        """No-op: nothing goes out."""

    async def _is_live(self, metadata: Any, request: bytes | None) -> bool:
        """Begin the exchange; returns whether the call is live, so that ``self`` listens to it."""
        self._begin(metadata, request)
        exchange = self._exchange
        if exchange is None:
            if not self._request.session.driver.closed:
                return self._become_live()
            self._set_status(refused(ExchangeExhausted("the call could not be looked up")))
            return False
        try:
            self._request.deadline = await arelease(exchange, self._request.deadline)
            if self.done():  # it was cancelled while it waited
                return False
            exchange.call.check()
        except PlayheadError as error:
            exchange.failed(error)
            self._set_status(refused(error))
            return False
        return exchange.call.answer(self._become_live, self._play)

    def _become_live(self) -> bool:
        call = self._make()
        self.__class__ = LiveCall  # pyright: ignore[reportAttributeAccessIssue]
        self.__dict__.update(_call=call, _headed=False)
        return True

    def _play(self, played: PlayedExchange) -> bool:
        self._played = played
        return False

    def _follows(self) -> str:
        """Kind of the next item: ``head``, ``part`` or ``end``; empty if there is a status."""
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
        """Deliver the status if it comes next, because the library does not request it."""
        if self._follows() == "end" and not self._ending:
            self._ending = True
            with Shadow():
                drive(self._end())

    async def _end(self) -> None:
        await self._next()

    async def _next(self) -> Any:
        """Return the next item when its permit comes; None if there is none."""
        exchange, played = self._exchange, self._played
        if exchange is None or played is None:
            return None
        try:
            while True:
                self._permit = permit = exchange.permit()
                at = await permit
                self._permit = None
                if exchange.over or self.done():
                    return None
                if exchange.due(permit):
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
