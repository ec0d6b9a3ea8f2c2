"""What makes replays go wrong: races, timeouts that fire, failing groups, threads in threads.

Each part prints all that it saw, in the order in which it saw it. ``--uvloop``: on that loop.
"""

import asyncio
import ctypes
import os
import queue
import sqlite3
import sys
import tempfile
import threading
import time
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, as_completed, wait
from pathlib import Path

import httpx
import requests
from openai import AsyncOpenAI, OpenAI, RateLimitError

TOOLS = os.environ["TOOLS_URL"]
MODEL = "gpt-5.5"
sys.setswitchinterval(1e-5)
_libc = ctypes.CDLL(None)


def noise() -> None:
    """Run up to 2 ms later than one would have; no boundary sees it."""
    drawn = ctypes.c_uint16()
    _libc.getrandom(ctypes.byref(drawn), 2, 0)
    _libc.usleep(drawn.value // 32)


def prompt(text: str) -> dict[str, object]:
    return {"model": MODEL, "messages": [{"role": "user", "content": text}]}


def said(answer) -> str:
    return answer.choices[0].message.content


async def ask(client: AsyncOpenAI, text: str) -> str:
    answer = said(await client.chat.completions.create(**prompt(text)))
    noise()
    return answer


async def first_come(client: AsyncOpenAI) -> None:
    asked = [ask(client, f"first {n % 2}") for n in range(12)]
    print("as_completed", [await one for one in asyncio.as_completed(asked)])


async def race(client: AsyncOpenAI) -> None:
    """The first wins; the others are cancelled in the middle of their calls."""
    for turn in range(4):
        tasks = {asyncio.create_task(ask(client, f"race {turn}"), name=f"r{n}") for n in range(5)}
        done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        ended = await asyncio.gather(*pending, return_exceptions=True)
        print("race", turn, [task.get_name() for task in done], [task.result() for task in done])
        print("lost", [task.get_name() for task in pending], [type(one).__name__ for one in ended])


async def timeouts(client: AsyncOpenAI) -> None:
    """Limits about as long as an answer takes: some fire, some do not."""
    for n in range(6):
        try:
            async with asyncio.timeout(0.004 * (n + 1)):
                print("in time", n, await ask(client, f"hurry {n}"))
        except TimeoutError:
            print("too late", n)
        try:
            print("waited for", n, await asyncio.wait_for(ask(client, "hurry"), 0.012))
        except TimeoutError:
            print("not waited for", n)


async def failing_group(client: AsyncOpenAI) -> None:
    seen: list[object] = []

    async def member(n: int) -> None:
        try:
            seen.append((n, await ask(client, "group")))
            if n == 2:
                raise ValueError(f"member {n}")
            seen.append((n, await ask(client, f"group again {n}")))
        except asyncio.CancelledError:
            seen.append((n, "cancelled"))
            raise

    try:
        async with asyncio.TaskGroup() as group:
            for n in range(5):
                group.create_task(member(n))
    except* ValueError as errors:
        seen.append([str(one) for one in errors.exceptions])
    print("group", seen)


async def generators(client: AsyncOpenAI) -> None:
    async def answers(who: str):
        try:
            for n in range(5):
                yield await ask(client, f"{who} {n}")
        finally:
            print("closed", who)

    async for one in answers("left early"):
        print("generated", one)
        break
    print("whole", [one async for one in answers("whole")])


async def spinning(client: AsyncOpenAI) -> None:
    """A task that never lets the loop idle, and one that asks meanwhile."""
    over = False
    turns = 0

    async def spin() -> None:
        nonlocal turns
        while not over:
            turns += 1
            await asyncio.sleep(0)

    task = asyncio.create_task(spin())
    print("while spinning", [await ask(client, "spin") for _ in range(3)])
    over = True
    await task
    print("spun", turns > 0)


async def ticking(client: AsyncOpenAI) -> None:
    """A heartbeat beside calls."""
    seen: list[object] = []

    async def tick() -> None:
        n = 0
        while True:
            seen.append(f"tick {n}")
            n += 1
            await asyncio.sleep(0.003)

    heart = asyncio.create_task(tick())
    for n in range(4):
        seen.append(await ask(client, f"beside {n}"))
    heart.cancel()
    print("ticking", seen)


async def sets(client: AsyncOpenAI) -> None:
    words = {"alpha", "beta", "gamma", "delta", "epsilon"}
    print("sets", await ask(client, f"Order {' '.join(words)} {words & {'beta', 'gamma', 'zeta'}}"))


async def asynchronous() -> None:
    print("loop", type(asyncio.get_running_loop()).__module__)
    async with AsyncOpenAI(max_retries=4) as client:
        for part in (first_come, race, timeouts, failing_group, generators, spinning, ticking, sets):
            await part(client)
        found = await asyncio.gather(
            *(asyncio.to_thread(nested, n) for n in range(3)), *(ask(client, "beside") for _ in range(3))
        )
        print("to_thread", found)


def nested(who: int) -> list[str]:
    """A thread that starts threads that start a pool."""
    found: list[str] = []
    lock = threading.Lock()

    def inner(n: int) -> None:
        with OpenAI() as client, ThreadPoolExecutor(2) as pool:
            asked = [
                pool.submit(client.chat.completions.create, **prompt(f"nested {n}")) for _ in range(2)
            ]
            for job in as_completed(asked):
                noise()
                with lock:
                    found.append(f"{who}.{n} {said(job.result())}")

    threads = [threading.Thread(target=inner, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def impatient() -> None:
    """Waits in threads that time out, or do not."""
    answers: queue.Queue[str] = queue.Queue()
    client = OpenAI()

    def produce(n: int) -> None:
        answers.put(said(client.chat.completions.create(**prompt(f"produce {n}"))))

    threads = [threading.Thread(target=produce, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    seen = []
    while len([one for one in seen if one != "nothing"]) < 4:
        try:
            seen.append(answers.get(timeout=0.004))
        except queue.Empty:
            seen.append("nothing")
    print("impatient", seen)
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(5) as pool:
        jobs = [pool.submit(client.chat.completions.create, **prompt("pool")) for _ in range(5)]
        done, rest = wait(jobs, timeout=0.02, return_when=FIRST_COMPLETED)
        print("first done", [said(job.result()) for job in jobs if job in done], len(rest))
        print("of a set", [said(job.result()) for job in wait(jobs).done])


def storm() -> None:
    """Every call is refused at first; the SDK waits and tries again. Some give up."""
    client = OpenAI(max_retries=3)
    refused = OpenAI(max_retries=1)
    print("after the storm", said(client.chat.completions.create(**prompt("storm 2"))))
    try:
        refused.chat.completions.create(**prompt("storm 9"))
    except RateLimitError as error:
        print("gave up", error.status_code)
    session = requests.Session()
    print("requests", session.get(f"{TOOLS}/tool", params={"of": "requests"}, timeout=60).json())
    try:
        httpx.get("http://127.0.0.1:9/nobody")
    except httpx.ConnectError as error:
        print("nobody there", error)


def stored() -> None:
    base = sqlite3.connect("notes.db")
    base.execute("create table if not exists notes (at real, text text)")
    answer = said(OpenAI().chat.completions.create(**prompt("A note")))
    base.execute("insert into notes values (?, ?)", (time.time(), answer))
    base.commit()
    print("notes", base.execute("select * from notes order by rowid").fetchall())
    base.close()
    with tempfile.TemporaryDirectory() as folder, tempfile.NamedTemporaryFile("w+", dir=folder) as file:
        file.write(answer)
        file.seek(0)
        print("temporary", file.name, file.read(), sorted(os.listdir(folder)))
    print("gone", Path(folder).exists())
    time.sleep(0.05)
    print("slept", time.monotonic() > 0)


def main() -> None:
    if "--uvloop" in sys.argv:
        import uvloop

        uvloop.run(asynchronous())
    else:
        asyncio.run(asynchronous())
    impatient()
    storm()
    stored()


main()
