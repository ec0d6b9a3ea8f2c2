"""How long questions take until their answer begins."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from anyio import from_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playhead_receiver.api.problems import answer
from playhead_receiver.api.tallies import Tallies


class Timed:
    """ASGI middleware. What waits for something to happen (``/v1/live``, control) is not counted."""

    def __init__(self, app: ASGIApp, tallies: Tallies) -> None:
        self._app = app
        self._tallies = tallies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As the application does."""
        waits = scope["path"].endswith(("/live", "/control")) if scope["type"] == "http" else True
        if waits:
            await self._app(scope, receive, send)
            return
        began = time.monotonic()

        async def timed(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._tallies.answered(time.monotonic() - began)
            await send(message)

        await self._app(scope, receive, timed)


MOST_BYTES = 8 << 20
"""Largest body of an order."""
BELOW = "/v1/runs/"
"""Paths of orders; other paths that take bodies have limits of their own."""


class SmallBodies:
    """ASGI middleware. A body that is larger than it said ends as one that cannot be read."""

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """As the application does."""
        if scope["type"] != "http" or not scope["path"].startswith(BELOW):
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit() and int(announced) > self._most_bytes:
            said = f"a body of more than {self._most_bytes >> 20} MiB is not read"
            await answer(413, said, code="usage")(scope, receive, send)
            return
        come = 0

        async def bounded() -> Message:
            nonlocal come
            message = await receive()
            come += len(message.get("body", b""))
            if come > self._most_bytes:
                raise ValueError(f"more than {self._most_bytes >> 20} MiB came")
            return message

        await self._app(scope, bounded, send)


LOOKS_AFTER = 500
"""Items between two looks at the connection."""

Item = TypeVar("Item")


def while_wanted(request: Request, items: Iterable[Item]) -> Iterator[Item]:
    """These items, or the first of them if the caller goes away meanwhile.

    For an endpoint that runs in a thread. A page asks anew at each key and leaves what it asked before.
    """
    for number, item in enumerate(items, 1):
        if number % LOOKS_AFTER == 0 and from_thread.run(request.is_disconnected):
            return
        yield item
