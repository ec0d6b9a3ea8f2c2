"""Results of jobs come to a loop as they came in the recording, whichever job is done first now."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
import uvloop
from support.tapes.sessions import record, replay

from playhead_core.process.interpreter_threads import Bell
from playhead_core.settings import Settings
from playhead_semconv import events as e

STRICT = Settings(quiet=True, level="strict")

RUNS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


def in_turn(run, last, given_up=()):
    """Two jobs, of which ``last`` is done when the result of the other has come. Who came, in order."""
    bell, came = Bell(), []

    def job(number):
        if number == last:
            bell.wait(60)

    async def ask(number, pool):
        asked = asyncio.get_running_loop().run_in_executor(pool, job, number)
        if number in given_up:
            asked.cancel()
        else:
            await asked
            came.append(number)
        bell.ring()

    async def main():
        with ThreadPoolExecutor(2) as pool:
            await asyncio.gather(ask(0, pool), ask(1, pool))

    run(main())
    return came


def jobs_of(tape):
    return [fact for fact in tape.named(e.PLAYHEAD_WAKE) if fact.exchange.kind == "job"]


@RUNS
def test_the_order_of_results_is_that_of_the_recording(run):
    for last in (0, 1):
        came, tape = record(lambda last=last: in_turn(run, last))
        assert came == [1 - last, last]
        assert len(jobs_of(tape)) == 2
        again, now = replay(lambda: in_turn(run, None), tape)
        assert again == came
        assert not list(now.named(e.PLAYHEAD_MOVED))


@RUNS
def test_a_result_that_nobody_waits_for_is_no_delivery(run):
    came, tape = record(lambda: in_turn(run, None, given_up=(0,)))
    assert came == [1]
    assert len(jobs_of(tape)) == 1
    again, now = replay(lambda: in_turn(run, None, given_up=(0,)), tape)
    assert again == came
    assert len(jobs_of(now)) == 1


def test_where_one_thread_runs_at_a_time_results_need_no_place():
    came, tape = record(lambda: in_turn(asyncio.run, None), settings=STRICT)
    assert jobs_of(tape) == []
    assert replay(lambda: in_turn(asyncio.run, None), tape)[0] == came
