"""A program that uses `websockets.asyncio` as in versions since 13: unrecorded, recorded, replayed.

::

    PYTHONPATH=<an older websockets>:tests python -m support.observed.old_websockets LEVEL

Prints as JSON what it saw without playhead, while recording, and in a replay without the server.
"""

from __future__ import annotations

import asyncio
import json
import sys
from http import HTTPStatus
from typing import Any

import websockets
from support.servers.websocket_server import WebSocketServer
from support.tapes.sessions import record, replay
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import serve

from playhead_core.settings import Settings


class Connection(ClientConnection):
    """A connection class of the program."""


class Connect(connect):
    """A subclass that changes the request, and retries on all errors."""

    def __init__(self, url: str, **options: Any) -> None:
        super().__init__(url + "?of=subclass", create_connection=Connection, **options)

    def process_redirect(self, exc: Exception) -> Any:
        return super().process_redirect(exc)


async def talk(url: str) -> list[Any]:
    """Messages, failures, a redirect, and reconnecting."""
    seen: list[Any] = [websockets.__version__]
    headers = {"Authorization": "Bearer sk-sent0123456789abcdefghij", "X-Mine": "yes"}
    async with connect(url + "/chat", subprotocols=["realtime"], additional_headers=headers) as socket:  # type: ignore[list-item]
        for word in ("hello", "burst", "bye"):
            await socket.send(word)
            seen.append(await socket.recv())
        try:
            async for message in socket:
                seen.append(message)
        except websockets.ConnectionClosed as closed:
            seen.append(str(closed))
    for where in ("/denied", "/hangup"):
        try:
            await connect(url + where)
        except Exception as error:
            seen.append([type(error).__name__, str(error)])
    async with Connect(url + "/moved") as socket:
        await socket.send("redirected")
        seen.append([type(socket).__name__, await socket.recv()])
    rounds = 0
    async for socket in Connect(url + "/chat"):
        try:
            await socket.send("drop" if rounds < 2 else "again")
            rounds += 1
            seen.append(await socket.recv())
            break
        except websockets.ConnectionClosed:
            continue
    return seen


async def own_server() -> list[Any]:
    """The program runs a server itself, and rejects some connections."""

    async def process_request(connection: Any, request: Any) -> Any:
        if request.path == "/no":
            return connection.respond(HTTPStatus.FORBIDDEN, "no\n")
        return None

    async def echo(socket: Any) -> None:
        async for message in socket:
            await socket.send(message)

    seen: list[Any] = []
    async with serve(echo, "127.0.0.1", 0, process_request=process_request) as server:
        port = server.sockets[0].getsockname()[1]
        async with connect(f"ws://127.0.0.1:{port}/yes") as socket:
            await socket.send("to myself")
            seen.append(await socket.recv())
        try:
            await connect(f"ws://127.0.0.1:{port}/no")
        except Exception as error:
            seen.append([type(error).__name__, str(error)])
    return seen


def main(level: str) -> None:
    settings = Settings(quiet=True, level=level)
    with WebSocketServer() as server:
        alone = asyncio.run(talk(server.url("")))
    with WebSocketServer() as server:  # the server counts its answers
        url = server.url("")
        recorded, tape = record(lambda: asyncio.run(talk(url)), settings=settings)
    replayed, _ = replay(lambda: asyncio.run(talk(url)), tape, settings=settings)
    ended = [one.end.how if one.end else "open" for one in tape.exchanges().values()]
    serving, _ = record(lambda: asyncio.run(own_server()), settings=settings)
    print(json.dumps([alone, recorded, replayed, ended, asyncio.run(own_server()), serving]))


if __name__ == "__main__":
    main(sys.argv[1])
