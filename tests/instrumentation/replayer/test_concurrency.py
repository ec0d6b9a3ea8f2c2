"""Twenty identical requests, twenty different answers: each gets its own, in the same order."""

import asyncio
import concurrent.futures
import itertools
import random
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import httpx2
import pytest
from support.servers.scripted import Gate, ScriptedServer, json_reply, sse_reply
from support.tapes.sessions import record, replay

from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.scheduler.gates import tape as tape_gate
from playhead_semconv import attributes as a

COUNT = 20


@pytest.fixture
def server():
    """Answers every request with the number of the answer, each after a while of its own."""
    numbers = itertools.count()
    chance = random.Random(4)

    def answer(request):
        number = next(numbers)
        time.sleep(chance.random() * 0.03)
        return json_reply({"answer": number})

    with ScriptedServer() as running:
        running.on(lambda _: True, answer, repeat=True)
        yield running


def ask(client, url):
    return client.post(url, json={"the": "same"}).json()["answer"]


def fidelities(now):
    return {str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()}


def gathered(url):
    order = []

    async def one(client, number):
        answer = (await client.post(url, json={"the": "same"})).json()["answer"]
        order.append((number, answer))
        return answer

    async def main():
        async with httpx2.AsyncClient() as client:
            answers = await asyncio.gather(*(one(client, number) for number in range(COUNT)))
        return answers, order

    return asyncio.run(main())


def first_come(url):
    async def one(client, number):
        return number, (await client.post(url, json={"the": "same"})).json()["answer"]

    async def main():
        async with httpx2.AsyncClient() as client:
            calls = [one(client, number) for number in range(COUNT)]
            return [await done for done in asyncio.as_completed(calls)]

    return asyncio.run(main())


def pooled(url):
    with httpx.Client() as client, ThreadPoolExecutor(COUNT) as pool:
        return list(pool.map(lambda _: ask(client, url), range(COUNT)))


def pooled_first_come(url):
    with httpx.Client() as client, ThreadPoolExecutor(COUNT) as pool:

        def one(number):
            return number, ask(client, url)

        return [
            job.result()
            for job in concurrent.futures.as_completed([pool.submit(one, n) for n in range(COUNT)])
        ]


def threads_with_a_lock(url):
    lock, found = threading.Lock(), []

    with httpx.Client() as client:

        def one(number):
            with lock:
                found.append((number, ask(client, url)))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return sorted(found)


def threads_in_a_loop(url):
    def one(number):
        return number, httpx.post(url, json={"the": "same"}).json()["answer"]

    async def main():
        return await asyncio.gather(*(asyncio.to_thread(one, number) for number in range(5)))

    return asyncio.run(main())


@pytest.mark.parametrize(
    "program",
    [gathered, first_come, pooled, pooled_first_come, threads_with_a_lock, threads_in_a_loop],
    ids=lambda one: one.__name__,
)
def test_every_replay_is_the_recording(program, server):
    recorded, tape = record(lambda: program(server.url))
    server.close()
    for _ in range(5):
        replayed, now = replay(lambda: program(server.url), tape)
        assert replayed == recorded
        assert fidelities(now) == {"exact"}


def test_a_thread_overtaken_before_it_sets_its_result(monkeypatch):
    """Jobs are yielded in the order of their ends, not in that in which threads come to say so."""

    def program():
        with httpx.Client() as client, ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(ask, client, f"{running.url}/{name}") for name in ("slow", "fast")]
            second.append(jobs[1])
            submitted.set()
            return [job.result() for job in concurrent.futures.as_completed(jobs)]

    def set_result(job, result):
        if live and result == "slow":
            ended.open()
            submitted.wait()
            second[0].exception()  # as if the machine ran the other thread first
        return unhurried(job, result)

    second, submitted, ended, live = [], threading.Event(), Gate(), True
    unhurried = concurrent.futures.Future.set_result
    monkeypatch.setattr(concurrent.futures.Future, "set_result", set_result)
    with ScriptedServer() as running:
        running.on("/slow", json_reply({"answer": "slow"}))
        running.on("/fast", json_reply({"answer": "fast"}, before=ended))
        recorded, tape = record(program)
    live = False
    assert replay(program, tape)[0] == recorded


def test_chunks_of_two_streams_interleave_as_recorded():
    def program():
        seen = []

        async def read(client, name):
            async with client.stream("POST", f"{url}/{name}") as response:
                async for chunk in response.aiter_raw():
                    seen.append((name, chunk))
                    arrived[name].set() if len(seen) < 100 else None

        async def main():
            async with httpx2.AsyncClient() as client:
                await asyncio.gather(read(client, "a"), read(client, "b"))
            return seen

        arrived = {"a": threading.Event(), "b": threading.Event()}
        if live:
            conductor = threading.Thread(target=conduct, args=(arrived,), name="playhead-test")
            conductor.start()
        return asyncio.run(main())

    gates = [Gate() for _ in range(6)]

    def conduct(arrived):
        gates[3].wait_reached()
        for number in (3, 0, 1, 4, 5, 2):
            gates[number].wait_reached()
            gates[number].open()

    live = True
    with ScriptedServer() as running:
        url = running.url
        for name, mine in (("a", gates[:3]), ("b", gates[3:])):
            parts = [
                part
                for n, gate in enumerate(mine)
                for part in (gate, b"%d of %s\n" % (n, name.encode()))
            ]
            running.on(f"/{name}", sse_reply(parts))
        recorded, tape = record(program)
    live = False
    assert len(recorded) == 6
    for _ in range(5):
        assert replay(program, tape)[0] == recorded


def test_a_race_that_was_lost_is_lost_again():
    """The slower of two requests is cancelled; at replay it does not come either."""

    def program():
        async def one(client, path):
            return (await client.get(f"{url}/{path}")).json()

        async def main():
            async with httpx2.AsyncClient() as client:
                tasks = [asyncio.create_task(one(client, path)) for path in ("fast", "slow")]
                done, pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in pending:
                    task.cancel()
                return [task.result() for task in done], len(pending)

        return asyncio.run(main())

    with ScriptedServer() as running:
        url = running.url
        running.on("/fast", json_reply({"fast": True}))
        running.on("/slow", json_reply({"slow": True}, before=Gate()))
        recorded, tape = record(program)
    assert recorded == ([{"fast": True}], 1)
    assert replay(program, tape)[0] == recorded


def test_a_program_that_asks_less_is_not_held_up_and_says_moved(server, monkeypatch):
    """What a replay never asks for would come first: whoever waits goes out of order, and is told."""

    def program():
        with httpx.Client() as client, ThreadPoolExecutor(4) as pool:

            def one(number):
                return client.post(f"{server.url}/{number}", json={}).json()["answer"]

            return [job.result() for job in [pool.submit(one, number) for number in skip]]

    skip = range(4)
    recorded, tape = record(program)
    gate = None

    class Watched(tape_gate.TapeGate):
        def __init__(self, *arguments, **options):
            nonlocal gate
            super().__init__(*arguments, **options)
            gate = self

    monkeypatch.setattr("playhead_instrumentation.replayer.opening.TapeGate", Watched)
    last = max(range(4), key=lambda number: recorded[number])
    skip = [last]
    assert replay(program, tape)[0] == [recorded[last]]
    assert gate is not None and gate.moved >= 1


def test_a_program_that_spins_until_it_is_answered():
    def program():
        async def main():
            async with httpx2.AsyncClient() as client:
                task = asyncio.create_task(client.get(url))
                while not task.done():
                    await asyncio.sleep(0)
                return task.result().json()

        return asyncio.run(main())

    with ScriptedServer() as running:
        url = running.url
        running.script([json_reply({"a": 1})])
        recorded, tape = record(program)
    assert replay(program, tape)[0] == recorded == {"a": 1}


def test_what_was_not_answered_when_the_tape_ends_is_refused():
    """A tape cut short, as a process leaves it that is killed while it waits."""
    with ScriptedServer() as running:
        url = running.url
        running.script([json_reply({"a": 1}), json_reply({"b": 2})])
        _, tape = record(lambda: [httpx.get(url).json(), httpx.get(url).json()])
    second = [fact.seq for fact in tape.facts() if fact.name == "playhead.exchange.request"][1]
    cut = MemoryTape([fact for fact in tape.facts() if fact.seq <= second], tape.instance)

    def program():
        first = httpx.get(url).json()
        with pytest.raises(Exception) as caught:
            httpx.get(url)
        return first, type(caught.value).__name__

    assert replay(program, cut)[0] == ({"a": 1}, "ExchangeExhausted")
