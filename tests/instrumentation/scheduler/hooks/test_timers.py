"""What time ended in a strict recording ends again in every replay, at the same place, in no time."""

import asyncio
import itertools
import queue
import random
import select
import sys
import threading
import time

import httpx
import pytest
from support.observed.timing import PROGRAMS, retries
from support.servers.scripted import Gate, ScriptedServer, json_reply
from support.tapes.sessions import record, replay

from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.scheduler.gates import tape as tape_gate
from playhead_replay.report.compare import compare
from playhead_semconv import attributes as a
from playhead_semconv import events as e

# A thread that dies of an error may die of it in every replay, too.
pytestmark = pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")

STRICT = Settings(quiet=True, level="strict")


def level(tape):
    facts = [f for f in tape.facts() if f.name in (e.PLAYHEAD_PROCESS_START, e.PLAYHEAD_PROCESS_EXIT)]
    return [f.attributes[a.PLAYHEAD_RUN_LEVEL] for f in facts if a.PLAYHEAD_RUN_LEVEL in f.attributes]


@pytest.fixture
def server():
    """Answers every request with the number of the answer, each after a while of its own."""
    numbers = itertools.count()
    chance = random.Random()

    def answer(request):
        select.select([], [], [], chance.random() * 0.01)
        return json_reply({"answer": next(numbers)})

    with ScriptedServer() as running:
        running.on(lambda _: True, answer, repeat=True)
        yield running


@pytest.fixture(autouse=True)
def hasty():
    """Threads take permits as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.fixture(
    params=[pytest.param(3, id="3"), pytest.param(20, id="20", marks=pytest.mark.acceptance)]
)
def times(request):
    return request.param


def check(program, tape, recorded, times):
    assert level(tape) == ["strict"]
    for _ in range(times):
        replayed, now = replay(program, tape)
        assert replayed == recorded
        assert [fact for fact in now.facts() if fact.name == e.PLAYHEAD_MOVED] == []
        fidelities = {str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()}
        assert fidelities == {"exact"}


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_every_replay_is_the_recording(program, server, times):
    recorded, tape = record(lambda: program(server.url), settings=STRICT)
    server.close()
    check(lambda: program(server.url), tape, recorded, times)


def test_a_storm_of_retries_is_the_recording(times):
    """429 with Retry-After: what the SDK sleeps takes no time at replay."""
    completion = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}
        ],
    }
    asked, chance = itertools.count(-7), random.Random()

    def answer(request):
        if 0 <= next(asked) < 12:
            after = {"retry-after-ms": str(chance.randrange(5, 40))}
            return json_reply({"error": {"message": "slow down"}}, status=429, headers=after)
        return json_reply(completion)

    with ScriptedServer() as running:
        running.on(lambda _: True, answer, repeat=True)
        retries(running.url)  # what the SDK asks of the system, it asks once per process
        recorded, tape = record(lambda: retries(running.url), settings=STRICT)
    assert len(recorded) == 7
    wakes = [fact for fact in tape.facts() if fact.name == e.PLAYHEAD_WAKE]
    assert len(wakes) >= 12
    check(lambda: retries(running.url), tape, recorded, times)


def sleeper(sleep_s):
    """Sleeps in a task, in a thread, in a timeout, and waits for what does not come."""

    def program():
        seen = []

        def thread():
            time.sleep(sleep_s)
            seen.append("thread")
            seen.append(threading.Event().wait(sleep_s))

        async def main():
            other = threading.Thread(target=thread)
            other.start()
            await asyncio.sleep(sleep_s)
            seen.append("task")
            try:
                async with asyncio.timeout(sleep_s):
                    await asyncio.Event().wait()
            except TimeoutError:
                seen.append("timeout")
            await asyncio.to_thread(other.join)

        asyncio.run(main())
        return seen

    return program


@pytest.mark.parametrize("level", ["strict", "causal"])
def test_a_replay_takes_none_of_the_time_that_was_slept(level):
    """The same program, that would sleep for an hour, and does not."""
    settings = Settings(quiet=True, level=level)
    recorded, tape = record(sleeper(0.01), settings=settings)
    assert sorted(map(str, recorded)) == ["False", "task", "thread", "timeout"]
    replayed, now = replay(sleeper(3600.0), tape)
    if level == "strict":
        assert replayed == recorded
    assert sorted(map(str, replayed)) == sorted(map(str, recorded))
    assert [fact for fact in now.facts() if fact.name == e.PLAYHEAD_MOVED] == []


@pytest.mark.parametrize("level", ["strict", "causal"])
def test_what_was_not_over_when_it_was_recorded_is_not_over_at_replay(level):
    """However slow the replay is."""

    def program(limit_s, slow_s):
        async def one(event):
            try:
                async with asyncio.timeout(limit_s):
                    await asyncio.sleep(0.001)
                    await asyncio.wait_for(event.wait(), limit_s)
                    return "in time"
            except TimeoutError:
                return "late"

        async def main():
            event = asyncio.Event()
            tasks = [asyncio.create_task(one(event)) for _ in range(5)]
            told = threading.Event()
            threading.Thread(target=told.set).start()
            in_time = await asyncio.to_thread(told.wait, limit_s)
            select.select([], [], [], slow_s)
            await asyncio.sleep(0.002)
            event.set()
            return in_time, await asyncio.gather(*tasks)

        return asyncio.run(main())

    recorded, tape = record(lambda: program(60.0, 0.0), settings=Settings(quiet=True, level=level))
    assert recorded == (True, ["in time"] * 5)
    for _ in range(3):
        assert replay(lambda: program(0.1, 0.2), tape)[0] == recorded


def test_what_sleeps_otherwise_than_recorded_is_said(server):
    """A replay that sleeps less than the tape: somebody goes out of order, and is told."""

    def program(sleeps):
        def sleep():
            for _ in range(sleeps):
                time.sleep(0.001)

        other = threading.Thread(target=sleep)
        other.start()
        other.join()
        return httpx.post(server.url, json={}, timeout=60).json()["answer"]

    recorded, tape = record(lambda: program(3), settings=STRICT)
    replayed, now = replay(lambda: program(1), tape)
    assert replayed == recorded
    assert len([fact for fact in now.facts() if fact.name == e.PLAYHEAD_MOVED]) == 1
    report = compare(tape, now)
    assert [one.kind for one in report.divergences] == ["moved"]


@pytest.mark.parametrize("level", ["strict", "causal"])
def test_a_thread_gives_up_waiting_for_what_does_not_come(level):
    def program():
        seen = []

        def takes():
            try:
                queue.Queue().get(timeout=0.01)
            except BaseException as error:
                seen.append(type(error))

        other = threading.Thread(target=takes)
        other.start()
        other.join()
        return seen

    recorded, tape = record(program, settings=Settings(quiet=True, level=level))
    assert recorded == [queue.Empty]
    assert replay(program, tape)[0] == recorded


def test_a_loop_that_spins_waits_for_a_thread_that_blocks_longer_at_replay(server):
    """It has spun for as many ticks when the thread is answered."""

    def program(slow_s):
        answers = []

        def asks():
            select.select([], [], [], slow_s)
            answers.append(httpx.post(server.url, json={}, timeout=60).json()["answer"])

        async def main():
            other = threading.Thread(target=asks)
            other.start()
            ticks = 0
            while not answers:
                await asyncio.sleep(0)
                ticks += 1
            other.join()
            return ticks, answers

        return asyncio.run(main())

    recorded, tape = record(lambda: program(0.0), settings=STRICT)
    assert list(tape.named(e.PLAYHEAD_SPIN))
    assert replay(lambda: program(2 * tape_gate.HOLD_S), tape)[0] == recorded


def test_a_daemon_is_not_refused_while_somebody_sleeps():
    """What it waits for is not on the tape; the process may end before it would have come."""

    def program():
        refused = []

        def asks():
            try:
                httpx.get(running.url, timeout=60)
            except Exception as error:
                refused.append(type(error).__name__)

        threading.Thread(target=asks, daemon=True).start()
        time.sleep(0.05)
        return list(refused)

    with ScriptedServer() as running:
        running.on(lambda _: True, json_reply({}, before=Gate()))
        recorded, tape = record(program, settings=STRICT)
    asked = [fact for fact in tape.facts() if fact.name != e.PLAYHEAD_WAKE]
    assert recorded == []
    assert replay(program, MemoryTape(asked, tape.instance))[0] == recorded


def test_a_thread_is_dead_after_its_last_turn_however_long_its_end_takes():
    ends_late_s = 0.0
    own = threading.local()

    class EndsLate:
        def __del__(self):
            select.select([], [], [], ends_late_s)

    def work():
        own.last = EndsLate()  # goes when the interpreter takes the thread down

    def program():
        thread = threading.Thread(target=work)
        thread.start()
        looks = 0
        while thread.is_alive():
            time.sleep(0.001)
            looks += 1
        return looks

    recorded, tape = record(program, settings=STRICT)
    ends_late_s = 0.3
    assert replay(program, tape)[0] == recorded
