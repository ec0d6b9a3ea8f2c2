"""A real WebSocket server in a process of its own. The path of the request selects its behaviour.

::

    with WebSocketServer() as server:
        connect(server.url("/chat"))
"""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from http import HTTPStatus
from typing import Any

SECRET = "sk-received0123456789abcdef"


class WebSocketServer:
    """Runs for the length of the ``with`` block. ``identity``: key and certificate, for TLS."""

    def __init__(self, identity: str = "") -> None:
        self.identity = identity

    def __enter__(self) -> WebSocketServer:
        words = [sys.executable, __file__, self.identity]
        self._process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.port = int(self._process.stdout.readline())
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    def url(self, path: str) -> str:
        return f"{'wss' if self.identity else 'ws'}://127.0.0.1:{self.port}{path}"


async def chat(connection: Any) -> None:
    """Answers each message with its number; some words have special effects."""
    numbers = 0
    async for message in connection:
        numbers += 1
        if isinstance(message, bytes):
            await connection.send(message[::-1])
        elif message == "burst":
            for number in range(5):
                await connection.send(f"burst {number}")
        elif message == "fragments":
            await connection.send(["one ", "two ", "three"])
        elif message == "large":
            await connection.send(b"\x00\x01" * 500_000)
        elif message == "ping":
            await (await connection.ping(b"are you there"))
            await connection.send("you are")
        elif message == "secret":
            await connection.send(json.dumps({"client_secret": SECRET, "n": numbers}))
        elif message == "bye":
            await connection.close(4001, "see you")
        elif message == "drop":
            connection.transport.abort()
        elif message == "end":
            connection.transport.write_eof()
        elif message == "garbage":
            connection.transport.write(b"\xff\xff\xff\xff")
        elif message == "deaf":
            connection.transport.pause_reading()
        elif message != "silence":
            await connection.send(json.dumps({"n": next(COUNT), "echo": message}))


def _count() -> Any:
    number = 0
    while True:
        number += 1
        yield number


COUNT = _count()
"""Counts over all connections, so that identical requests get different answers."""


async def main() -> None:
    from websockets.asyncio.server import serve

    async def process_request(connection: Any, request: Any) -> Any:
        path = request.path.partition("?")[0]
        if path == "/silent":
            await connection.wait_closed()
        if path == "/denied":
            response = connection.respond(HTTPStatus.UNAUTHORIZED, '{"error": "who are you"}\n')
            response.headers["Set-Cookie"] = "session=received-cookie-0123456789; Path=/"
            return response
        if path == "/moved":
            response = connection.respond(HTTPStatus.FOUND, "")
            response.headers["Location"] = "/chat"
            return response
        if path == "/flaky" and next(COUNT) % 3:
            return connection.respond(HTTPStatus.SERVICE_UNAVAILABLE, "later\n")
        if path == "/noise":
            connection.transport.write(b"220 mail.example.org ESMTP\r\n\r\n")
            connection.transport.close()
        if path == "/hangup":
            connection.transport.abort()
        return None

    def select_subprotocol(connection: Any, offered: Any) -> Any:
        return "realtime" if "realtime" in offered else None

    options: dict[str, Any] = {"process_request": process_request, "max_size": None}
    if sys.argv[1]:
        options["ssl"] = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        options["ssl"].load_cert_chain(sys.argv[1])
    async with serve(chat, "127.0.0.1", 0, select_subprotocol=select_subprotocol, **options) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    import logging

    logging.getLogger("websockets").setLevel(logging.CRITICAL)
    asyncio.run(main())
