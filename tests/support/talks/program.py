"""The program: ``URL FOLDER MODULE:CLASS CASE…``, where the SDKs lie in FOLDER.

It knows nothing of playhead. An adapter connects, and turns what a case wants into calls of its SDK. A
case prints what it got. That of a blocking SDK never suspends, so its coroutines need no event loop.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

MODEL = "m-1"
INSTRUCTIONS = "Be brief."
HELLO = "Hello"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
"""A picture in base64."""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL, ABOUT = "weather", "Weather of a city"
SOUND = b"\x00\x01" * 8
PATIENCE_S = 0.4
"""How long a case waits that gives up."""


class Session(Protocol):
    """An open connection."""

    async def ask(self, picture: str = "") -> None:
        """Say `HELLO`, with a picture if one is given, and ask for an answer."""
        ...

    async def give(self, result: str) -> None:
        """Give that result of each tool that the last answer called, and ask for an answer."""
        ...

    async def speak(self) -> None:
        """Send a piece of sound, which interrupts an answer."""
        ...

    async def stop(self) -> None:
        """Cancel the answer."""
        ...

    async def hear(self) -> tuple[str, bool]:
        """Wait for the next event; return what to print, and whether the answer is over."""
        ...

    async def wait(self) -> str:
        """Wait for an event that does not come, for `PATIENCE_S`; return what to print."""
        ...


class Adapter(Protocol):
    """One SDK."""

    blocks: bool

    def __init__(self, url: str) -> None: ...

    def connect(self, **options: Any) -> AbstractAsyncContextManager[Session]:
        """Open a connection. ``open_s``: how long that may take. ``tools``; ``schema``: of its answers.
        ``again``: whether to go on over a new connection when it is lost."""
        ...


async def read(session: Session, got: list[str]) -> None:
    """Hear an answer to its end."""
    over = False
    while not over:
        event, over = await session.hear()
        got.append(event)


async def begun(session: Session, got: list[str]) -> None:
    """Hear the first piece of an answer."""
    while not got or not got[-1].endswith("Hi"):
        got.append((await session.hear())[0])


async def told(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect() as session:
        await session.ask()
        await read(session, got)


async def shown(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect() as session:
        await session.ask(PIXEL)
        await read(session, got)


async def shaped(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect(schema=True) as session:
        await session.ask()
        await read(session, got)


async def called(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect(tools=True) as session:
        await session.ask()
        await read(session, got)
        await session.give("sunny")
        await read(session, got)


async def late(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect(open_s=PATIENCE_S):
        got.append("connected")


async def left(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect() as session:
        await session.ask()
        await begun(session, got)


async def unanswered(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect() as session:
        await session.ask()


async def stopped(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect() as session:
        await session.ask()
        await begun(session, got)
        await session.stop()
        await read(session, got)


async def interrupted(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect() as session:
        await session.ask()
        await begun(session, got)
        await session.speak()
        await read(session, got)
        await read(session, got)


async def cancelled(sdk: Adapter, got: list[str]) -> None:
    heard = asyncio.Event()

    async def talking() -> None:
        async with sdk.connect() as session:
            await session.ask()
            await begun(session, got)
            heard.set()
            await read(session, got)

    task = asyncio.create_task(talking())
    await heard.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        got.append("cancelled")


async def waited(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect() as session:
        await session.ask()
        await begun(session, got)
        got.append(await session.wait())


async def resumed(sdk: Adapter, got: list[str]) -> None:
    async with sdk.connect(again=True) as session:
        await session.ask()
        await read(session, got)
        await session.ask()
        await read(session, got)


CASES: dict[str, Callable[[Any, list[str]], Coroutine[Any, Any, None]]] = {
    "image": shown,
    "schema": shaped,
    "tools": called,
    "parallel": called,
    "late": late,
    "left": left,
    "unanswered": unanswered,
    "stopped": stopped,
    "interrupted": interrupted,
    "cancelled": cancelled,
    "waited": waited,
    "resumed": resumed,
    "resumed late": resumed,
}
"""Case → what it does with its adapter; others hear one answer."""


def perform(sdk: Adapter, case: str) -> str:
    """Do one case; returns what it printed."""
    got: list[str] = []
    asked = CASES.get(case, told)(sdk, got)
    try:
        if sdk.blocks:
            _run_blocking(asked)
        else:
            asyncio.run(asked)
    except Exception as problem:
        got.append(f"{type(problem).__name__}: {problem}")
    return f"{case}: {got}"


def _run_blocking(asked: Coroutine[Any, Any, None]) -> None:
    try:
        asked.send(None)
    except StopIteration:
        return
    raise AssertionError("a blocking SDK waits for an event loop")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    url, folder, adapter, *wanted = sys.argv[1:]
    sys.path[:0] = [folder, str(Path(__file__).parents[2])]
    module, _, name = adapter.partition(":")
    make = getattr(import_module(f"support.talks.{module}"), name)
    for one in wanted:
        sys.stdout.write(perform(make(f"{url}/{one.replace(' ', '-')}"), one) + "\n")
