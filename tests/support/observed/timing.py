"""Programs whose output depends on which timer ends first. Each returns everything it saw, in order."""

from __future__ import annotations

import asyncio
import concurrent.futures
import queue
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anyio
import httpx
import httpx2
import openai
import uvloop
from support.observed.racing import ask, ask_async

_chance = random.SystemRandom()


def timeouts(url: str) -> Any:
    """Timeouts that expire at about the time at which the answer arrives, in three forms."""

    async def one(client: Any, who: int, seen: list[Any]) -> None:
        limit = _limits[who % len(_limits)]
        for turn in range(3):
            try:
                if who % 3 == 0:
                    async with asyncio.timeout(limit):
                        seen.append(await ask_async(client, url, (who, turn)))
                elif who % 3 == 1:
                    call = ask_async(client, url, (who, turn))
                    seen.append(await asyncio.wait_for(call, limit))
                else:
                    with anyio.fail_after(limit):
                        seen.append(await ask_async(client, url, (who, turn)))
            except TimeoutError:
                seen.append((who, turn, "late"))
        with anyio.move_on_after(0.003) as scope:
            await anyio.sleep(60)
        seen.append((who, scope.cancelled_caught))

    async def main() -> Any:
        seen: list[Any] = []
        async with httpx2.AsyncClient(timeout=60) as client:
            await asyncio.gather(*(one(client, who, seen) for who in range(9)))
        return seen

    return asyncio.run(main())


_limits = (0.002, 0.005, 0.02, 5.0)


def sleeps_and_calls(url: str) -> Any:
    """Sleeps of random length race against calls; the first wins and the other is cancelled."""

    async def main() -> Any:
        seen: list[Any] = []
        async with httpx.AsyncClient(timeout=60) as client:
            for turn in range(12):
                sleep = asyncio.create_task(asyncio.sleep(_chance.random() * 0.01, "slept"))
                call = asyncio.create_task(ask_async(client, url, turn))
                done, pending = await asyncio.wait([sleep, call], return_when=asyncio.FIRST_COMPLETED)
                for task in pending:
                    task.cancel()
                await asyncio.gather(*pending, return_exceptions=True)
                seen.append([task.result() for task in (sleep, call) if task in done])
        return seen

    return asyncio.run(main())


def heartbeats(url: str) -> Any:
    """Tasks that count while others make requests, cancelled at the end; and their final counts."""

    async def beat(seen: list[Any], who: int) -> None:
        count = 0
        while True:
            await asyncio.sleep(0.001 * (who + 1))
            seen.append(("beat", who, count := count + 1))

    async def main() -> Any:
        seen: list[Any] = []
        async with httpx2.AsyncClient(timeout=60) as client:
            beats = [asyncio.create_task(beat(seen, who)) for who in range(3)]
            for turn in range(8):
                seen.append(await ask_async(client, url, turn))
            for task in beats:
                task.cancel()
            await asyncio.gather(*beats, return_exceptions=True)
        return seen

    return asyncio.run(main())


def waiting_threads(url: str) -> Any:
    """Threads that wait for an event, a queue, a condition, each other; some with too short timeouts."""
    seen: list[Any] = []
    told, items = threading.Event(), queue.Queue[Any]()
    condition = threading.Condition()

    def asks() -> None:
        for turn in range(4):
            items.put(ask(client, url, turn))
            time.sleep(_chance.random() * 0.004)
            with condition:
                condition.notify_all()
        told.set()

    def waits() -> None:
        while not told.wait(0.003):
            seen.append("not told")
        seen.append("told")

    def takes() -> None:
        taken = 0
        while taken < 4:
            try:
                seen.append(items.get(timeout=0.002))
                taken += 1
            except queue.Empty:
                seen.append("empty")

    def hears() -> None:
        for _ in range(5):
            with condition:
                seen.append(("heard", condition.wait_for(lambda: len(seen) % 2, 0.003)))

    with httpx.Client(timeout=60) as client:
        threads = [threading.Thread(target=one) for one in (asks, waits, takes, hears)]
        for thread in threads:
            thread.start()
        for thread in threads:
            while thread.is_alive():
                thread.join(0.005)
                seen.append(("joined", not thread.is_alive()))
    return seen


def pooled_with_timeouts(url: str) -> Any:
    """Results of jobs, waited for with too short timeouts."""
    seen: list[Any] = []

    def job(client: Any, who: int) -> Any:
        time.sleep(_chance.random() * 0.006)
        return ask(client, url, who)

    with httpx.Client(timeout=60) as client, ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(job, client, who) for who in range(6)]
        for one in jobs:
            try:
                seen.append(one.result(timeout=0.003))
            except concurrent.futures.TimeoutError:
                seen.append("not yet")
        done, pending = concurrent.futures.wait(jobs, timeout=0.002)
        seen.append((len(done), len(pending)))
        try:
            for one in concurrent.futures.as_completed(jobs, timeout=0.004):
                seen.append(one.result())
        except concurrent.futures.TimeoutError:
            seen.append("too late")
    return seen


def retries(url: str) -> Any:
    """An SDK that backs off, in a loop and in threads; of 12 refusals, all may be for one."""
    seen: list[Any] = []
    options: Any = {"api_key": "test", "base_url": f"{url}/v1", "max_retries": 12}

    def say(completion: Any) -> str:
        return completion.choices[0].message.content

    messages: Any = [{"role": "user", "content": "hi"}]

    def in_thread(client: openai.OpenAI, who: int) -> None:
        made = client.chat.completions.create(model="gpt-4o", messages=messages)
        seen.append((who, say(made)))

    async def in_task(client: openai.AsyncOpenAI, who: int) -> None:
        made = await client.chat.completions.create(model="gpt-4o", messages=messages)
        seen.append((who, say(made)))

    async def main() -> None:
        async with openai.AsyncOpenAI(**options) as client:
            await asyncio.gather(*(in_task(client, who) for who in range(4)))

    with openai.OpenAI(**options) as client:
        threads = [threading.Thread(target=in_thread, args=(client, who)) for who in range(4, 7)]
        for thread in threads:
            thread.start()
        asyncio.run(main())
        for thread in threads:
            thread.join()
    return seen


def spinning(url: str) -> Any:
    """A task that never lets its loop be idle, and counts; alongside sleeps, calls and a thread."""

    async def main() -> Any:
        seen: list[Any] = []
        count, over = 0, False

        async def spin() -> None:
            nonlocal count
            while not over:
                count += 1
                await asyncio.sleep(0)

        async def calls(client: Any, who: int) -> None:
            for turn in range(3):
                seen.append((*(await ask_async(client, url, (who, turn))), count))
                await asyncio.sleep(0.001)
                seen.append(("slept", who, count))

        def in_thread() -> None:
            with httpx.Client(timeout=60) as client:
                seen.append((*ask(client, url, "thread"), count))

        async with httpx2.AsyncClient(timeout=60) as client:
            task = asyncio.create_task(spin())
            await asyncio.gather(*(calls(client, who) for who in range(2)), asyncio.to_thread(in_thread))
            over = True
            await task
        return seen, count

    return asyncio.run(main())


def on_uvloop(url: str) -> Any:
    """Calls, sleeps, timeouts, a race and threads, on a loop written in C."""

    async def main() -> Any:
        seen: list[Any] = []

        async def one(client: Any, who: int) -> None:
            for turn in range(2):
                seen.append(await ask_async(client, url, (who, turn)))
                await asyncio.sleep(_chance.random() * 0.004)
                seen.append(("slept", who, turn))
            try:
                async with asyncio.timeout(0.004):
                    seen.append(await ask_async(client, url, (who, "hasty")))
            except TimeoutError:
                seen.append((who, "late"))

        def in_thread(who: int) -> None:
            time.sleep(_chance.random() * 0.004)
            with httpx.Client(timeout=60) as client:
                seen.append(ask(client, url, ("thread", who)))

        async with httpx2.AsyncClient(timeout=60) as client:
            jobs = [asyncio.to_thread(in_thread, who) for who in range(3)]
            await asyncio.gather(*jobs, *(one(client, who) for who in range(5)))
            for done in asyncio.as_completed([ask_async(client, url, who) for who in range(6)]):
                seen.append(await done)
        return seen

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(main())


PROGRAMS: list[Callable[[str], Any]] = [
    timeouts,
    sleeps_and_calls,
    heartbeats,
    waiting_threads,
    pooled_with_timeouts,
    spinning,
    on_uvloop,
]
