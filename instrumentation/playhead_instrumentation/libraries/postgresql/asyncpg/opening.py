"""Patch asyncpg: open connections, and open recorded ones again in a replay.

From then on the protocol of the connection, which is written in C, writes to a `RecordingTransport` and
is fed by it (`transport`).
"""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextvars import ContextVar, Token
from types import ModuleType
from typing import Any, Final

from playhead_core.errors import ExchangeExhausted
from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.database.exchange import Server, Statement, begin
from playhead_instrumentation.libraries.database.opening import begin_opening, fail_again
from playhead_instrumentation.libraries.database.set_up import setting_up_async
from playhead_instrumentation.libraries.postgresql import messages
from playhead_instrumentation.libraries.postgresql.asyncpg.transport import (
    DRIVER,
    HEARD,
    RecordingTransport,
)
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session

PORT: Final = 5432


class OpenedTransports:
    """The transports that are made while one connection is opened: several, if one is refused."""

    def __init__(self, session: Session, server: Server) -> None:
        self.session = session
        self.server = server
        self.made: list[RecordingTransport] = []
        self.played: deque[bytes] | None = None
        """Replay: what the server says to each of them. None: the server is real."""
        self._token: Token[OpenedTransports | None] | None = None

    def __enter__(self) -> None:
        self._token = _opens.set(self)

    def __exit__(self, *_: object) -> None:
        if self._token is not None:
            _opens.reset(self._token)

    def heard(self, protocol: Any, below: Any) -> RecordingTransport:
        """Return a transport for ``protocol``. ``below``: the real one; None in a replay."""
        transport = RecordingTransport(self.session, self.server, protocol, below)
        protocol.__dict__[HEARD] = transport
        self.made.append(transport)
        return transport

    def said(self) -> Sequence[bytes]:
        """Return what the server sent to each, without parts that only the real server understands."""
        return [_without_secrets(transport.welcome) for transport in self.made]


_opens: Final[ContextVar[OpenedTransports | None]] = ContextVar("playhead_asyncpg_opens", default=None)
_cancels: Final[ContextVar[RecordingTransport | None]] = ContextVar(
    "playhead_asyncpg_cancels", default=None
)


class RecordedLoop:
    """The event loop, for asyncpg while it opens a connection that is on the tape."""

    def __init__(self, loop: Any, opens: OpenedTransports) -> None:
        self._loop = loop
        self._opens = opens

    async def create_connection(self, factory: Callable[[], Any], *_: Any, **__: Any) -> Any:
        """As a loop does; nothing is connected to."""
        opens = self._opens
        if not opens.played:
            raise ExchangeExhausted("the recorded connection cannot be opened again")
        protocol = factory()
        transport = opens.heard(protocol, None)
        protocol.connection_made(transport)
        transport.came(opens.played.popleft())
        return transport, protocol

    create_unix_connection = create_connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loop, name)


async def connecting(original: Any, **asked: Any) -> Any:
    """Layer of `asyncpg.connect_utils._connect_addr`."""
    session = recording_requests()
    if session is None:
        return await original(**asked)
    asked["params"] = params = await _with_password(asked["params"])
    server = _server(asked["addr"], params.database)
    opening = begin_opening(session, server, _told(params))
    if opening is None:
        return await original(**asked)
    opens = OpenedTransports(session, server)

    async def live() -> Any:
        with Shadow(), opens:
            return await original(**asked)

    async def again(played: PlayedExchange) -> Any:
        await fail_again(opening, played)
        opens.played = deque(played.part(index) for index in range(len(played.exchange.parts)))
        with Shadow(), opens:
            connection = await original(**{**asked, "loop": RecordedLoop(asked["loop"], opens)})
        connection._loop = asked["loop"]
        return connection

    try:
        try:
            connection = await opening.call.answer(live, again)
        except Exception as error:
            at = await opening.permit()
            said = opens.said()
            if any(said):  # the server refused, and its message is the response
                opening.opened(at, *said)
            else:
                opening.failed(error, at)
            raise
        at = await opening.permit()
    except BaseException as error:
        opening.failed(error)
        raise
    standing = opening.opened(at, *opens.said())
    if opens.made:
        opens.made[-1].opened(standing)
    return connection


async def securing(original: Any, factory: Any, *args: Any, **kwargs: Any) -> Any:
    """Layer of `_create_ssl_connection`: a replay encrypts nothing."""
    loop = kwargs.get("loop")
    if not isinstance(loop, RecordedLoop):
        return await original(factory, *args, **kwargs)
    transport, protocol = await loop.create_connection(factory)
    protocol.is_ssl = True
    return transport, protocol


def made(original: Any, protocol: Any, transport: Any) -> None:
    """Layer of ``connection_made`` of a protocol."""
    opens = _opens.get()
    if opens is None or isinstance(transport, RecordingTransport):
        original(protocol, transport)
    else:
        original(protocol, opens.heard(protocol, transport))


def received(original: Any, protocol: Any, data: bytes) -> None:
    """Layer of ``data_received`` of a protocol."""
    heard: RecordingTransport | None = protocol.__dict__.get(HEARD)
    if heard is None or heard.feeding:
        original(protocol, data)
    else:
        heard.came(data)


def lost(original: Any, protocol: Any, error: Exception | None) -> None:
    """Layer of ``connection_lost`` of a protocol."""
    heard: RecordingTransport | None = protocol.__dict__.get(HEARD)
    if heard is None or heard.feeding:
        original(protocol, error)
    else:
        heard.lost(error)


async def cancelling(original: Any, connection: Any, *args: Any, **kwargs: Any) -> Any:
    """Layer of `Connection._cancel`."""
    heard = getattr(connection._protocol, "__dict__", {}).get(HEARD)
    token = _cancels.set(heard)
    try:
        return await original(connection, *args, **kwargs)
    finally:
        _cancels.reset(token)


async def sending_cancel(original: Any, **asked: Any) -> None:
    """Layer of `asyncpg.connect_utils._cancel`: another connection, which tells the server to stop."""
    heard, session = _cancels.get(), recording_requests()
    found = None
    if heard is not None and session is not None:
        heard.cancels()
        found = begin(session, heard.server, Statement("CANCEL", b"{}", "write", {}))
    if found is None:
        await original(**asked)
        return

    exchange = found

    async def live() -> None:
        with Shadow():
            await original(**asked)

    async def again(played: PlayedExchange) -> None:
        await fail_again(exchange, played)

    try:
        try:
            await found.call.answer(live, again)
        except Exception as error:
            found.failed(error, await found.permit())
            raise
        found.finished(await found.permit())
    except BaseException as error:
        found.failed(error)
        raise


async def _with_password(params: Any) -> Any:
    """Let the program make the password in its own lane, not while the connection is opened."""
    if not callable(params.password):
        return params
    password: Any = params.password()
    if inspect.isawaitable(password):
        password = await password
    return params._replace(password=lambda: password)


def _server(address: Any, database: str) -> Server:
    if isinstance(address, str):  # path of a socket
        folder, _, port = address.rpartition("/.s.PGSQL.")
        return Server("postgresql", folder or address, int(port) if port.isdigit() else PORT, database)
    host, port = address
    return Server("postgresql", str(host), int(port), database)


def _told(params: Any) -> dict[str, Any]:
    return {"user": params.user, **(params.server_settings or {}), **DRIVER}


def _without_secrets(said: bytes) -> bytes:
    """Return what a server sent when a connection was opened, as if it required no password.

    The cancellation key is left out.
    """
    kept: list[bytes] = []
    for kind, body in messages.split(said):
        if kind == b"R":
            if body == b"\0\0\0\0":
                kept.append(messages.message(kind, body))
        elif kind == b"K":
            kept.append(messages.message(kind, body[:4] + bytes(len(body) - 4)))
        else:
            kept.append(messages.message(kind, body))
    return b"".join(kept)


def patch(module: ModuleType) -> None:
    """Patch asyncpg. ``module``: `asyncpg.connection`; everything patched here is loaded before it."""
    utils, protocol = sys.modules["asyncpg.connect_utils"], sys.modules["asyncpg.protocol"].Protocol
    connection: Any = required(module, "Connection")
    layers: tuple[tuple[Any, dict[str, Any]], ...] = (
        (
            utils,
            {
                "_connect_addr": connecting,
                "_create_ssl_connection": securing,
                "_cancel": sending_cancel,
            },
        ),
        (
            protocol,
            {
                "connection_made": made,
                "data_received": received,
                "connection_lost": lost,
            },
        ),
        (
            connection,
            {
                "_cancel": cancelling,
                "_introspect_types": setting_up_async,
                "_introspect_type": setting_up_async,
            },
        ),
    )
    for owner, named in layers:
        for name in named:
            required(owner, name)
    for owner, named in layers:
        PATCHES.around_all(owner, named)
