"""A strict recording holds nobody for long, whatever the program does."""

import asyncio
import os
import threading
import time

import httpx
import httpx2
import pytest
from support.servers.scripted import Gate, ScriptedServer, json_reply
from support.tapes.sessions import MemorySink, record, recording, replay

from playhead_core.settings import Settings
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.scheduler import idle_loops
from playhead_instrumentation.scheduler.ledger import ThreadLedger
from playhead_semconv import attributes as a
from playhead_semconv import events as e

STRICT = Settings(quiet=True, level="strict")
COUNT = 10


@pytest.fixture
def server():
    with ScriptedServer() as running:
        running.on(lambda _: True, json_reply({"ok": True}), repeat=True)
        yield running


def ask(url):
    with httpx.Client(timeout=60) as client:
        return [client.get(url).json()["ok"] for _ in range(COUNT)]


def beside(block, unblock, url):
    """Ask while another thread is in ``block``; what was answered, and how long it took."""
    inside = threading.Event()

    def other():
        inside.set()
        block()

    thread = threading.Thread(target=other)
    thread.start()
    assert inside.wait(60)
    began = time.monotonic()
    answers = ask(url)
    took = time.monotonic() - began
    unblock()
    thread.join()
    return answers, took


@pytest.fixture
def losses(monkeypatch):
    """Threads that were found stuck, each time by name and how."""
    found, loses = [], ThreadLedger._loses

    def told(self, place, how):
        found.append((threading._active[place].name, how))
        loses(self, place, how)

    monkeypatch.setattr(ThreadLedger, "_loses", told)
    return found


def of_others(found):
    return [one for one in found if one[0] != threading.current_thread().name]


def test_a_thread_that_reads_a_pipe_holds_up_nobody(server, losses):
    ends = os.pipe()
    (answers, _), tape = record(
        lambda: beside(lambda: os.read(ends[0], 1), lambda: os.write(ends[1], b"x"), server.url),
        settings=STRICT,
    )
    assert answers == [True] * COUNT
    for end in ends:
        os.close(end)
    # It was waited for once, for all requests, and has lost its permit, which the tape tells.
    [(name, how)] = of_others(losses)
    assert name.endswith("(other)") and how == "blocks"
    told = [tuple(fact.attributes.values()) for fact in tape.named(e.PLAYHEAD_TURN_LOST)]
    assert of_others(told) == [(name, how)]


def test_a_blocking_call_in_c_holds_up_nobody(server, losses):
    lock = threading.Lock()
    lock.acquire()
    (answers, _), _ = record(
        lambda: beside(lambda: lock.acquire(timeout=60), lock.release, server.url), settings=STRICT
    )
    assert answers == [True] * COUNT
    assert len(of_others(losses)) == 1


@pytest.mark.acceptance  # it looks at the clock
def test_a_thread_that_computes_holds_up_others_for_less_and_less(server):
    over = threading.Event()

    def compute():
        while not over.is_set():
            sum(range(1000))

    (answers, took), _ = record(lambda: beside(compute, over.set, server.url), settings=STRICT)
    assert answers == [True] * COUNT
    assert took < 3.0


def test_a_task_that_spins_holds_up_nobody(server):
    """At replay neither: the answers are the same, in the same order."""

    def program():
        async def main():
            spinning = True

            async def spin():
                while spinning:
                    await asyncio.sleep(0)

            async with httpx2.AsyncClient(timeout=60) as client:
                task = asyncio.create_task(spin())
                answers = [(await client.get(server.url)).json()["ok"] for _ in range(COUNT)]
                spinning = False
                await task
            return answers

        return asyncio.run(main())

    answers, tape = record(program, settings=STRICT)
    assert list(tape.named(e.PLAYHEAD_TURN_LOST)) == []
    assert answers == [True] * COUNT
    assert replay(program, tape)[0] == answers


def test_a_loop_that_blocks_holds_up_no_thread(server):
    """A synchronous request in a task: the thread waits for the world, and others go on."""
    gate = Gate()

    def program():
        seen = []

        def thread():
            seen.extend(ask(server.url))
            gate.open()

        async def main():
            other = threading.Thread(target=thread)
            other.start()
            answer = httpx.get(f"{slow.url}/slow", timeout=60).json()
            other.join()
            return answer, seen

        return asyncio.run(main())

    with ScriptedServer() as slow:
        slow.on("/slow", json_reply({"slow": True}, before=gate))
        (answer, seen), _ = record(program, settings=STRICT)
    assert (answer, seen) == ({"slow": True}, [True] * COUNT)


def test_a_lock_that_is_held_over_a_request_stalls_nobody(server):
    def program():
        lock, seen = threading.Lock(), []

        def one(number):
            with lock:
                seen.append((number, httpx.get(server.url, timeout=60).json()["ok"]))

        threads = [threading.Thread(target=one, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(seen)

    seen, tape = record(program, settings=STRICT)
    assert seen == [(number, True) for number in range(4)]
    assert list(tape.named(e.PLAYHEAD_TURN_LOST)) == []


def test_an_interrupt_at_the_gate_leaves_the_gate_as_it_was(server):
    """A task that is cancelled while it waits for its permit gives its place up."""

    def program():
        async def main():
            async with httpx.AsyncClient(timeout=60) as client:
                tasks = [asyncio.create_task(client.get(server.url)) for _ in range(COUNT)]
                await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
                for task in tasks[::2]:
                    task.cancel()
                ended = await asyncio.gather(*tasks, return_exceptions=True)
                return [type(one).__name__ for one in ended], (await client.get(server.url)).json()

        return asyncio.run(main())

    seen, tape = record(program, settings=STRICT)
    assert seen[1] == {"ok": True}
    assert replay(program, tape)[0] == seen


def test_the_child_of_a_fork_records_on(server):
    """Whoever waited in the parent does not wait in the child."""
    read, write = os.pipe()

    def program():
        busy = threading.Event()
        thread = threading.Thread(target=busy.wait)
        thread.start()
        child = os.fork()
        if child == 0:
            try:
                os.write(write, b"%d" % sum(ask(server.url)))
            finally:
                os._exit(0)
        busy.set()
        thread.join()
        os.waitpid(child, 0)
        return os.read(read, 10)

    assert record(program, settings=STRICT)[0] == b"%d" % COUNT


def test_on_a_loop_that_does_not_say_when_it_is_idle_the_recording_is_causal(server, monkeypatch):
    async def main():
        async with httpx.AsyncClient(timeout=60) as client:
            return (await client.get(server.url)).json()["ok"]

    monkeypatch.setattr(idle_loops, "can_be_watched", lambda loop: False)
    with recording(settings=STRICT) as sink:
        with asyncio.Runner() as runner:
            assert runner.run(main()) is True
    assert sink.named(e.PLAYHEAD_PROCESS_EXIT)[0].attributes[a.PLAYHEAD_RUN_LEVEL] == "causal"
    assert all(fact.delivery for fact in sink.named(e.PLAYHEAD_EXCHANGE_RESPONSE))


def test_a_causal_recording_hooks_nothing():
    """It is as cheap as it was: no gate that holds, no ledger."""
    from playhead_instrumentation.bootstrap.compose import open_driver
    from playhead_instrumentation.recorder.gate import OpenGate
    from playhead_instrumentation.recorder.options import DriverOptions
    from playhead_instrumentation.scheduler.hooks import waits

    settings = Settings(quiet=True)
    driver = open_driver(DriverOptions(MemorySink(), Redactor.of_process(settings)))
    assert type(driver.gate) is OpenGate
    assert driver.gate.level == "causal"
    assert waits._ledger is None
