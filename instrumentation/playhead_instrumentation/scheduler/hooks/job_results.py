"""Results of jobs that come from an executor to an event loop: `run_in_executor`, `asyncio.to_thread`.

Where nothing holds threads back, chance decides which of several jobs is done first, and with it which
task goes on first. So what comes to a loop is a delivery and a `playhead.wake` fact of the kind ``job``,
named by the lane that waits for it. A recording in which one thread runs at a time needs none. What
serves a request has none either: it is replayed without the other requests, whose deliveries stand
between its own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
from typing import Any, Final

from playhead_core.facts import Delivery
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import PATCHES, Patches, required
from playhead_instrumentation.scheduler.timer_ends import Wake, opened

KEPT: Final = "_playhead_job"
"""Attribute of the future of a job that a loop waits for: its `Wake`."""

_futures: Final[Any] = asyncio.futures


def watch(patches: Patches, session: object = None) -> None:
    """Patch how a future of asyncio follows one of an executor."""
    patches.attempt("asyncio.wrap_future", _hook)


def _hook() -> None:
    for name in ("_chain_future", "_copy_future_state"):
        required(_futures, name)
    PATCHES.around(_futures, "_chain_future", _chained)
    PATCHES.around(_futures, "_copy_future_state", _copied)


def _chained(chain: Any, source: Any, destination: Any) -> None:
    if isinstance(source, concurrent.futures.Future) and asyncio.isfuture(destination):
        wake = None if lanes.current().of_request else opened("job")
        if wake is not None:
            vars(source)[KEPT] = wake
    chain(source, destination)


def _copied(copy: Any, source: Any, destination: Any) -> None:
    wake: Wake | None = getattr(source, "__dict__", {}).pop(KEPT, None)
    if wake is None or not wake.in_order:
        return copy(source, destination)
    if destination.cancelled():
        return wake.called_off()

    def called(at: Delivery | None) -> None:
        wake.over(at)
        copy(source, destination)

    wake.turn().call(destination.get_loop(), called)
