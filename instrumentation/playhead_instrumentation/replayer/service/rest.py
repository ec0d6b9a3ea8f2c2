"""Tasks that requests have started and not awaited."""

from __future__ import annotations

import asyncio

from playhead_instrumentation.patching.lanes import Shadow, of_requests
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.recorder.driver import Driver

LOOK_S = 0.01
"""Seconds between two checks for such tasks."""

PATIENCE_S = 5.0
"""Seconds to wait for them after the tape holds nothing more for them."""


async def rest(driver: Driver) -> None:
    """Wait for the tasks that requests have left behind."""
    mine = asyncio.current_task()
    until_s = REAL.now_s() + PATIENCE_S
    with Shadow():
        while any(not task.done() for task in of_requests if task is not mine):
            if REAL.now_s() >= until_s:
                return
            if driver.gate.expects():
                until_s = REAL.now_s() + PATIENCE_S
            await asyncio.sleep(LOOK_S)
