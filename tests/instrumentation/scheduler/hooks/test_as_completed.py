"""``as_completed`` starts and yields in an order that is the same in every execution."""

import asyncio

import pytest

from playhead_instrumentation.patching import lane_hooks, lanes
from playhead_instrumentation.patching.patches import Patches
from playhead_instrumentation.scheduler.hooks import completion_order


@pytest.fixture(autouse=True)
def hooked():
    lanes.restart()
    lane_hooks.hook_asyncio(asyncio.base_events)
    patches = Patches()
    completion_order.watch(patches, None)
    yield
    patches.undo()


def test_as_completed_starts_in_the_order_given():
    started = []

    async def start(number):
        started.append((number, lanes.current().name))
        return number

    async def main():
        return [await one for one in asyncio.as_completed([start(number) for number in range(10)])]

    assert asyncio.run(main()) == list(range(10))
    assert started == [(number, f"main/main.1/start.{number + 1}") for number in range(10)]


def test_as_completed_reports_a_mistake_itself():
    async def main():
        with pytest.raises(TypeError):
            list(asyncio.as_completed(asyncio.get_running_loop().create_future()))

    asyncio.run(main())
