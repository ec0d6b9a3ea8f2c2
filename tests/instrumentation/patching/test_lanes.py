"""Lanes: the same names in every execution, and the OTel context where a thread or job runs."""

import asyncio
import concurrent.futures.thread
import contextvars
import functools
import gc
import threading
from concurrent.futures import ThreadPoolExecutor

import anyio
import pytest
from opentelemetry import context as otel_context

from playhead_instrumentation.patching import lane_hooks, lanes
from playhead_instrumentation.patching.patches import PATCHES

KEY = otel_context.create_key("test")


@pytest.fixture(autouse=True)
def hooked():
    lanes.restart()
    lane_hooks.hook_asyncio(asyncio.base_events)
    lane_hooks.hook_threads(PATCHES)
    lane_hooks.hook_executor(concurrent.futures.thread)
    token = otel_context.attach(otel_context.set_value(KEY, "carried"))
    yield
    otel_context.detach(token)


def here():
    return lanes.current().name, otel_context.get_value(KEY)


async def where():
    return here()


async def nested():
    return [here(), *await asyncio.gather(where(), where())]


def test_tasks():
    async def main():
        return [await asyncio.create_task(where()), *await asyncio.gather(nested(), where())]

    assert asyncio.run(main()) == [
        ("main/main.1/where.1", "carried"),
        [
            ("main/main.1/nested.1", "carried"),
            ("main/main.1/nested.1/where.1", "carried"),
            ("main/main.1/nested.1/where.2", "carried"),
        ],
        ("main/main.1/where.2", "carried"),
    ]


def test_task_group_and_runner():
    async def main():
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(where()) for _ in range(3)]
        return [task.result()[0] for task in tasks]

    with asyncio.Runner() as runner:
        assert runner.run(main()) == [f"main/main.1/where.{number}" for number in (1, 2, 3)]
        assert runner.run(main()) == [f"main/main.2/where.{number}" for number in (1, 2, 3)]


def test_tasks_of_anyio_are_named_by_what_they_run():
    found = []

    async def fetch():
        found.append(here()[0])

    async def main():
        async with anyio.create_task_group() as group:
            group.start_soon(fetch)
            group.start_soon(fetch)

    asyncio.run(main())
    assert sorted(name.rpartition("fetch")[2] for name in found) == [".1", ".2"]


def test_tasks_that_share_a_context_have_lanes_of_their_own():
    async def late():
        await asyncio.sleep(0)
        return lanes.current().name

    async def main():
        shared = contextvars.copy_context()
        tasks = [asyncio.create_task(late(), context=shared) for _ in range(2)]
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == ["main/main.1/late.1", "main/main.1/late.2"]


def test_a_task_factory_of_the_program_is_left_as_it_is():
    made = []

    def factory(loop, coro):
        made.append(coro.__qualname__.rpartition(".")[2])
        return asyncio.Task(coro, loop=loop)

    async def main():
        asyncio.get_running_loop().set_task_factory(factory)
        return (await asyncio.create_task(where()))[0]

    assert asyncio.run(main()) == "main/main.1/where.1"
    assert "where" in made


def test_threads():
    found = {}

    def work(number):
        found[number] = here()
        inner = threading.Thread(target=deeper, args=(number,))
        inner.start()
        inner.join()

    def deeper(number):
        found[number, "inner"] = here()

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {
        0: ("main/work.1", "carried"),
        1: ("main/work.2", "carried"),
        (0, "inner"): ("main/work.1/deeper.1", "carried"),
        (1, "inner"): ("main/work.2/deeper.1", "carried"),
    }


def test_threads_get_no_other_context():
    own: contextvars.ContextVar[str] = contextvars.ContextVar("own", default="nothing")
    own.set("the starter's")
    found = []
    thread = threading.Thread(target=lambda: found.append(own.get()))
    thread.start()
    thread.join()
    assert found == ["nothing"]


def test_a_thread_of_a_class_of_its_own():
    class Worker(threading.Thread):
        def run(self):
            self.found = here()

    worker = Worker()
    worker.start()
    worker.join()
    assert worker.found == ("main/Worker.run.1", "carried")


def test_jobs_of_an_executor():
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(here) for _ in range(3)]
        jobs.append(pool.submit(functools.partial(lambda _: here(), 1)))
        assert [job.result() for job in jobs] == [
            ("main/here.1", "carried"),
            ("main/here.2", "carried"),
            ("main/here.3", "carried"),
            ("main/<lambda>.1", "carried"),
        ]
        assert list(pool.map(lambda _: lanes.current().name, range(2))) == [
            "main/<lambda>.2",
            "main/<lambda>.3",
        ]


def test_to_thread_and_run_in_executor():
    async def main():
        loop = asyncio.get_running_loop()
        return [
            (await asyncio.to_thread(here))[0],
            (await asyncio.to_thread(here))[0],
            (await loop.run_in_executor(None, here))[0],
        ]

    assert asyncio.run(main()) == [f"main/main.1/here.{number}" for number in (1, 2, 3)]


def test_what_runs_in_a_context_of_whoever_started_it_is_the_jobs():
    def within():
        own = contextvars.copy_context()
        return [lanes.current().name, own.run(lambda: lanes.current().name)]

    async def main():
        made = contextvars.copy_context()
        return [
            await asyncio.to_thread(made.run, within),
            await asyncio.to_thread(lambda: made.run(within)),
            await asyncio.to_thread(made.run, asyncio.run, where()),
        ]

    assert asyncio.run(main()) == [
        ["main/main.1/within.1"] * 2,
        ["main/main.1/<lambda>.1"] * 2,
        ("main/main.1/run.1/where.1", "carried"),
    ]
    made, found = contextvars.copy_context(), []
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(made.run, within).result() == ["main/within.1"] * 2
        assert pool.submit(made.run, functools.partial(within)).result() == ["main/within.2"] * 2
    thread = threading.Thread(target=made.run, args=(lambda: found.append(within()),))
    thread.start()
    thread.join()
    assert found == [["main/<lambda>.1"] * 2]


def test_what_a_boundary_starts_counts_nowhere():
    async def main():
        with lanes.Shadow():
            inside = await asyncio.create_task(where())
        return inside[0], (await asyncio.create_task(where()))[0]

    assert asyncio.run(main()) == ("shadow", "main/main.1/where.1")


def test_what_a_finalizer_starts_counts_nowhere():
    found = []

    class Client:
        def __del__(self):
            asyncio.get_running_loop().create_task(self.close())

        async def close(self):
            pass

        async def aclose(self):
            found.append(lanes.current().name)

    class Quiet(Client):
        def __del__(self):
            asyncio.get_running_loop().create_task(note())

    async def note():
        found.append(lanes.current().name)

    async def main():
        client = Quiet()
        del client
        gc.collect()
        await asyncio.sleep(0)
        return (await asyncio.create_task(where()))[0]

    assert asyncio.run(main()) == "main/main.1/where.1"
    assert found == ["gc"]


def test_the_hash_is_that_of_the_name_and_fits_a_signed_integer():
    lane = lanes.Lane("main/fetch.2")
    assert lane.hash == lanes.Lane("main/fetch.2").hash != lanes.Lane("main/fetch.3").hash
    assert 0 <= lane.hash < 2**63
