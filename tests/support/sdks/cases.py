"""What a program asks its model for, a case each. It knows nothing of playhead.

An adapter makes the client and turns what a case wants into calls of its SDK. A case prints what it got.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, Protocol

MODEL = "m-1"
HELLO = "Hello"
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
"""A picture in base64."""
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
"""Of the tool's arguments, and of a structured answer."""
TOOL, ABOUT = "weather", "Weather of a city"


class Adapter(Protocol):
    """One SDK. ``wants``: ``tools``, ``schema`` or ``image``; ``tries``: how often it may send."""

    def ask(self, wants: str = "", tries: int = 1, timeout_s: float = 20.0) -> object:
        """Ask and return what to print."""
        ...

    def stream(self, wants: str = "") -> Iterator[object]:
        """Ask for a stream."""
        ...


class AsyncAdapter(Adapter, Protocol):
    """One that has an asynchronous client too."""

    async def aask(self, wants: str = "") -> object:
        """As `ask`."""
        ...

    def astream(self, wants: str = "") -> AsyncIterator[object]:
        """As `stream`."""
        ...


def abandoned(sdk: Adapter) -> object:
    """Read one part and leave."""
    parts = sdk.stream()
    first = next(parts)
    parts.close()  # type: ignore[attr-defined]
    return first


async def read(sdk: AsyncAdapter) -> object:
    """Read a stream to its end."""
    return [part async for part in sdk.astream()]


async def cancelled(sdk: AsyncAdapter) -> object:
    """Cancel the task that reads a stream."""
    begun = asyncio.Event()

    async def reading() -> None:
        async for _ in sdk.astream():
            begun.set()

    task = asyncio.create_task(reading())
    await begun.wait()
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled"
    return "read"


SYNC: dict[str, Callable[[Any], object]] = {
    "plain": lambda sdk: sdk.ask(),
    "stream": lambda sdk: list(sdk.stream()),
    "tools": lambda sdk: sdk.ask("tools"),
    "parallel": lambda sdk: list(sdk.stream("tools")),
    "schema": lambda sdk: sdk.ask("schema"),
    "refusal": lambda sdk: sdk.ask(),
    "reasoning": lambda sdk: list(sdk.stream()),
    "image": lambda sdk: sdk.ask("image"),
    "refused": lambda sdk: sdk.ask(),
    "failed": lambda sdk: sdk.ask(),
    "again": lambda sdk: sdk.ask(tries=2),
    "timeout": lambda sdk: sdk.ask(timeout_s=0.4),
    "cut": lambda sdk: list(sdk.stream()),
    "malformed": lambda sdk: list(sdk.stream()),
    "abandoned": abandoned,
}
"""Case → what it does with its adapter."""

ASYNC: dict[str, Callable[[Any], Any]] = {
    "async": lambda sdk: sdk.aask(),
    "async stream": read,
    "cancelled": cancelled,
}
"""The same for what needs an event loop."""


def perform(make: Callable[[str], Any], url: str, case: str) -> str:
    """Make an adapter for ``url`` and do one case with it; returns what it printed.

    The cases that an adapter alone has are its ``own``.
    """
    sdk = make(url)
    does: dict[str, Callable[[Any], Any]] = SYNC | ASYNC | getattr(sdk, "own", {})
    try:
        got = does[case](sdk)
        if asyncio.iscoroutine(got):
            got = asyncio.run(got)
    except Exception as problem:
        got = type(problem).__name__
    return f"{case}: {got}"
