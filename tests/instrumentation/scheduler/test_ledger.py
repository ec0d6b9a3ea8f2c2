"""Who counts as waiting, and who as stuck: what a gate takes for idle is idle."""

import asyncio
import select
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import uvloop
from support.servers.scripted import Gate, ScriptedServer, json_reply
from support.tapes.sessions import record, recording, replay

from playhead_core.settings import Settings
from playhead_instrumentation.scheduler.ledger import ThreadLedger
from playhead_instrumentation.scheduler.stuck import Watched
from playhead_instrumentation.session import session
from playhead_semconv import events as e

STRICT = Settings(quiet=True, level="strict")


class Lingers:
    """A job whose worker takes a while to let go of it."""

    def __call__(self):
        return "done"

    def __del__(self):
        select.select([], [], [], 0.2)


def test_who_shuts_an_executor_down_is_not_passed_by_others():
    """Its workers end by themselves: meanwhile not everything is idle, though no other thread runs."""
    gate = Gate()

    def program(url):
        seen = []

        def first():
            with ThreadPoolExecutor(1) as pool:
                seen.append(pool.submit(Lingers()).result())
            seen.append(httpx.get(f"{url}/first", timeout=60).json())
            gate.open()

        def second():
            seen.append(httpx.get(f"{url}/second", timeout=60).json())

        threads = [threading.Thread(target=one) for one in (second, first)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return seen

    with ScriptedServer() as server:
        server.on("/first", json_reply("first"))
        server.on("/second", json_reply("second", before=gate))
        seen, tape = record(lambda: program(server.url), settings=STRICT)
    assert seen == ["done", "first", "second"]
    replayed, now = replay(lambda: program(server.url), tape)
    assert replayed == seen
    assert not [fact for fact in now.facts() if fact.name == e.PLAYHEAD_MOVED]


@pytest.mark.parametrize("run", [asyncio.run, uvloop.run])
def test_a_loop_that_has_ended_is_not_idle(run):
    """Its thread runs on."""

    async def main():
        await asyncio.sleep(0)

    with recording(settings=STRICT):
        run(main())
        running = session.current()
        assert running is not None
        assert not running.driver.gate.ledger.is_idle()


def test_a_loop_whose_callback_waits_is_not_idle():
    """uvloop calls it without a word. What it has to do next waits for that callback."""
    ledger = ThreadLedger(threading.RLock(), lambda: None, hold_s=1, computing_hold_s=1)
    ledger.runs_loop(object(), lambda: True)
    ledger.selecting(None)
    assert not ledger.is_idle()
    ledger.waits()
    assert ledger.is_idle()


def looked_at(does, hold_s=0.05, computing_hold_s=0.1):
    """How a thread that ``does`` something is found stuck by another, which looks every few ms."""
    over, begun = threading.Event(), threading.Event()

    def run():
        begun.set()
        while not over.is_set():
            does()

    thread = threading.Thread(target=run)
    thread.start()
    begun.wait()
    # A gate looks every few ms at its permits, and its clock stands still while the process does.
    ledger = ThreadLedger(
        threading.RLock(), lambda: None, hold_s=hold_s, computing_hold_s=computing_hold_s
    )
    watched, how = Watched(), None
    try:
        while how is None:
            over.wait(0.005)
            how = watched.stuck(thread.ident, ledger.patience_s(), hold_s, computing_hold_s)
    finally:
        over.set()
        thread.join()
    return how


@pytest.mark.parametrize(
    ("does", "how"),
    [
        (lambda: select.select([], [], [], 2), "blocks"),
        (lambda: select.select([], [], [], 0.03), "rests"),
        (lambda: sum(range(1000)), "computes"),
    ],
    ids=["blocks", "rests", "computes"],
)
def test_how_a_thread_is_stuck_is_told_by_its_processor_time(does, how):
    assert looked_at(does) == how


def test_who_waits_for_the_interpreter_does_not_block():
    """Several threads that compute share one interpreter: none of them stands still."""
    over = threading.Event()

    def compete():
        while not over.is_set():
            sum(range(1000))

    others = [threading.Thread(target=compete) for _ in range(8)]
    for other in others:
        other.start()
    try:
        assert looked_at(lambda: sum(range(1000))) == "computes"
    finally:
        over.set()
        for other in others:
            other.join()
