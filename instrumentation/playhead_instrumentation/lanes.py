"""Lanes: the deterministic name of a thread or task, and what carries it along.

A lane is its parent's lane plus the name of the function that was started and its count there:
``main``, ``main/fetch.2``. The same program names its lanes the same way in every execution, whatever
the order in which they run. The hooks give every task, thread and executor job a lane of its own, and
hand threads and executor jobs the OTel context of whoever started them.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import inspect
import sys
import threading
import weakref
from asyncio import _get_running_loop as running_loop  # pyright: ignore[reportPrivateUsage, reportUnknownVariableType]
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import Context, ContextVar, Token
from types import CodeType, ModuleType
from typing import Any, Final, Protocol, cast

from opentelemetry import context as otel_context

from playhead_instrumentation.patches import PATCHES, required
from playhead_semconv.facts import Delivery, digest_of

OWN_THREADS = "playhead-"
"""How the names of playhead's own threads begin: they have no lane."""

WRAPPERS = ("TaskGroup._run_wrapped_task", "TaskHandle._run_coro", "_run_coro")
"""Coroutines of anyio that hide the function they run; the task's name tells it."""


class Lane:
    """Who asks. Its counters live as long as it does."""

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
        """``of_request``: it is the root of a request that came to the process."""
        self.name: Final = name
        self.parent: Final = parent
        self.of_request: Final[bool] = of_request or (parent is not None and parent.of_request)
        """Whether what it does is done for a request."""
        self.hash: Final = int.from_bytes(digest_of(name.encode())[:8]) >> 1
        """The lane on tape: 63 bits, so that it fits every database's integer."""
        self.declared_on = b""
        """The process instance on whose tape its name stands."""
        self.ended: Delivery | None = None
        """When the thread or job ended, where anything was recorded in it."""
        self._ordinals: dict[str, int] = {}
        self._spawned: dict[str, int] = {}

    def next_ordinal(self, kind: str) -> int:
        """Number of the next exchange of that kind in this lane, from 0."""
        ordinal = self._ordinals.get(kind, 0)
        self._ordinals[kind] = ordinal + 1
        return ordinal

    def child(self, function: str) -> Lane:
        """The lane of the next task or thread that runs ``function``; counted from 1."""
        count = self._spawned.get(function, 0) + 1
        self._spawned[function] = count
        return Lane(f"{self.name}/{function}.{count}", self)

    def counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """How many exchanges of each kind there were, and tasks and threads of each function."""
        return dict(self._ordinals), dict(self._spawned)

    def restart(self) -> None:
        """Count from the start again."""
        self._ordinals.clear()
        self._spawned.clear()

    def __repr__(self) -> str:
        return f"<Lane {self.name}>"


MAIN: Final = Lane("main")
"""The lane of the main thread."""

SHADOW: Final = Lane("shadow")
"""What a boundary starts while it does something for real: it does not happen at replay."""

GC: Final = Lane("gc")
"""What finalizers start: when they run is not the program's doing."""

_lane: ContextVar[Lane] = ContextVar("playhead_lane", default=MAIN)

_of_task: weakref.WeakKeyDictionary[Any, Lane] = weakref.WeakKeyDictionary()
"""Lanes of tasks that run in a context which the program gave them and may share."""


_of_job: weakref.WeakKeyDictionary[Future[Any], Lane] = weakref.WeakKeyDictionary()
"""Lanes of the jobs of executors."""


_job: ContextVar[Lane | None] = ContextVar("playhead_job", default=None)
"""The job in which a context was made."""


class _Here(threading.local):
    job: Lane | None = None
    """The job that runs in this thread."""


_here = _Here()


def current() -> Lane:
    """The lane that runs now."""
    lane = _lane.get()
    job = _here.job
    if job is not None and lane is not SHADOW and lane is not GC and _job.get() is not job:
        # What runs in a context of whoever started the job is the job's, but in an event loop.
        if running_loop() is None:
            return job
    if _of_task and lane is not SHADOW:
        try:
            task = asyncio.current_task()
        except RuntimeError:
            return lane
        if task is not None:
            return _of_task.get(task, lane)
    return lane


def _reset(token: Token[Lane]) -> None:
    try:
        _lane.reset(token)
    except ValueError:
        return  # a coroutine that was thrown away is closed in another context than it ran in


class Shadow:
    """Context manager: what is started inside counts in no lane of the program. Not reentrant."""

    __slots__ = ("_token",)

    def __enter__(self) -> None:
        self._token = _lane.set(SHADOW)

    def __exit__(self, *_: object) -> None:
        _reset(self._token)


class Watch(Protocol):
    """Who wants to know which threads wait for the world outside."""

    def leaves(self) -> None:
        """This thread begins to wait for it."""
        ...

    def returns(self) -> None:
        """It has what it waited for, and is about to wait at the gate."""
        ...

    def calls_back(self, place: int) -> None:
        """A thread waits for it no longer: this one, which has its turn, has seen to that."""
        ...

    def goes_on(self) -> None:
        """This thread was called back, and runs when it is its turn."""
        ...


_watch: Watch | None = None


def on_outside(watch: Watch | None) -> None:
    """Have ``watch`` told when a thread begins and ends to wait for the world outside."""
    global _watch
    _watch = watch


class Outside(Shadow):
    """A `Shadow` in which this thread blocks until something comes from the world outside.

    To be followed by a turn at the gate, or by `resume`. Not in a coroutine, whose thread does other
    things meanwhile.
    """

    __slots__ = ("_place",)

    def __enter__(self) -> None:
        super().__enter__()
        self._place = threading.get_ident()
        if _watch is not None:
            _watch.leaves()

    def __exit__(self, *problem: object) -> None:
        if _watch is not None:
            _watch.returns()
        super().__exit__(*problem)

    def call_back(self) -> None:
        """What it waits for does not come: another thread of the program has ended that."""
        if _watch is not None:
            _watch.calls_back(self._place)


def resume() -> None:
    """Go on after an `Outside` in which nothing came, without a turn at the gate."""
    if _watch is not None:
        _watch.goes_on()


class In:
    """Context manager: run in ``lane``. Not reentrant."""

    __slots__ = ("_lane", "_token")

    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __enter__(self) -> None:
        self._token = _lane.set(self._lane)

    def __exit__(self, *_: object) -> None:
        _reset(self._token)


class Entered(In):
    """An `In` for a task or thread that somebody else has started. Not reentrant."""

    __slots__ = ("_before", "_task")

    def __enter__(self) -> None:
        self._task = _task_with_lane()
        if self._task is not None:
            self._before = _of_task[self._task]
            _of_task[self._task] = self._lane
        super().__enter__()

    def __exit__(self, *problem: object) -> None:
        super().__exit__(*problem)
        if self._task is not None:
            _of_task[self._task] = self._before


def _task_with_lane() -> Any:
    """The task that runs, where its lane does not follow from its context."""
    try:
        task = asyncio.current_task() if _of_task else None
    except RuntimeError:
        return None
    return task if task in _of_task else None


of_requests: weakref.WeakSet[Any] = weakref.WeakSet()
"""Tasks that were started for a request."""


_on_end: Callable[[Lane], None] | None = None


def on_end(told: Callable[[Lane], None] | None) -> None:
    """Have ``told`` called when a thread or an executor's job ends, in it, before anybody can know."""
    global _on_end
    _on_end = told


def _ended(lane: Lane) -> None:
    told = _on_end
    if told is not None:
        told(lane)


class _Carried:
    """A function that runs in a lane, under the OTel context of whoever handed it over."""

    __slots__ = ("_context", "_function", "_is_job", "_lane")

    def __init__(self, lane: Lane, function: Callable[..., Any], *, is_job: bool) -> None:
        """``is_job``: it may run in other contexts, which are not its own."""
        self._lane = lane
        self._function = function
        self._is_job = is_job
        self._context = otel_context.get_current()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        lane = _lane.set(self._lane)
        job, outer_job = _job.set(self._lane), _here.job
        if self._is_job:
            _here.job = self._lane
        outer = otel_context.attach(self._context)
        try:
            return self._function(*args, **kwargs)
        finally:
            _ended(self._lane)
            otel_context.detach(outer)
            _here.job = outer_job
            _job.reset(job)
            _lane.reset(lane)


def name_of(function: object) -> str:
    """The name under which a function counts: its qualified name within its outermost function."""
    while isinstance(function, functools.partial):
        partial = cast("functools.partial[Any]", function)
        called: list[Any] = [partial.func, *partial.args]
        while len(called) > 1 and _is_through_context(called[0]):
            del called[0]
        function = called[0]
    name = getattr(function, "__qualname__", None) or type(function).__qualname__
    return str(name).rpartition("<locals>.")[2].replace("/", "_")


def _is_through_context(function: object) -> bool:
    return isinstance(getattr(function, "__self__", None), Context)


def _name_of_task(coroutine: Any, name: str | None) -> str:
    own = name_of(coroutine)
    return name.replace("/", "_") if name and own in WRAPPERS else own


def _lane_of_task(coroutine: Any, name: str | None) -> Lane:
    parent = current()
    if parent is SHADOW or parent is GC:
        return parent
    if type(coroutine).__name__.startswith("async_generator") or _finalizing():
        return GC
    return parent.child(_name_of_task(coroutine, name))


def _finalizing() -> bool:
    """Whether the caller of ``create_task`` is a finalizer."""
    frame = sys._getframe(3)  # pyright: ignore[reportPrivateUsage]
    for _ in range(2):
        code: CodeType = frame.f_code
        if code.co_name == "__del__":
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def install() -> None:
    """Count from the start. Hook tasks, threads and executors; what cannot be is among `PATCHES`."""
    for lane in (MAIN, SHADOW, GC):
        lane.restart()
    PATCHES.attempt("asyncio", _hook_asyncio)
    PATCHES.attempt("threading", _hook_threads)
    PATCHES.attempt("concurrent.futures", _hook_executor)
    PATCHES.when_imported("uvloop", "uvloop", _hook_uvloop)


def _hook_asyncio() -> None:
    _hook_loop(asyncio.BaseEventLoop)
    original = asyncio.as_completed
    if hasattr(original, "__playhead__"):
        return
    # It starts its coroutines in the order of a set, which differs between executions.
    ordered = _generated(original) if inspect.isgeneratorfunction(original) else _iterated(original)
    ordered.__dict__["__playhead__"] = True
    asyncio.as_completed = asyncio.tasks.as_completed = ordered


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
        return awaitables  # a mistake that as_completed itself reports
    return [asyncio.ensure_future(one) for one in dict.fromkeys(awaitables)]


def _hook_uvloop(uvloop: ModuleType) -> None:
    _hook_loop(required(uvloop, "Loop"))


def _hook_loop(owner: Any) -> None:
    original = required(owner, "create_task")
    if hasattr(original, "__playhead__"):
        return

    @functools.wraps(original)
    def create_task(loop: Any, coro: Any, **kwargs: Any) -> Any:
        lane = _lane_of_task(coro, kwargs.get("name"))
        # The task copies the context in which it is made, whatever task factory makes it.
        token = _lane.set(lane)
        try:
            task = original(loop, coro, **kwargs)
        finally:
            _lane.reset(token)
        if kwargs.get("context") is not None:
            _of_task[task] = lane
        if lane.of_request:
            of_requests.add(task)
        return task

    create_task.__dict__["__playhead__"] = True
    owner.create_task = create_task


def _hook_threads() -> None:
    thread: Any = threading.Thread
    start, run = required(thread, "start"), required(thread, "_bootstrap_inner")
    if hasattr(start, "__playhead__"):
        return

    @functools.wraps(start)
    def start_in_lane(self: threading.Thread) -> None:
        if has_lane(self) and not hasattr(self, "_playhead_carried"):
            function: Any = getattr(self, "_target", None)
            through = _is_through_context(function)
            if through:
                function = functools.partial(function, *getattr(self, "_args", ()))
            parent = current()
            name = name_of(function or type(self).run)
            lane = parent if parent in (SHADOW, GC) else parent.child(name)
            self.__dict__["_playhead_carried"] = _Carried(lane, run, is_job=through)
        start(self)

    @functools.wraps(run)
    def run_in_lane(self: threading.Thread) -> None:
        carried: _Carried | None = self.__dict__.pop("_playhead_carried", None)
        (carried or run)(self)

    start_in_lane.__dict__["__playhead__"] = True
    thread.start = start_in_lane
    thread._bootstrap_inner = run_in_lane


def has_lane(thread: threading.Thread) -> bool:
    """Whether a thread has a lane of its own."""
    if thread.name.startswith(OWN_THREADS):
        return False
    # Whether an executor needs another worker depends on timing; its jobs have lanes, not its threads.
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", "") != "concurrent.futures.thread"


def _hook_executor() -> None:
    owner: Any = ThreadPoolExecutor
    submit = required(owner, "submit")
    if hasattr(submit, "__playhead__"):
        return

    @functools.wraps(submit)
    def submit_in_lane(self: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        parent = current()
        function = functools.partial(fn, *args) if _is_through_context(fn) else fn
        lane = parent if parent in (SHADOW, GC) else parent.child(name_of(function))
        future = submit(self, _Carried(lane, fn, is_job=True), *args, **kwargs)
        _of_job[future] = lane
        return future

    submit_in_lane.__dict__["__playhead__"] = True
    owner.submit = submit_in_lane
    futures: Any = concurrent.futures
    as_completed = required(futures, "as_completed")

    @functools.wraps(as_completed)
    def as_completed_in_order(fs: Any, timeout: float | None = None) -> Any:
        # Those that are done already it yields in the order of a set; here in that of their ends.
        until = None if timeout is None else _waited_s() + timeout
        jobs = list(dict.fromkeys(fs))
        while done := sorted((job for job in jobs if job.done()), key=_end_of):
            yield from done
            jobs = [job for job in jobs if job not in set(done)]
        left = None if until is None else max(0.0, until - _waited_s())
        yield from as_completed(jobs, left)

    futures.as_completed = as_completed_in_order


def _waited_s() -> float:
    # The standard library's clock for waits: what is left of a timeout is left at replay too.
    return vars(threading)["_time"]()


def _end_of(job: Future[Any]) -> tuple[int, int]:
    lane = _of_job.get(job)
    ended = None if lane is None else lane.ended
    return (0, 0) if ended is None else (ended.batch, ended.order)
