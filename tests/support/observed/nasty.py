"""Programs with early exits and unusual contexts. Each returns everything it saw, in order."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack
from typing import Any

import httpx
from support.observed.racing import ask, ask_async


def async_generators(url: str) -> Any:
    """Generators that are consumed, left in the middle, or left to the garbage collector or the loop."""
    seen: list[Any] = []

    async def answers(client: Any, who: object) -> AsyncIterator[Any]:
        try:
            for turn in range(4):
                yield turn, await ask_async(client, url, who)
        finally:
            seen.append(("over", who))

    async def main() -> None:
        async with httpx.AsyncClient(timeout=60) as client:

            async def reads(who: int) -> None:
                given = answers(client, who)
                async for one in given:
                    seen.append(one)
                    if who and one[0] == who:
                        break
                if who == 2:
                    await given.aclose()  # type: ignore[attr-defined]
                if who == 3:
                    kept.append(given)

            kept: list[Any] = []
            await asyncio.gather(*(reads(who) for who in range(4)))
            gc.collect()
            seen.append(await ask_async(client, url, "after"))
            kept.append(answers(client, "never begun"))

    asyncio.run(main())
    return seen


def sets_of_strings(url: str) -> Any:
    """Prompts made from sets: deterministic only for a fixed hash seed."""
    words = {f"word {number}" for number in range(20)}
    with httpx.Client(timeout=60) as client:
        return [client.post(url, json={"words": list(words)}).json()["answer"], *words]


def stack_of_tasks(url: str) -> Any:
    seen: list[Any] = []

    async def main() -> None:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(httpx.AsyncClient(timeout=60))
            for who in range(5):
                task = asyncio.create_task(ask_async(client, url, who))

                async def ends(task: asyncio.Task[Any] = task) -> None:
                    seen.append(await task)

                stack.push_async_callback(ends)
            with ExitStack() as inner:
                inner.callback(seen.append, "inner")

    asyncio.run(main())
    return seen


def own_executors(url: str) -> Any:
    """`run_in_executor` with the program's own executor, which counts."""
    seen: list[Any] = []

    class Counting(ThreadPoolExecutor):
        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
            seen.append("submitted")
            return super().submit(fn, *args, **kwargs)

    async def main(client: Any) -> None:
        loop = asyncio.get_running_loop()
        with Counting(3) as executor:
            jobs = [loop.run_in_executor(executor, ask, client, url, who) for who in range(8)]
            for done in asyncio.as_completed(jobs):
                seen.append(await done)

    with httpx.Client(timeout=60) as client:
        asyncio.run(main(client))
    return seen


NASTY: list[Callable[[str], Any]] = [
    async_generators,
    sets_of_strings,
    stack_of_tasks,
    own_executors,
]
