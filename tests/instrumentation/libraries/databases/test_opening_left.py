"""Openings of connections that a program gave up while the server said nothing."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import asyncpg
import psycopg
import pytest
import redis.asyncio
from support.tapes.sessions import record, replay

from playhead_core.settings import LEVELS, Settings
from playhead_replay.report.compare import compare


class Silent:
    """A server that takes connections and says nothing."""

    def __init__(self) -> None:
        self.taken: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._take, name="playhead-silent", daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while True:
            try:
                self.taken.append(self._listener.accept()[0])
            except OSError:
                return

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        for one in self.taken:
            one.close()


@pytest.fixture
def silent() -> Iterator[Silent]:
    server = Silent()
    yield server
    server.close()


async def redis_(port: int) -> None:
    async with redis.asyncio.Redis(port=port, socket_timeout=None) as client:
        await client.get("a")


async def asyncpg_(port: int) -> None:
    await asyncpg.connect(f"postgresql://x@127.0.0.1:{port}/x?sslmode=disable")


async def psycopg_(port: int) -> None:
    await psycopg.AsyncConnection.connect(f"postgresql://x@127.0.0.1:{port}/x?sslmode=disable")


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("opens", [redis_, asyncpg_, psycopg_])
def test_it_is_given_up_again(
    silent: Silent, level: str, opens: Callable[[int], Coroutine[Any, Any, None]]
):
    live = True

    async def program() -> str:
        opening = asyncio.create_task(opens(silent.port))
        while live and not silent.taken:
            await asyncio.sleep(0)
        try:
            await asyncio.wait_for(opening, 0.02)
        except TimeoutError as error:
            return repr(error)
        return "opened"

    seen, tape = record(lambda: asyncio.run(program()), settings=Settings(quiet=True, level=level))
    assert seen == "TimeoutError()"
    live = False  # a replay has no server
    replayed, now = replay(lambda: asyncio.run(program()), tape)
    assert replayed == seen
    assert compare(tape, now).divergences == []
    assert len(silent.taken) == 1
