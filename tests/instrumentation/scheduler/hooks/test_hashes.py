"""Sets of tasks, futures and threads have the same order in every execution."""

import abc
import asyncio
import concurrent.futures
import copy
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.tapes.sessions import recording

COUNT = 50


async def nothing(number):
    return number


def tasks():
    async def main():
        return [task.result() for task in (await asyncio.wait(made()))[0]]

    def made():
        return {asyncio.create_task(nothing(number)) for number in range(COUNT)}

    return asyncio.run(main())


def tasks_of_a_factory():
    async def main():
        loop = asyncio.get_running_loop()
        loop.set_task_factory(lambda loop, coro, **given: asyncio.Task(coro, loop=loop, **given))
        made = {loop.create_task(nothing(number)) for number in range(COUNT)}
        await asyncio.wait(made)
        return [task.result() for task in made]

    return asyncio.run(main())


def tasks_made_by_hand():
    async def main():
        made = {asyncio.Task(nothing(number)) for number in range(COUNT)}
        await asyncio.wait(made)
        return [task.result() for task in made]

    return asyncio.run(main())


def futures():
    async def main():
        made = [asyncio.get_running_loop().create_future() for _ in range(COUNT)]
        return [made.index(one) for one in set(made)]

    return asyncio.run(main())


def jobs():
    with ThreadPoolExecutor(3) as pool:
        made = [pool.submit(int, number) for number in range(COUNT)]
        done, _ = concurrent.futures.wait(made)
        return [job.result() for job in done]


def threads():
    made = [threading.Thread(target=int) for _ in range(COUNT)]
    return [made.index(one) for one in set(made)]


@pytest.mark.parametrize(
    "program",
    [tasks, tasks_of_a_factory, tasks_made_by_hand, futures, jobs, threads],
    ids=lambda one: one.__name__,
)
def test_a_set_has_the_same_order_again(program):
    kept, orders = [], []
    for _ in range(3):
        kept.append([bytearray(1000) for _ in range(100)])  # so that addresses differ
        with recording():
            orders.append(program())
    assert orders[0] == orders[1] == orders[2]
    assert sorted(map(str, orders[0])) != list(map(str, orders[0]))


def test_tasks_of_uvloop_have_the_same_order_again(tmp_path):
    """It takes the types when it is imported, which is after a recording has begun."""
    source = tmp_path / "program.py"
    source.write_text(
        "import asyncio, os\n"
        "from support.tapes.sessions import recording\n"
        "async def nothing(number):\n"
        "    return number\n"
        "async def main():\n"
        "    made = {asyncio.create_task(nothing(number)) for number in range(50)}\n"
        "    made |= {asyncio.gather(nothing(100 + number)) for number in range(50)}\n"
        "    await asyncio.wait(made)\n"
        "    print([task.result() for task in made])\n"
        "with recording():\n"
        "    import uvloop\n"
        "    kept = [bytearray(os.urandom(1)[0]) for _ in range(1000)]\n"
        "    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:\n"
        "        runner.run(main())\n"
    )
    tests = Path(__file__).parents[3]
    orders = [
        subprocess.run(
            [sys.executable, source],
            env={**os.environ, "PYTHONPATH": str(tests)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for _ in range(2)
    ]
    assert orders[0] == orders[1]
    assert len(orders[0]) > 100


def test_types_are_what_they_were():
    with recording():

        class Own(asyncio.Future, abc.ABC):
            pass

        async def main():
            loop = asyncio.get_running_loop()
            task, future = asyncio.create_task(nothing(1)), loop.create_future()
            assert type(task) is asyncio.Task
            assert type(future) is asyncio.Future
            assert isinstance(task, asyncio.Future)
            assert isinstance(asyncio.gather(task), asyncio.Future)
            assert not isinstance(future, asyncio.Task)
            assert not isinstance(task, Own)
            assert isinstance(Own(loop=loop), asyncio.Future)
            assert issubclass(asyncio.Task, asyncio.Future)
            assert asyncio.isfuture(future)
            assert repr(future) == "<Future pending>"
            assert repr(task).startswith("<Task pending name='Task-")
            assert task == copy.copy([task])[0]
            assert task != future
            assert {task: 1}[task] == 1
            await task

        asyncio.run(main())
