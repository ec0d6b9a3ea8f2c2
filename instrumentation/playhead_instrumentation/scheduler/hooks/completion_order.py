"""The order in which completed tasks and jobs reach the program.

``as_completed`` of asyncio and of executors yields in the order of a set, which differs from run to run.
Here it yields in the order in which the tasks were passed or the jobs ended.

Results of jobs reach an event loop through `run_in_executor` and `asyncio.to_thread`. If threads are not
held back, chance decides which of several jobs ends first, and with it which task continues first. So
such a result is an arrival with a `playhead.wake` fact of the kind ``job``, named by the lane that waits
for it. A recording in which one thread runs at a time needs none. Jobs of a request have none either:
the request is replayed without the other requests, whose arrivals stand between its own.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import heapq
import inspect
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, Final

from playhead_core.facts import Delivery
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.lane_hooks import of_job
from playhead_instrumentation.patching.patches import PATCHES, Patches, required
from playhead_instrumentation.scheduler.timer_ends import Wake, opened
from playhead_instrumentation.session.session import Session


def watch(patches: Patches, session: Session) -> None:
    """Patch ``asyncio.as_completed`` and ``concurrent.futures.as_completed``."""
    patches.attempt("asyncio.as_completed", functools.partial(_patch_asyncio, patches))
    patches.attempt("concurrent.futures.as_completed", functools.partial(_patch_futures, patches))


def _patch_asyncio(patches: Patches) -> None:
    original: Any = required(asyncio, "as_completed")
    if hasattr(original, "__playhead__"):
        return
    ordered = _generated(original) if inspect.isgeneratorfunction(original) else _iterated(original)
    ordered.__dict__["__playhead__"] = True
    for module in (asyncio, asyncio.tasks):
        patches.put(module, "as_completed", ordered)


def _generated(original: Any) -> Any:
    @functools.wraps(original)
    def as_completed(fs: Any, *, timeout: float | None = None) -> Any:
        yield from original(_in_order(fs), timeout=timeout)

    return as_completed


def _iterated(original: Any) -> Any:
    @functools.wraps(original)
    def as_completed(fs: Any, *, timeout: float | None = None) -> Any:
        return original(_in_order(fs), timeout=timeout)

    return as_completed


def _in_order(awaitables: Any) -> Any:
    if asyncio.isfuture(awaitables) or asyncio.iscoroutine(awaitables):
        return awaitables  # invalid; as_completed itself reports it
    return [asyncio.ensure_future(one) for one in dict.fromkeys(awaitables)]


def _patch_futures(patches: Patches) -> None:
    futures: Any = concurrent.futures
    as_completed = required(futures, "as_completed")
    required(threading, "_time")
    if hasattr(as_completed, "__playhead__"):
        return

    def found(waiting: dict[Any, None], timeout: float | None) -> Iterator[Any]:
        # The original yields jobs that are already done in set order; here, in the order they ended.
        until = None if timeout is None else _waited_s() + timeout
        while done := sorted((job for job in waiting if job.done()), key=_end_of):
            yield from done
        left = None if until is None else max(0.0, until - _waited_s())
        yield from as_completed(list(waiting), left)

    @functools.wraps(as_completed)
    def as_completed_in_order(fs: Any, timeout: float | None = None) -> Any:
        waiting = dict.fromkeys(fs)
        overtaken = _Overtaken(waiting)
        for job in found(waiting, timeout):
            for one in (*overtaken.before(job), job):
                if one in waiting:
                    del waiting[one]
                    yield one

    as_completed_in_order.__dict__["__playhead__"] = True
    patches.put(futures, "as_completed", as_completed_in_order)


class _Overtaken:
    """Jobs whose thread was overtaken between the end of the job and its result.

    A replay lets the ends in one after the other, so there it is the order of the ends that counts.
    """

    def __init__(self, jobs: Iterable[Any]) -> None:
        self._pending = deque(jobs)
        self._running: list[Any] = []
        self._ended: list[tuple[tuple[int, int], int, Any]] = []
        """A heap, by end."""

    def before(self, job: Any) -> Iterator[Any]:
        """The jobs that ended before ``job``, which is done, in the order of their ends."""
        while self._pending and (self._pending[0].running() or self._pending[0].done()):
            self._running.append(self._pending.popleft())
        running, self._running = self._running, []
        for one in running:
            done = one.done()  # before the end is read, which comes first
            if (end := _end_of(one)) != _UNENDED:
                heapq.heappush(self._ended, (end, id(one), one))
            elif not done:
                self._running.append(one)
        while self._ended and self._ended[0][0] < _end_of(job):
            earlier = heapq.heappop(self._ended)[2]
            concurrent.futures.wait([earlier])
            yield earlier


def _waited_s() -> float:
    # The standard library's clock for waits, so that a replay computes the same remaining timeout.
    return vars(threading)["_time"]()


_UNENDED: Final = (0, 0)


def _end_of(job: Any) -> tuple[int, int]:
    lane = of_job.get(job)
    ended = None if lane is None else lane.ended
    return _UNENDED if ended is None else (ended.batch, ended.order)


KEPT: Final = "_playhead_job"
"""Attribute of the future of a job that a loop waits for: its `Wake`."""

_futures: Final[Any] = asyncio.futures


def watch_jobs(patches: Patches, session: object = None) -> None:
    """Patch how a future of asyncio follows one of an executor."""
    patches.attempt("asyncio.wrap_future", _hook_jobs)


def _hook_jobs() -> None:
    for name in ("_chain_future", "_copy_future_state"):
        required(_futures, name)
    PATCHES.around(_futures, "_chain_future", _chain_jobs)
    PATCHES.around(_futures, "_copy_future_state", _copy_job)


def _chain_jobs(chain: Any, source: Any, destination: Any) -> None:
    if isinstance(source, concurrent.futures.Future) and asyncio.isfuture(destination):
        wake = None if lanes.current().of_request else opened("job")
        if wake is not None:
            vars(source)[KEPT] = wake
    chain(source, destination)


def _copy_job(copy: Any, source: Any, destination: Any) -> None:
    wake: Wake | None = getattr(source, "__dict__", {}).pop(KEPT, None)
    if wake is None or not wake.in_order:
        return copy(source, destination)
    if destination.cancelled():
        return wake.called_off()

    def called(at: Delivery | None) -> None:
        wake.over(at)
        copy(source, destination)

    wake.permit().call(destination.get_loop(), called)
