"""How long questions take until their answer begins."""

from __future__ import annotations

import time

from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
