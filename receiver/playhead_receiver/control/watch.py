"""Waits for a change of a hub in an event loop."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from playhead_receiver.control.hub import Hub


class HubWatch:
    """A context manager for a coroutine that looks at a hub again after each change."""

    def __init__(self, hub: Hub) -> None:
        loop, self._event = asyncio.get_running_loop(), asyncio.Event()

        def changed() -> None:
            try:
                loop.call_soon_threadsafe(self._event.set)
            except RuntimeError:  # the loop is closed
                return

        self._end = hub.watch(changed)

    def looks(self) -> None:
        """It looks now: what changes from here on ends `changed`."""
        self._event.clear()

    async def changed(self) -> None:
        """Wait for a change since `looks`."""
        await self._event.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()
