"""What a recording numbers: one batch a loop tick, one a delivery in a thread without a loop."""

import asyncio

from playhead_core.facts import Delivery
from playhead_instrumentation.recorder.gate import OpenGate
from playhead_instrumentation.scheduler.gates.strict import StrictGate


def test_in_a_thread_every_delivery_is_a_batch():
    gate = OpenGate()
    deliveries = [gate.arrive(None).wait() for _ in range(3)]
    assert [(one.batch, one.order) for one in deliveries if one] == [(1, 0), (2, 0), (3, 0)]


def test_in_a_loop_a_tick_is_a_batch():
    gate = OpenGate()
    seen = []

    async def enter(name, ticks):
        for _ in range(ticks):
            await asyncio.sleep(0)
        at = await gate.arrive(None)
        again = await gate.arrive(None)
        seen.append((name, at.batch, at.order, again.batch, again.order))

    async def main():
        await asyncio.gather(enter("a", 0), enter("b", 0), enter("c", 5), enter("d", 5))

    asyncio.run(main())
    assert seen == [("a", 1, 0, 1, 1), ("b", 1, 2, 1, 3), ("c", 2, 0, 2, 1), ("d", 2, 2, 2, 3)]


def test_a_loop_that_is_closed_is_forgotten():
    gate = OpenGate()

    async def main():
        await gate.arrive(None)

    asyncio.run(main())
    asyncio.run(main())
    assert len(gate._ticks) <= 2
    assert gate.arrive(None).wait().order == 0


def test_a_strict_gate_that_is_closed_calls_back_at_once():
    gate = StrictGate()
    gate.close()
    seen = []

    async def main():
        gate.arrive(None).call(asyncio.get_running_loop(), seen.append)
        return list(seen)

    assert asyncio.run(main()) == [Delivery(1, 0)]
