"""Record WebSockets of `websockets.asyncio`.

Two places are patched: the method with which `connect` opens a connection, and the connection's
protocol, which gets the bytes. A replay gives the protocol a transport that leads nowhere, and the bytes
of the tape. The state machine of the library, and everything above it, runs for real.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections import deque
from collections.abc import Callable
from types import ModuleType
from typing import Any

from playhead_core.errors import ExchangeExhausted
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange, drive
from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.websockets.exchange import begin, described, key_of
from playhead_instrumentation.libraries.websockets.protocol import (
    LISTENS,
    Listener,
    LiveListener,
    record_of_opening,
)
from playhead_instrumentation.libraries.websockets.recorded_connection import (
    Item,
    RecordedListener,
    fail_again,
    opening_error,
)
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, Unpatchable, required
from playhead_instrumentation.recorder.exceptions import is_own_doing
from playhead_instrumentation.recorder.played_exchange import PlayedExchange


def patch(module: ModuleType) -> None:
    """Patch `connect` and its connections."""
    connect: Any = required(module, "connect")
    connection: Any = required(module, "ClientConnection")
    opens = next((name for name in OPENS if hasattr(connect, name)), None)
    if opens is None:
        raise Unpatchable(f"no {' or '.join(OPENS)} of websockets.asyncio.client.connect")
    PATCHES.around_all(connection, LAYERS)
    PATCHES.around(connect, opens, _opening)


OPENS = ("open_tcp_connection", "create_connection")
"""Names of the method of `connect` that opens a connection; they differ between versions."""

FACTORIES = ("factory", "protocol_factory", "connection_factory")
"""Names of the attribute of `connect` that makes connections; they differ between versions."""


async def _opening(original: Any, connecter: Any, *args: Any, **kwargs: Any) -> Any:
    session = recording_requests()
    name = next((name for name in FACTORIES if hasattr(connecter, name)), None)
    if session is None or name is None:
        return await original(connecter, *args, **kwargs)
    factory = getattr(connecter, name)
    connection = factory(_address(connecter))
    exchange = begin(session, connecter.uri, _headers(connecter, connection))
    if exchange is None:
        return await original(connecter, *args, **kwargs)
    setattr(connecter, name, functools.partial(_made, connection))

    async def live() -> Any:
        _listen(LiveConnection(exchange, connection))
        with Shadow():
            return await original(connecter, *args, **kwargs)

    async def again(played: PlayedExchange) -> Any:
        return await _connect_again(RecordedConnection(exchange, connection, played))

    try:
        try:
            return await exchange.call.answer(live, again)
        except Exception as error:
            at = await exchange.call.arrive()
            exchange.broken(record_of_opening(exchange, error), at)
            raise
    except BaseException as error:
        exchange.failed(error)
        raise
    finally:
        setattr(connecter, name, factory)


def _listen(listener: LiveConnection | RecordedConnection) -> None:
    listener.tap(listener.connection.protocol)
    listener.connection.__dict__[LISTENS] = listener


async def _connect_again(listener: RecordedConnection) -> Any:
    """Return a connection that only gets the bytes of the tape. Raises the recorded error."""
    played, connection = listener.played, listener.connection
    failed = opening_error(played)
    if failed is not None:
        raise failed
    end = played.exchange.end
    if not played.exchange.head and (end is None or is_own_doing(end.error)):
        await listener.exchange.call.arrive()  # on the tape the connection was never opened
    # The recorded answer to the handshake fits the recorded key only.
    connection.protocol.key = key_of(played) or connection.protocol.key
    _listen(listener)
    connection.connection_made(_Nowhere(listener))
    with Shadow():
        drive(listener.play())
    return connection


def _made(connection: Any, _: Any) -> Any:
    return connection


def _address(connecter: Any) -> Any:
    """Return the parsed address; before version 17 `connect` parses its URI again each time."""
    found = getattr(connecter, "ws_uri", None)
    return sys.modules["websockets.uri"].parse_uri(connecter.uri) if found is None else found


def _headers(connecter: Any, connection: Any) -> list[tuple[str, str]]:
    headers: Any = connection.protocol.connect().headers
    if hasattr(connecter, "handshake_args"):  # before version 15
        additional, agent = connecter.handshake_args
    else:
        additional, agent = connecter.additional_headers, connecter.user_agent_header
    if additional is not None:
        headers.update(additional)
    if agent is not None:
        headers.setdefault("User-Agent", agent)
    return list(headers.raw_items())


class LiveConnection(LiveListener):
    """Listens to a connection. What arrives waits for its permit before the program gets it."""

    def __init__(self, exchange: MessageExchange, connection: Any) -> None:
        super().__init__(exchange)
        self.connection = connection
        self._at_eof = False
        self._waiting: deque[Callable[[], None]] = deque()

    def data(self, original: Any, data: bytes) -> None:
        """Bytes arrived."""
        self._bring(lambda: self._data(original, data))

    def _data(self, original: Any, data: bytes) -> None:
        if not self.answered:
            self.raw += data
        original(self.connection, data)

    def eof(self, original: Any) -> bool:
        """Record that the peer sends no more.

        Return whether to keep the transport until the connection has the EOF.
        """
        done = False

        def bring() -> None:
            nonlocal done
            done = self._at_eof = True
            original(self.connection)
            if self.answered:
                self.exchange.received(b"", self.next_at(), described("eof"))
            if held:
                self.connection.transport.close()

        held = False
        self._bring(bring)
        held = not done
        return held

    def lost(self, original: Any, error: Exception | None) -> None:
        """The connection is lost."""

        def bring() -> None:
            if error is None and not self.answered and not self._at_eof:
                self.exchange.abandoned()  # the program has waited long enough for an answer
            self.ended(self.connection.protocol, error, self.at)
            original(self.connection, error)

        self._bring(bring)

    def keep_alive(self, original: Any) -> None:
        """The library starts its keepalive, which runs in the unrecorded lane."""
        with Shadow():
            original(self.connection)

    def addresses(self) -> tuple[Any, Any]:
        """Local and remote address of the connection."""
        return self.connection.local_address, self.connection.remote_address

    def _bring(self, feed: Callable[[], None]) -> None:
        self._waiting.append(feed)
        if len(self._waiting) == 1:
            drive(self._in_turn())

    async def _in_turn(self) -> None:
        while self._waiting:
            self.came(await self.exchange.call.arrive())
            feed = self._waiting[0]
            self.feeding = True
            try:
                feed()
            finally:
                self.feeding = False
                self._waiting.popleft()


class RecordedConnection(RecordedListener):
    """Feeds a connection from a recording."""

    def __init__(self, exchange: MessageExchange, connection: Any, played: PlayedExchange) -> None:
        super().__init__(exchange, played)
        self.connection = connection
        self._lost = False

    def data(self, original: Any, data: bytes) -> None:
        """The connection is given bytes."""
        original(self.connection, data)

    def eof(self, original: Any) -> bool:
        """The connection is told that the peer sends no more."""
        return original(self.connection)

    def lost(self, original: Any, error: Exception | None) -> None:
        """The connection is told that it is lost."""
        original(self.connection, error)

    def keep_alive(self, original: Any) -> None:
        """No-op: nothing goes out."""

    async def play(self) -> None:
        """Deliver what was recorded; items of one recorded batch are delivered together."""
        exchange = self.exchange
        together: list[Item] = []
        batch = None
        try:
            for index, item in enumerate(self.items()):
                due = self.played.due(index)
                if together and (due is None or due.batch != batch or exchange.call.missing() > 0):
                    self._feed(together)
                    together = []
                batch = None if due is None else due.batch
                while True:
                    permit = exchange.permit()
                    at = await permit
                    if exchange.over:
                        return
                    if exchange.due(permit):
                        break
                if at is None:  # the session is over
                    return
                self.report(item, at)
                together.append(item)
            self._feed(together)
        except ExchangeExhausted as error:
            self._feed(together)
            self.lose(self.cut(error))

    def _feed(self, together: list[Item]) -> None:
        connection = self.connection
        data = b""
        for item in together:
            if item.wire:
                data += self.wire_of(item)
                continue
            if data:
                connection.data_received(data)
                data = b""
            if item.opcode == "eof":
                connection.eof_received()
            elif item.opcode == "lost":
                self.lose(self.error())
            else:
                fail_again(connection.protocol, item)
                connection.data_received(b"")
        if data:
            connection.data_received(data)

    def lose(self, error: BaseException | None) -> None:
        """End the connection; further calls do nothing."""
        if not self._lost:
            self._lost = True
            self.connection.connection_lost(error)

    def aborted(self) -> None:
        """The program aborts the connection.

        The recorded end keeps its time; a refused connection ends at once.
        """
        if self.exchange.over:
            self.connection.loop.call_soon(self.lose, None)


def _heard(name: str) -> Any:
    """Layer of a method of a connection: ask its `Listener`, if it has one."""

    def layer(original: Any, connection: Any, *args: Any) -> Any:
        listener: Listener | None = connection.__dict__.get(LISTENS)
        if listener is None:
            return original(connection, *args)
        return getattr(listener, name)(original, *args)

    return layer


LAYERS = {
    "data_received": _heard("data"),
    "eof_received": _heard("eof"),
    "connection_lost": _heard("lost"),
    "start_keepalive": _heard("keep_alive"),
}
"""By method of a connection: what happens if a `Listener` is attached."""


class _Nowhere(asyncio.Transport):
    """A transport that drops what is written and delivers nothing."""

    def __init__(self, listener: RecordedConnection) -> None:
        local, remote = listener.addresses()
        super().__init__({"sockname": local, "peername": remote})
        self._listener = listener
        self._closing = False

    def write(self, data: Any) -> None:
        """Nothing goes out."""

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        """Nothing goes out."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Nothing is buffered."""

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        self._closing = True
        self._listener.aborted()

    def abort(self) -> None:
        self.close()

    def pause_reading(self) -> None:
        """No-op: the gate decides when the next item comes."""

    def resume_reading(self) -> None:
        """No-op: the gate decides when the next item comes."""
