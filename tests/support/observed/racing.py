"""Programs whose output depends on the order of events. Each returns everything it saw, in order."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import random
import select
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import httpx2

COUNT = 20
_chance = random.SystemRandom()


def noise() -> None:
    """Delay the current thread by a random time of at most 2 ms."""
    select.select([], [], [], _chance.random() * 0.002)


def ask(client: Any, url: str, who: object) -> Any:
    answer = client.post(url, json={"the": "same"}).json()["answer"]
    noise()
    return who, answer


async def ask_async(client: Any, url: str, who: object) -> Any:
    answer = (await client.post(url, json={"the": "same"})).json()["answer"]
    noise()
    return who, answer


def first_come(url: str) -> Any:
    async def main() -> Any:
        async with httpx2.AsyncClient(timeout=60) as client:
            calls = [ask_async(client, url, number) for number in range(COUNT)]
            return [await done for done in asyncio.as_completed(calls)]

    return asyncio.run(main())


def race(url: str) -> Any:
    """The first of five wins and cancels the others; repeated six times."""

    async def main() -> Any:
        seen: list[Any] = []
        async with httpx.AsyncClient(timeout=60) as client:
            for turn in range(6):
                tasks = [asyncio.create_task(ask_async(client, url, (turn, n))) for n in range(5)]
                done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in pending:
                    task.cancel()
                ended = await asyncio.gather(*pending, return_exceptions=True)
                seen.append([task.result() for task in tasks if task in done])
                seen.append([type(one).__name__ for one in ended])
        return seen

    return asyncio.run(main())


def pooled_first_come(url: str) -> Any:
    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(COUNT) as pool:
        jobs = [pool.submit(ask, client, url, number) for number in range(COUNT)]
        return [job.result() for job in concurrent.futures.as_completed(jobs)]


def few_workers(url: str) -> Any:
    """More jobs than workers, and what each worker sees."""
    seen: list[Any] = []

    def one(number: int) -> None:
        seen.append(ask(client, url, number))

    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(4) as pool:
        for job in [pool.submit(one, number) for number in range(COUNT)]:
            job.result()
    return seen


def queued(url: str) -> Any:
    """Producers and consumers of an asyncio.Queue."""
    seen: list[Any] = []

    async def produce(client: Any, waiting: asyncio.Queue[Any], who: int) -> None:
        for turn in range(4):
            await waiting.put(await ask_async(client, url, (who, turn)))

    async def consume(client: Any, waiting: asyncio.Queue[Any], who: str) -> None:
        while (item := await waiting.get()) is not None:
            seen.append((who, item, await ask_async(client, url, who)))

    async def main() -> None:
        waiting: asyncio.Queue[Any] = asyncio.Queue(2)
        async with httpx2.AsyncClient(timeout=60) as client:
            consumers = [asyncio.create_task(consume(client, waiting, who)) for who in "abc"]
            await asyncio.gather(*(produce(client, waiting, who) for who in range(4)))
            for _ in consumers:
                await waiting.put(None)
            await asyncio.gather(*consumers)

    asyncio.run(main())
    return seen


def threads_and_loop(url: str) -> Any:
    """Tasks that make requests, and threads that do, writing into one list."""
    seen: list[Any] = []

    def in_thread(who: int) -> None:
        for turn in range(3):
            seen.append(("thread", turn, ask(client, url, who)))

    async def in_task(aclient: Any, who: int) -> None:
        for turn in range(3):
            seen.append(("task", turn, await ask_async(aclient, url, who)))

    async def main() -> None:
        async with httpx.AsyncClient(timeout=60) as aclient:
            jobs = [asyncio.to_thread(in_thread, who) for who in range(4)]
            await asyncio.gather(*jobs, *(in_task(aclient, who) for who in range(4)))

    with httpx.Client(timeout=60) as client:
        asyncio.run(main())
    return seen


def threads_and_queue(url: str) -> Any:
    """Threads that make requests and put the answers into a queue.Queue that others read."""
    seen: list[Any] = []
    waiting: queue.Queue[Any] = queue.Queue(3)

    def produce(who: int) -> None:
        for turn in range(3):
            waiting.put(ask(client, url, (who, turn)))

    def consume(who: str) -> None:
        while (item := waiting.get()) is not None:
            noise()
            seen.append((who, item))

    with httpx.Client(timeout=60) as client:
        producers = [threading.Thread(target=produce, args=(who,)) for who in range(4)]
        consumers = [threading.Thread(target=consume, args=(who,)) for who in "abc"]
        for thread in (*producers, *consumers):
            thread.start()
        for thread in producers:
            thread.join()
        for _ in consumers:
            waiting.put(None)
        for thread in consumers:
            thread.join()
    return seen


PROGRAMS: list[Callable[[str], Any]] = [
    first_come,
    race,
    pooled_first_come,
    few_workers,
    queued,
    threads_and_loop,
    threads_and_queue,
]
