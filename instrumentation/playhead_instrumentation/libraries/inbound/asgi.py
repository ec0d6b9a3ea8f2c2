"""Requests to ASGI applications. The cover of an application stands between it and the server."""

from __future__ import annotations

import asyncio
from typing import Any

from playhead_instrumentation.libraries.inbound.applications import once
from playhead_instrumentation.libraries.inbound.exchange import (
    END,
    InboundExchange,
    InboundRequest,
    begin,
    recording,
)
from playhead_instrumentation.libraries.inbound.excluded import Excluded, unrecorded
from playhead_instrumentation.patching import lanes
from playhead_semconv import attributes as a

TEXT = "text"
"""Suffix of the type of a WebSocket message that holds text, not bytes."""


class CoveredAsgi:
    """An ASGI application whose requests are recorded; all else is passed on to the application."""

    def __init__(self, app: Any, told: str = "") -> None:
        self.__wrapped__ = app
        self._application = once(app, told)
        self._excluded = Excluded(app)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        """Serve one request, or a WebSocket, or the lifespan."""
        app, session = self.__wrapped__, recording()
        kind = scope.get("type")
        if session is None:
            return await app(scope, receive, send)
        if kind == "lifespan":
            # Every later request depends on what the application does at startup: it is part of the
            # boot.
            with lanes.Entered(lanes.MAIN):
                return await app(scope, _outside(receive), _outside(send))
        going = None
        if kind in ("http", "websocket"):
            asked = _asked(scope)
            if self._excluded.has(session, asked):
                with unrecorded():
                    return await app(scope, receive, send)
            going = begin(session, self._application(), asked)
        if going is None:
            return await app(scope, receive, send)
        with going.within():
            try:
                going.came(await going.call.comes())
                result = await app(scope, _receives(going, receive), _sends(going, send))
            except BaseException as error:
                going.failed(error)
                raise
            going.finished()
            return result


def _outside(does: Any) -> Any:
    """Wrap a function of the server: what it does is not part of the program."""

    async def outside(*message: Any) -> Any:
        with lanes.Shadow():
            return await does(*message)

    return outside


def _receives(going: InboundExchange, receive: Any) -> Any:
    async def received() -> Any:
        with lanes.Shadow():
            message = await receive()
        at = await going.call.arrive()
        kind = str(message.get("type", ""))
        if kind == "http.request":
            going.received(message.get("body") or b"", at, "" if message.get("more_body") else END)
        elif message.get("text") is not None:
            going.received(message["text"].encode("utf-8", "surrogatepass"), at, f"{kind} {TEXT}")
        else:
            going.received(message.get("bytes") or b"", at, kind)
        return message

    return received


def _sends(going: InboundExchange, send: Any) -> Any:
    async def sent(message: Any) -> Any:
        kind = str(message.get("type", ""))
        if kind in ("http.response.start", "websocket.http.response.start"):
            going.answers(int(message.get("status", 0)), list(message.get("headers") or ()))
        elif kind == "http.response.body":
            going.sends(bytes(message.get("body") or b""), "" if message.get("more_body") else END)
        elif message.get("text") is not None:
            going.sends(message["text"].encode("utf-8", "surrogatepass"), f"{kind} {TEXT}")
        else:
            going.sends(bytes(message.get("bytes") or message.get("body") or b""), kind)
        try:
            with lanes.Shadow():
                return await send(message)
        except asyncio.CancelledError:
            raise
        except BaseException as error:
            going.unsent(error)
            raise

    return sent


def _asked(scope: Any) -> InboundRequest:
    raw = scope.get("raw_path")
    path = raw.partition(b"?")[0].decode("latin-1") if raw else str(scope.get("path", ""))
    method = str(scope.get("method", "GET"))
    details: dict[str, Any] = {
        a.URL_SCHEME: str(scope.get("scheme", "http")),
        a.NETWORK_PROTOCOL_VERSION: str(scope.get("http_version", "1.1")),
    }
    if scope["type"] == "websocket":
        details[a.NETWORK_PROTOCOL_NAME] = "websocket"
    for names, peer in (
        ((a.CLIENT_ADDRESS, a.CLIENT_PORT), scope.get("client")),
        ((a.SERVER_ADDRESS, a.SERVER_PORT), scope.get("server")),
    ):
        if peer:
            details[names[0]] = str(peer[0])
            if peer[1] is not None:
                details[names[1]] = int(peer[1])
    if scope.get("root_path"):
        details[a.PLAYHEAD_INBOUND_ROOT] = str(scope["root_path"])
    query = bytes(scope.get("query_string") or b"").decode("latin-1")
    return InboundRequest("asgi", method, path, query, list(scope.get("headers") or ()), details)
