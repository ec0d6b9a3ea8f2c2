"""Connections of redis-py with asyncio.

Reader and writer of a connection are replaced by ones that listen, below the driver's own parsers and
above encryption. A replay has no connection below them: what the driver reads is on the tape.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from types import ModuleType
from typing import Any

from playhead_core.errors import ExchangeExhausted
from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.database.exchange import DatabaseExchange
from playhead_instrumentation.libraries.database.opening import begin_opening, fail_again, welcome_of
from playhead_instrumentation.libraries.redis.resp import Replies, commands
from playhead_instrumentation.libraries.redis.statement import joined
from playhead_instrumentation.libraries.redis.talk import (
    HEARD,
    Talk,
    heard_of,
    parameters_of,
    patch_connections,
    server_of,
)
from playhead_instrumentation.patching.lanes import In, Lane, Shadow, current
from playhead_instrumentation.recorder.exceptions import again as raised_again
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

READ_BYTES = 1 << 16


def patch(module: ModuleType) -> None:
    """Patch the connections of `redis.asyncio.connection`."""
    patch_connections(module, _opening, _connecting, {"send_packed_command": _sending})


class Heard:
    """What listens to a connection, whatever streams it has."""

    def __init__(self) -> None:
        self.asks: Any = None
        """The command that is about to be sent, as the driver has packed it."""
        self.lane: Lane | None = None
        """The lane in which it is sent."""
        self.opens: RecordingStreams | None = None
        """The streams that are being opened."""


async def _opening(original: Any, connection: Any, *args: Any, **kwargs: Any) -> Any:
    session = recording_requests()
    if session is None or connection.is_connected:
        return await original(connection, *args, **kwargs)
    server = server_of(connection)
    opening = begin_opening(session, server, parameters_of(connection))
    if opening is None:
        return await original(connection, *args, **kwargs)
    heard = heard_of(connection, Heard)
    heard.opens = streams = RecordingStreams(Talk(session, server), heard)

    async def live() -> None:
        with Shadow():
            await original(connection, *args, **kwargs)

    async def again(played: PlayedExchange) -> None:
        await fail_again(opening, played)
        streams.recorded(welcome_of(played))
        with Shadow():
            await original(connection, *args, **kwargs)

    try:
        try:
            await opening.call.answer(live, again)
        except Exception as error:
            opening.failed(error, await opening.permit())
            raise
        at = await opening.permit()
    except BaseException as error:
        opening.failed(error)
        raise
    finally:
        heard.opens = None
    streams.talk.welcome = opening.opened(at, streams.opened())


async def _connecting(original: Any, connection: Any) -> None:
    heard: Heard | None = connection.__dict__.get(HEARD)
    if heard is None or heard.opens is None or heard.opens.connects:
        return await original(connection)
    streams = heard.opens

    async def makes() -> tuple[Any, Any]:
        before = connection._reader, connection._writer
        await original(connection)
        made = connection._reader, connection._writer
        connection._reader, connection._writer = before
        return made

    await streams.connected(makes)
    connection._reader, connection._writer = RecordingReader(streams), RecordingWriter(streams)


async def _sending(original: Any, connection: Any, command: Any, *args: Any, **kwargs: Any) -> Any:
    if recording_requests() is None:
        return await original(connection, command, *args, **kwargs)
    heard = heard_of(connection, Heard)
    outer = heard.asks, heard.lane
    heard.asks, heard.lane = command, current()
    try:
        return await original(connection, command, *args, **kwargs)
    finally:
        heard.asks, heard.lane = outer


class RecordingStreams:
    """What passes over a connection goes on the tape, live or replayed."""

    def __init__(self, talk: Talk, heard: Heard) -> None:
        self.talk = talk
        self.connects = False
        """Whether the driver is opening the streams below."""
        self.reader: Any = None
        """The reader below; None if nothing has been asked of the world."""
        self.writer: Any = None
        """The writer below."""
        self.ready = asyncio.StreamReader()
        """What was read and the driver does not have yet."""
        self._heard = heard
        self._makes: Callable[[], Awaitable[tuple[Any, Any]]] | None = None
        self._opens = False
        """Whether the streams below have to be opened before more is sent."""
        self._welcome: bytearray | None = bytearray()
        """What the server has said while the connection is being opened; None: it is open."""
        self._setup: list[bytes] = []
        """What the driver has sent until then. It has credentials and goes on no tape."""
        self._unsent: list[bytes] = []
        self._closed = False
        self._plays = False

    def recorded(self, welcome: bytes) -> None:
        """Note that the opening is on the tape: the server sent ``welcome``."""
        self._plays = True
        self._welcome = bytearray(welcome)
        self.ready.feed_data(welcome)

    async def connected(self, makes: Callable[[], Awaitable[tuple[Any, Any]]]) -> None:
        """Stands in for the function that makes the streams of a connection."""
        self._makes = makes
        if not self._plays:
            await self._open()

    def opened(self) -> bytes:
        """Record that the connection is open. Return what the server sent."""
        welcome, self._welcome = bytes(self._welcome or b""), None
        return welcome

    @property
    def closed(self) -> bool:
        """Whether the connection is closed, from either side."""
        return self._closed or (self.writer is not None and self.writer.is_closing())

    def send(self, data: bytes) -> None:
        """``data`` is about to go out. The first bytes of a command are preceded by its ask."""
        heard = self._heard
        if self._welcome is not None:
            self._setup.append(data)
        elif heard.asks is not None:
            asks, heard.asks = heard.asks, None
            with In(heard.lane or current()):
                self.talk.ask(joined(asks), self._asks_world)
        if self._opens:
            self._unsent.append(data)
        elif self.writer is not None and (self.talk.played is None or self._welcome is not None):
            self.writer.write(data)

    async def drain(self) -> None:
        """Wait until what was written may have gone out."""
        with Shadow():
            if self._opens:
                await self._open()
                self._opens = False
                self.writer.writelines(self._unsent)
                self._unsent.clear()
            if self.writer is not None:
                await self.writer.drain()

    async def bring(self) -> None:
        """Wait for the next bytes, or for the end of the connection."""
        talk = self.talk
        exchange = talk.exchange
        if exchange is None or exchange.over:
            await self._unasked()
        elif talk.played is not None:
            await self._again(exchange, talk.played)
        else:
            await self._live(exchange)

    async def _unasked(self) -> None:
        if self.reader is None:
            if self.talk.exchange is None:
                raise ExchangeExhausted("the program reads from a connection of which it asked nothing")
            await self.talk.exchange.call.never()
            return
        data = await self.reader.read(READ_BYTES)
        if self._welcome is not None:
            self._welcome += data
        self._feed(data)

    async def _live(self, exchange: DatabaseExchange) -> None:
        talk, data, problem = self.talk, b"", None
        with Shadow():
            try:
                data = await self.reader.read(READ_BYTES)
            except Exception as error:
                problem = error
        exchange = talk.exchange or exchange  # another task may have asked meanwhile
        at = await exchange.permit()
        if problem is not None:
            exchange.failed(problem, at)
            raise problem
        if data:
            talk.came(exchange, data, at)
        else:
            talk.over(exchange, at)
        self._feed(data)

    async def _again(self, exchange: DatabaseExchange, played: PlayedExchange) -> None:
        talk, number = self.talk, exchange.received_count
        talk.permit = permit = exchange.permit()
        try:
            at = await permit
        except ExchangeExhausted as error:
            exchange.exhausted(error)
            raise
        finally:
            if talk.permit is permit:
                talk.permit = None
        if talk.exchange is not exchange:
            return
        recorded = played.exchange
        if self._closed:
            self._feed(b"")
        elif number < len(recorded.parts):
            data = played.part(number)
            talk.came(exchange, data, at)
            self._feed(data)
        elif recorded.end is not None and recorded.end.error is not None:
            exchange.broken(recorded.end.error, at)
            raise raised_again(recorded.end.error, OSError)
        else:
            talk.over(exchange, at)
            self._feed(b"")

    def _feed(self, data: bytes) -> None:
        if data:
            self.ready.feed_data(data)
        else:
            self.ready.feed_eof()

    def _asks_world(self) -> None:
        self._opens = self.writer is None

    async def _open(self) -> None:
        """Open the streams below, and say again what opened the connection."""
        if self._makes is None:
            return
        self.connects = True
        try:
            self.reader, self.writer = await self._makes()
            if self._plays and self._setup:
                replies = Replies(len(commands(b"".join(self._setup))))
                self.writer.writelines(self._setup)
                while not replies.over and (data := await self.reader.read(READ_BYTES)):
                    replies.feed(data)
        finally:
            self.connects = False

    def close(self) -> None:
        """The program closes the connection."""
        if self._closed:
            return
        self._closed = True
        self.talk.settled()
        if self.talk.permit is not None:
            self.talk.permit.give_up()
        if self.writer is not None:
            self.writer.close()


class RecordingReader:
    """The reader of a connection."""

    def __init__(self, streams: RecordingStreams) -> None:
        self._streams = streams

    @property
    def _buffer(self) -> bytes:
        """The data that has arrived and is still unread, as the driver asks for it."""
        streams = self._streams
        below: Any = getattr(streams.reader, "_buffer", b"")
        return bytes(getattr(streams.ready, "_buffer", b"")) or bytes(below)

    def at_eof(self) -> bool:
        """As a reader does."""
        streams = self._streams
        return streams.ready.at_eof() or (streams.reader is not None and streams.reader.at_eof())

    async def read(self, size: int = -1) -> bytes:
        """As a reader does."""
        await self._until(lambda buffer: bool(buffer))
        return await self._streams.ready.read(size)

    async def readexactly(self, size: int) -> bytes:
        """As a reader does."""
        await self._until(lambda buffer: len(buffer) >= size)
        return await self._streams.ready.readexactly(size)

    async def readline(self) -> bytes:
        """As a reader does."""
        await self._until(lambda buffer: b"\n" in buffer)
        return await self._streams.ready.readline()

    async def readuntil(self, separator: bytes = b"\n") -> bytes:
        """As a reader does."""
        await self._until(lambda buffer: separator in buffer)
        return await self._streams.ready.readuntil(separator)

    async def _until(self, enough: Callable[[bytearray], bool]) -> None:
        ready: Any = self._streams.ready
        while not enough(ready._buffer) and not ready._eof:
            await self._streams.bring()


class RecordingWriter:
    """The writer of a connection."""

    def __init__(self, streams: RecordingStreams) -> None:
        self._streams = streams

    @property
    def transport(self) -> Any:
        """The transport below, if there is one."""
        writer = self._streams.writer
        return None if writer is None else writer.transport

    def write(self, data: Any) -> None:
        """As a writer does."""
        self._streams.send(bytes(data))

    def writelines(self, lines: Iterable[Any]) -> None:
        """As a writer does."""
        for data in lines:
            self._streams.send(bytes(data))

    async def drain(self) -> None:
        """As a writer does."""
        await self._streams.drain()

    def is_closing(self) -> bool:
        """As a writer does."""
        return self._streams.closed

    def close(self) -> None:
        """As a writer does."""
        self._streams.close()

    async def wait_closed(self) -> None:
        """As a writer does."""
        writer = self._streams.writer
        if writer is not None:
            with Shadow():
                await writer.wait_closed()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As a writer does; without a connection it knows the address of its peer alone."""
        writer, server = self._streams.writer, self._streams.talk.server
        if writer is not None:
            return writer.get_extra_info(name, default)
        return (server.address, server.port) if name == "peername" and server.port else default
