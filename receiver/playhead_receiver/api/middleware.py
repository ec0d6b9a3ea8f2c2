"""ASGI middleware of the query API: timing, body size; and early ends of abandoned requests."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from anyio import from_thread
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playhead_receiver.api.problems import answer
from playhead_receiver.api.tallies import Tallies


class TimingMiddleware:
    """Measures the time to the first byte, except for requests that wait for events (live, control)."""

    def __init__(self, app: ASGIApp, tallies: Tallies) -> None:
        self._app = app
        self._tallies = tallies

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
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
"""Largest body of an order, in bytes."""
BELOW = ("/v1/runs/", "/v1/conform")
"""Paths of orders; other paths that take bodies have limits of their own."""


class BodySizeMiddleware:
    """Refuses orders with large bodies before anything reads them whole.

    If a body turns out larger than announced, reading it fails.
    """

    def __init__(self, app: ASGIApp, most_bytes: int = MOST_BYTES) -> None:
        self._app = app
        self._most_bytes = most_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] != "http" or not scope["path"].startswith(BELOW):
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"")
        if announced.isdigit() and int(announced) > self._most_bytes:
            detail = f"the body is larger than {self._most_bytes >> 20} MiB"
            await answer(413, detail, code="usage")(scope, receive, send)
            return
        received_bytes = 0

        async def bounded() -> Message:
            nonlocal received_bytes
            message = await receive()
            received_bytes += len(message.get("body", b""))
            if received_bytes > self._most_bytes:
                raise ValueError(f"more than {self._most_bytes >> 20} MiB were received")
            return message

        await self._app(scope, bounded, send)


LOOKS_AFTER = 500
"""Items between two checks of the connection."""

Item = TypeVar("Item")


def while_wanted(request: Request, items: Iterable[Item]) -> Iterator[Item]:
    """Yield the items; stop early if the caller has disconnected.

    For endpoints that run in a thread. A page sends a new query at each key and abandons the previous.
    """
    for number, item in enumerate(items, 1):
        if number % LOOKS_AFTER == 0 and from_thread.run(request.is_disconnected):
            return
        yield item
