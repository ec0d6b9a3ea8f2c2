"""Lanes: the deterministic names of threads and tasks, and their propagation.

A lane is its parent's lane plus the name of the started function and its count there: ``main``,
``main/fetch.2``. A program names its lanes the same way in every execution, whatever the order in which
they run. `lane_hooks` gives every task, thread and executor job a lane of its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
import weakref
from asyncio import _get_running_loop as running_loop  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
from collections.abc import Callable, Generator
from contextvars import ContextVar, Token
from typing import Any, Final

from opentelemetry import context as otel_context

from playhead_core.facts import Delivery, digest_of
from playhead_core.process.interpreter_threads import own_thread
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.patching.unpatched import REAL

OWN_THREADS = "playhead-"
"""Prefix of the names of playhead's own threads, which have no lane."""


def in_own_thread() -> bool:
    """Whether the current thread is one of playhead's own."""
    return bool(own_thread()) or threading.current_thread().name.startswith(OWN_THREADS)


class _Counts:
    """Counters by name. Two threads never get the same number for one name."""

    __slots__ = ("_counters", "_latest", "_start")

    def __init__(self, start: int) -> None:
        self._start = start
        self._counters: dict[str, itertools.count[int]] = {}
        self._latest: dict[str, int] = {}

    def next(self, name: str) -> int:
        """The next number of ``name``."""
        counter = self._counters.get(name)
        if counter is None:
            # Several threads that get here at once all get the first counter.
            counter = self._counters.setdefault(name, itertools.count(self._start))
        number = self._latest[name] = next(counter)
        return number

    def latest(self) -> dict[str, int]:
        """The last number given for each name."""
        return dict(self._latest)

    def clear(self) -> None:
        """Restart all counts."""
        self._counters.clear()
        self._latest.clear()


class Lane:
    """A lane, which makes requests. It holds its counters."""

    __slots__ = (
        "__weakref__",
        "_ordinals",
        "_spawned",
        "declared_on",
        "ended",
        "hash",
        "name",
        "of_request",
        "parent",
    )

    def __init__(self, name: str, parent: Lane | None = None, *, of_request: bool = False) -> None:
        """``of_request``: the lane is the root of an inbound request."""
        self.name: Final = name
        self.parent: Final = parent
        self.of_request: Final[bool] = of_request or (parent is not None and parent.of_request)
        """Whether the lane works for an inbound request."""
        self.hash: Final = int.from_bytes(digest_of(name.encode())[:8]) >> 1
        """The lane on the tape: 63 bits, so that it fits the integer type of every database."""
        self.declared_on = b""
        """The process instance on whose tape the lane is declared; empty: none."""
        self.ended: Delivery | None = None
        """The end of the thread or job, if anything was recorded in it."""
        self._ordinals = _Counts(0)
        self._spawned = _Counts(1)

    def next_ordinal(self, kind: str) -> int:
        """Number of the next exchange of this kind in this lane, from 0."""
        return self._ordinals.next(kind)

    def child(self, function: str) -> Lane:
        """The lane of the next task or thread that runs ``function``; counted from 1."""
        return Lane(f"{self.name}/{function}.{self._spawned.next(function)}", self)

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Last ordinal of each kind of exchange, and number of tasks and threads of each function."""
        return self._ordinals.latest(), self._spawned.latest()

    def restart(self) -> None:
        """Restart all counts."""
        self._ordinals.clear()
        self._spawned.clear()

    def __repr__(self) -> str:
        return f"<Lane {self.name}>"


MAIN: Final = Lane("main")
"""The lane of the main thread."""

UNRECORDED: Final = Lane("shadow")
"""The lane of work that a boundary starts for a live exchange; it does not occur in a replay."""

GC: Final = Lane("gc")
"""The lane of work that finalizers start; the program does not control when they run."""

SIGNALS: Final = Lane("signals")
"""The lane above those of the handlers of signals, which run in the middle of anything."""

_lane: ContextVar[Lane] = ContextVar("playhead_lane", default=MAIN)

of_task: weakref.WeakKeyDictionary[Any, Lane] = weakref.WeakKeyDictionary()
"""Lanes of tasks in a context that the program provides and may share."""


_job: ContextVar[Lane | None] = ContextVar("playhead_job", default=None)
"""The job in which a context was created."""


class _Here(threading.local):
    job: Lane | None = None
    """The job that runs in this thread."""


_here: Any = _Here()


class _HereInGreenlets:
    """The same where a thread runs greenlets, each with a job of its own."""

    def __init__(self, current: Callable[[], Any]) -> None:
        self._current = current
        self._jobs: weakref.WeakKeyDictionary[Any, Lane | None] = weakref.WeakKeyDictionary()

    @property
    def job(self) -> Lane | None:
        return self._jobs.get(self._current())

    @job.setter
    def job(self, job: Lane | None) -> None:
        self._jobs[self._current()] = job


def among_greenlets() -> bool:
    """Whether the threads of this process run greenlets."""
    return isinstance(_here, _HereInGreenlets)


def follow_greenlets(current: Callable[[], Any]) -> None:
    """Tell jobs apart by greenlet from now on. ``current``: returns that which runs."""
    global _here
    _here = _HereInGreenlets(current)


def current() -> Lane:
    """The current lane."""
    lane = _lane.get()
    job = _here.job
    if job is not None and lane is not UNRECORDED and lane is not GC and _job.get() is not job:
        # Code in a context of the job's starter belongs to the job, except in an event loop.
        if running_loop() is None:
            return job
    if of_task and lane is not UNRECORDED:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return lane
        if task is not None:
            return of_task.get(task, lane)
    return lane


def reset(token: Token[Lane]) -> None:
    """Restore the lane from before the call of `entered` that gave ``token``."""
    try:
        _lane.reset(token)
    except ValueError:
        return  # a discarded coroutine is closed in another context than the one it ran in


class Shadow:
    """Context manager: work started inside counts in no lane of the program. Not reentrant."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _lane.set(UNRECORDED)

    def __exit__(self, *_: object) -> None:
        reset(self._token)


class Outside(Shadow):
    """A `Shadow` in which this thread blocks until something comes from the outside world.

    Wait for a permit at the gate afterwards, or call `resume`. Do not use it in a coroutine, whose
    thread does other work in the meantime.
    """

    __slots__ = ("_place",)

    def __enter__(self) -> None:
        self._token = _lane.set(UNRECORDED)
        self._place = threading.get_ident()
        if RUNTIME.outside is not None:
            RUNTIME.outside.leaves()

    def __exit__(self, *_: object) -> None:
        if RUNTIME.outside is not None:
            RUNTIME.outside.returns()
        try:  # as `reset`: each chunk of a stream gets here
            _lane.reset(self._token)
        except ValueError:
            return

    def call_back(self) -> None:
        """End the wait from another thread of the program: the awaited event will not come."""
        if RUNTIME.outside is not None:
            RUNTIME.outside.calls_back(self._place)


def resume() -> None:
    """Continue after an `Outside` in which nothing came, without a permit at the gate."""
    if RUNTIME.outside is not None:
        RUNTIME.outside.goes_on()


class In:
    """Context manager: run in ``lane``. Not reentrant."""

    __slots__ = ("_lane", "_token")

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __enter__(self) -> None:
        self._token = _lane.set(self._lane)

    def __exit__(self, *_: object) -> None:
        reset(self._token)


class Entered(In):
    """An `In` for a task or thread that was started elsewhere. Not reentrant."""

    __slots__ = ("_before", "_task")

    def __enter__(self) -> None:
        self._task = _task_with_lane()
        if self._task is not None:
            self._before = of_task[self._task]
            of_task[self._task] = self._lane
        super().__enter__()

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        if self._task is not None:
            of_task[self._task] = self._before


def _task_with_lane() -> Any:
    """The current task, if its lane does not follow from its context; else None."""
    try:
        task = asyncio.current_task() if of_task else None
    except RuntimeError:
        return None
    return task if task in of_task else None


of_requests: weakref.WeakSet[Any] = weakref.WeakSet()
"""Tasks that were started for a request."""


class Carried:
    """A lane and the OTel context of its starter, for a thread or a job of an executor."""

    __slots__ = ("_context", "_is_job", "_lane")

    def __init__(self, lane: Lane, *, is_job: bool) -> None:
        """``is_job``: it may run in contexts that are not its own."""
        self._lane = lane
        self._is_job = is_job
        self._context = otel_context.get_current()

    def run(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call ``function`` in the lane and return its result."""
        lane = _lane.set(self._lane)
        job, outer_job = _job.set(self._lane), _here.job
        if self._is_job:
            _here.job = self._lane
        outer = otel_context.attach(self._context)
        try:
            return function(*args, **kwargs)
        finally:
            ended = RUNTIME.lane_ended
            if ended is not None:
                ended(self._lane)
            otel_context.detach(outer)
            _here.job = outer_job
            _job.reset(job)
            _lane.reset(lane)


def entered(lane: Lane) -> Token[Lane]:
    """Make ``lane`` the current lane of this context until `reset`."""
    return _lane.set(lane)


def restart() -> None:
    """Restart the counts of the fixed lanes when a recording begins."""
    for lane in (MAIN, UNRECORDED, GC, SIGNALS):
        lane.restart()


OWN_WAIT_S = 30.0
"""Seconds until the thread counts as continuing by itself; longer than any wait of playhead."""


@contextlib.contextmanager
def own_wait() -> Generator[None]:
    """Context in which playhead itself waits in a thread of the program.

    Other threads of the program run meanwhile, and nothing goes on the tape.
    """
    permits = RUNTIME.permits
    with Shadow():
        if permits is not None:
            permits.waits(REAL.now_s() + OWN_WAIT_S)
        try:
            yield
        finally:
            if permits is not None:
                permits.goes_on()
