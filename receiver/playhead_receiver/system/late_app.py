"""An ASGI application that is made when somebody first asks something of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import anyio.to_thread
from starlette.types import ASGIApp, Receive, Scope, Send


class LateApp:
    """Wraps an application that takes long to load, so that a server can listen before it is there.

    ``make`` is called once, in a thread. ``threads``: number of requests that it answers concurrently.
    """

    def __init__(self, make: Callable[[], ASGIApp], threads: int) -> None:
        self._make = make
        self._threads = threads
        self._app: ASGIApp | None = None
        self._making = asyncio.Lock()

    def load(self) -> None:
        """Make the application now."""
        if self._app is None:
            self._app = self._make()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The ASGI interface."""
        if scope["type"] == "lifespan":
            await _live(receive, send, self._threads)
            return
        if self._app is None:
            async with self._making:
                await anyio.to_thread.run_sync(self.load)
        assert self._app is not None
        await self._app(scope, receive, send)


async def _live(receive: Receive, send: Send, threads: int) -> None:
    """Answer the messages about start and end of a server."""
    anyio.to_thread.current_default_thread_limiter().total_tokens = threads
    while True:
        said = (await receive())["type"]
        await send({"type": f"{said}.complete"})
        if said == "lifespan.shutdown":
            return
