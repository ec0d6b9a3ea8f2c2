"""Orders with large bodies are refused before anything reads them whole."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from playhead_receiver.api.problems import answer

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
