"""Workloads of `crowd.py`: concurrent calls of the real OpenAI SDK, in threads and an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import openai
from clocks import now_ns
from workloads import history

THREADS = 64
CALLS = 10_000
STREAMS = 1_000
CHUNKS = 20
BEGUN_S = 5.0
"""Seconds until the last stream has started, which is before the first one ends."""
PATIENT = {"timeout": 600.0, "max_retries": 0}
"""If a machine is too slow, this must show in the times and not in retries."""
_SAID = history(0)[1:]


def client() -> openai.OpenAI:
    """A client of the provider given by the environment."""
    return openai.OpenAI(**PATIENT)


def calls(gpt: openai.OpenAI, count: int) -> list[float]:
    """Small calls spread over threads; ns each."""

    def one(_: int) -> int:
        begin = now_ns()
        gpt.chat.completions.create(model="gpt-4o", messages=_SAID)  # type: ignore[arg-type]
        return now_ns() - begin

    with ThreadPoolExecutor(THREADS) as threads:
        return [*threads.map(one, range(count))]


def streams(gpt: openai.OpenAI, count: int) -> list[float]:
    """Staggered streams of 20 chunks; ns each, from the call to the end."""

    async def one(many: openai.AsyncOpenAI, number: int) -> int:
        await asyncio.sleep(BEGUN_S * number / count)
        begin = now_ns()
        stream = await many.chat.completions.create(model="gpt-4o", messages=_SAID, stream=True)  # type: ignore[arg-type]
        chunks = [chunk async for chunk in stream]
        assert len(chunks) == CHUNKS
        return now_ns() - begin

    async def all_of_them() -> list[float]:
        async with openai.AsyncOpenAI(**PATIENT) as many:
            return await asyncio.gather(*(one(many, number) for number in range(count)))

    return asyncio.run(all_of_them())


WORKLOADS: dict[str, tuple[Callable[[openai.OpenAI, int], list[float]], int, int]] = {
    "call": (calls, CALLS, 1),
    "stream": (streams, STREAMS, 1),
}
"""Name → (function, repetitions per round, number of units of which one repetition is the mean)."""
