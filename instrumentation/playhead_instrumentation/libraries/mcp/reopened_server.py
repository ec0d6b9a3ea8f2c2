"""A stdio MCP server whose recorded answers were played, and which now gets a new request.

The server starts when the new request is about to be sent. It first gets, in order, the messages that
the client has sent so far, so that it reaches the state of the recorded server. Its answers to those are
dropped: the program has the recorded ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from playhead_core.rerun.open_connections import HANDSHAKE
from playhead_core.rerun.plans import Reopen

PATIENCE_S = 30.0
"""Seconds to wait for each answer that the recorded server had given."""

NO_METHOD = {"code": -32601, "message": "this request has no answer any more"}


class Recorded(Protocol):
    """The connection as an exchange."""

    async def received(self, item: Any) -> None:
        """A real server has sent a message, which the program is about to get."""
        ...

    async def closed(self) -> None:
        """A real server sends no more."""
        ...


class PlayedClient(NamedTuple):
    """The client's side of a connection whose recorded part has been played."""

    kit: Any
    """The parts of the SDK that are used here."""
    told: list[Any]
    """What the client has sent so far."""
    inbox: Any
    """What the program reads."""
    tasks: Any
    """The task group of the connection."""


class Reopened:
    """Takes the client's messages that no tape answers."""

    def __init__(
        self,
        connection: Recorded,
        client: PlayedClient,
        opens: Callable[[], Any],
        how: Reopen | None,
    ) -> None:
        """``opens`` starts the server. ``how`` None: the tape says that the server has ended."""
        self._connection = connection
        self._opens = opens
        self._how = how
        self._kit, self._told, self._inbox, self._tasks = client
        self._lock = self._kit.anyio.Lock()
        self._writer: Any = None
        self._problem: BaseException | None = None

    async def send(self, item: Any) -> None:
        """Send a message to the server; start the server first if needed."""
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
        """No-op: the server is closed with the connection."""

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
        """Send the server the earlier messages of the client."""
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
            elif "id" in plain:  # the server asks the client, which has answered that before
                reply = replies.popleft() if replies else {"jsonrpc": "2.0", "error": NO_METHOD}
                await writer.send(self._kit.message({**reply, "id": plain["id"]}))
        raise self._kit.anyio.BrokenResourceError
