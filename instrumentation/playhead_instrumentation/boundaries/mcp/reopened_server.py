"""An MCP server on stdio that a tape has answered for, and that the program now asks something new.

It is started when that is about to be sent, and is told what the tape says that it was told, in that
order, so that it is where the recorded one was. What it answers to that is thrown away: the program has
the recorded answers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

from playhead_semconv.rerun.held_connections import HANDSHAKE
from playhead_semconv.rerun.plans import Reopen

PATIENCE_S = 30.0
"""A server is waited for so long, for each answer that it has given before."""

NO_METHOD = {"code": -32601, "message": "nobody answers this any more"}


class Recorded(Protocol):
    """The connection as an exchange."""

    async def received(self, item: Any) -> None:
        """A real server has sent a message, which the program is about to get."""
        ...

    async def closed(self) -> None:
        """A real server says nothing more."""
        ...


class Reopened:
    """Takes what the client says that no tape answers."""

    def __init__(
        self,
        connection: Recorded,
        kit: Any,
        opens: Callable[[], Any],
        how: Reopen | None,
        told: list[Any],
        inbox: Any,
        tasks: Any,
    ) -> None:
        """``opens`` starts the server. ``how`` None: the tape says that it has ended. ``told``: what the
        client has said so far. ``inbox``: what the program reads. ``tasks``: of the connection."""
        self._connection = connection
        self._kit = kit
        self._opens = opens
        self._how = how
        self._told = told
        self._inbox = inbox
        self._tasks = tasks
        self._lock = kit.anyio.Lock()
        self._writer: Any = None
        self._problem: BaseException | None = None

    async def send(self, item: Any) -> None:
        """To the server, which is started before."""
        if self._how is None:
            raise self._kit.anyio.BrokenResourceError
        async with self._lock:
            if self._writer is None and self._problem is None:
                ready = self._kit.anyio.Event()
                self._tasks.start_soon(self._serve, ready)
                await ready.wait()
        if self._problem is not None:
            raise self._problem
        writer: Any = self._writer
        await writer.send(item)

    async def aclose(self) -> None:
        """The server is closed with the connection."""

    def close(self) -> None:
        """See `aclose`."""

    async def _serve(self, ready: Any) -> None:
        try:
            async with self._opens() as (reader, writer):
                await self._feed(reader, writer)
                self._writer = writer
                ready.set()
                async for item in reader:
                    await self._connection.received(item)
                    self._inbox.send_nowait(item)
                await self._connection.closed()
                self._inbox.close()
        except Exception as problem:
            if self._writer is None:
                self._problem = problem
        finally:
            ready.set()

    async def _feed(self, reader: Any, writer: Any) -> None:
        """Tell it what it was told."""
        said = [(item, self._kit.plain(item)) for item in self._told]
        replies = deque(plain for _, plain in said if "method" not in plain)
        for item, plain in said:
            method = plain.get("method")
            if method is None or (self._how == "fresh" and method not in HANDSHAKE):
                continue
            await writer.send(item)
            if "id" in plain:
                with self._kit.anyio.fail_after(PATIENCE_S):
                    await self._answered(str(plain["id"]), reader, writer, replies)

    async def _answered(self, id: str, reader: Any, writer: Any, replies: deque[dict[str, Any]]) -> None:
        async for item in reader:
            plain = self._kit.plain(item)
            if "method" not in plain:
                if str(plain.get("id")) == id:
                    return
            elif "id" in plain:  # it asks the client, who has answered that before
                reply = replies.popleft() if replies else {"jsonrpc": "2.0", "error": NO_METHOD}
                await writer.send(self._kit.message({**reply, "id": plain["id"]}))
        raise self._kit.anyio.BrokenResourceError
