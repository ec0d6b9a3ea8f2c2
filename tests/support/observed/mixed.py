"""A program that mixes many kinds of concurrency: tasks and threads make equal and different requests.

Some tasks start threads, and some threads run event loops; results pass through queues, locks, and sets
of tasks and of jobs. It returns everything that it saw, in order; participants are identified by names,
never by objects.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import queue
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool
from typing import Any

import httpx
import openai
from support.observed.racing import noise
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply, openai_chat

TASKS = 200
THREADS = 32


@contextmanager
def jittered(longest_s: float = 0.02) -> Iterator[ScriptedServer]:
    """A server that gives each request a different answer, after a varying delay."""
    numbers = itertools.count()
    chance = random.SystemRandom()

    def answer(request: Request) -> Reply:
        number = next(numbers)
        time.sleep(chance.random() * longest_s)
        if request.path.endswith("/chat/completions"):
            return json_reply(openai_chat.completion(f"answer {number}"))
        return json_reply({"answer": number})

    with ScriptedServer() as running:
        running.on(lambda _: True, answer, repeat=True)
        yield running


class Mixed:
    """One execution of the program."""

    def __init__(self, url: str, tasks: int, threads: int) -> None:
        self.url = url
        self.tasks = tasks
        self.threads = threads
        self.seen: list[Any] = []
        self.lock = threading.Lock()
        self.again = threading.RLock()
        self.few = threading.Semaphore(3)
        self.taken: queue.Queue[Any] = queue.Queue(5)
        self.simple: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.http = httpx.Client(timeout=60)
        self.chat = openai.OpenAI(base_url=f"{url}/v1", api_key="test", max_retries=0)

    def tell(self, *what: Any) -> None:
        self.seen.append(what)

    def say(self, who: object) -> str | None:
        done = self.chat.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": f"the same, {who}"}]
        )
        return done.choices[0].message.content

    def ask(self, who: object) -> Any:
        answer = self.http.post(f"{self.url}/ask", json={"who": who}).json()["answer"]
        noise()
        return answer

    async def say_async(self, client: openai.AsyncOpenAI, who: object) -> str | None:
        done = await client.chat.completions.create(
            model="gpt-4o", messages=[{"role": "user", "content": f"the same, {who}"}]
        )
        return done.choices[0].message.content

    # Work of threads.

    def locked(self, who: int) -> None:
        with self.lock:
            self.tell("locked", who, self.ask("same"))
        with self.again, self.again:
            self.tell("again", who, self.say("same"))

    def limited(self, who: int) -> None:
        for turn in range(2):
            with self.few:
                self.tell("limited", who, turn, self.ask(who))

    def produces(self, who: int) -> None:
        self.taken.put((who, self.ask("same")))
        self.simple.put((who, self.ask(who)))

    def consumes(self, who: int) -> None:
        self.tell("took", who, self.taken.get())
        noise()
        self.tell("simple", who, self.simple.get())

    def loops(self, who: int) -> None:
        async def main() -> None:
            async with httpx.AsyncClient(timeout=60) as client:

                async def one(turn: int) -> Any:
                    answer = (await client.post(f"{self.url}/ask", json={"loop": turn})).json()
                    return turn, answer["answer"]

                for done in asyncio.as_completed([one(turn % 2) for turn in range(4)]):
                    self.tell("loop", who, await done)

        asyncio.run(main())

    def nests(self, who: int) -> None:
        """A thread starts a pool whose jobs start threads."""

        def job(number: int) -> None:
            inner = threading.Thread(target=lambda: self.tell("inner", who, number, self.ask("same")))
            inner.start()
            inner.join()

        with ThreadPoolExecutor(2) as pool:
            jobs = {pool.submit(job, number) for number in range(3)}
            done, _ = concurrent.futures.wait(jobs)
            self.tell("nested", who, len(done))

    def pooled(self, who: int) -> None:
        with ThreadPool(2) as pool:
            self.tell("pool", who, list(pool.imap_unordered(self.ask, ["same", "same", who])))

    def hands_over(self, who: int, loop: asyncio.AbstractEventLoop, client: Any) -> None:
        """From a thread into the loop and back."""
        answer = asyncio.run_coroutine_threadsafe(self.say_async(client, "same"), loop).result()
        self.tell("handed", who, answer)
        loop.call_soon_threadsafe(self.tell, "soon", who)

    # Work of tasks.

    async def one_task(self, client: Any, aclient: Any, who: int) -> Any:
        if who % 10 == 3:
            self.tell("to thread", who, await asyncio.to_thread(self.ask, "same"))
        if who % 10 == 7:
            await asyncio.sleep(0)
        said = await self.say_async(client, "same" if who % 2 else who)
        noise()
        self.tell("task", who, said)
        if who % 5 == 0:
            async with self.alock:
                answer = (await aclient.post(f"{self.url}/ask", json={"who": "same"})).json()
                self.tell("alock", who, answer["answer"])
        return who, said

    async def main(self) -> None:
        self.alock = asyncio.Lock()
        loop = asyncio.get_running_loop()
        kinds = [self.locked, self.limited, self.produces, self.consumes]
        kinds += [self.loops, self.nests, self.pooled]
        async with (
            openai.AsyncOpenAI(
                base_url=f"{self.url}/v1", api_key="test", max_retries=0, timeout=60
            ) as client,
            httpx.AsyncClient(timeout=60) as aclient,
        ):
            threads = [
                threading.Thread(target=self.hands_over, args=(who, loop, client))
                if who % 8 == 7
                else threading.Thread(target=kinds[who % 8], args=(who,))
                for who in range(self.threads)
            ]
            for thread in threads:
                thread.start()
            waiting = {
                asyncio.create_task(self.one_task(client, aclient, who)) for who in range(self.tasks)
            }
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:  # a set: iterated in the order of its hashes
                    self.tell("done", task.result())
            for thread in set(threads):
                await asyncio.to_thread(thread.join)

    def run(self) -> list[Any]:
        with self.http, self.chat:
            asyncio.run(self.main())
        return self.seen


def mixed(url: str, tasks: int = TASKS, threads: int = THREADS) -> list[Any]:
    """``threads`` is a multiple of 8."""
    return Mixed(url, tasks, threads).run()
