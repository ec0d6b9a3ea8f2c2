"""Hooks that give every task, thread and executor job a lane of its own.

Threads and jobs also get the OTel context of their starter; tasks have it anyway.
"""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import Context
from types import ModuleType
from typing import Any, Final, cast

from opentelemetry import context as otel_context

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching import lanes, layers
from playhead_instrumentation.patching import patches as patches
from playhead_instrumentation.patching.lanes import GC, OWN_THREADS, UNRECORDED, Carried, Lane
from playhead_instrumentation.patching.patches import INNER, PATCHES, Patches, required

log = Log(__name__)

WRAPPERS: Final = ("TaskGroup._run_wrapped_task", "TaskHandle._run_coro", "_run_coro")
"""Coroutines of anyio that hide the function they run; the name of the task has it."""

_BETWEEN: Final = frozenset((__file__, layers.__file__, patches.__file__))
"""Files whose frames are between ``create_task`` and its caller."""

of_job: Final[weakref.WeakKeyDictionary[Any, Lane]] = weakref.WeakKeyDictionary()
"""Lanes of the jobs of executors, by future."""


def name_of(function: object) -> str:
    """The name of a function for lanes: its qualified name within its outermost function."""
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
    parent = lanes.current()
    if parent is UNRECORDED or parent is GC:
        return parent
    if type(coroutine).__name__.startswith("async_generator") or _finalizing():
        return GC
    return parent.child(_name_of_task(coroutine, name))


def _finalizing() -> bool:
    """Whether the caller of ``create_task`` is a finalizer."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame.f_code.co_filename in _BETWEEN and frame.f_back is not None:
        frame = frame.f_back
    for _ in range(2):
        if frame.f_code.co_name == "__del__":
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def hook_asyncio(base_events: ModuleType) -> None:
    """Hook the tasks of asyncio's event loops."""
    PATCHES.around(required(base_events, "BaseEventLoop"), "create_task", _create_task)


def hook_uvloop(uvloop: ModuleType) -> None:
    """Hook the tasks of uvloop."""
    PATCHES.around(required(uvloop, "Loop"), "create_task", _create_task)


def _create_task(create_task: Any, loop: Any, coro: Any, **kwargs: Any) -> Any:
    lane = _lane_of_task(coro, kwargs.get("name"))
    # The task copies the context in which it is created, whichever task factory creates it.
    token = lanes.entered(lane)
    try:
        task = create_task(loop, coro, **kwargs)
    finally:
        lanes.reset(token)
    if kwargs.get("context") is not None:
        lanes.of_task[task] = lane
    if lane.of_request:
        lanes.of_requests.add(task)
    return task


def hook_threads(patches: Patches, session: object = None) -> None:
    """Hook threads."""
    patches.around(threading.Thread, "start", _start_thread, order=INNER)
    patches.around(threading.Thread, "_bootstrap_inner", _run_thread, order=INNER)


def _start_thread(start: Any, thread: threading.Thread) -> None:
    if has_lane(thread) and "_playhead_carried" not in thread.__dict__:
        function: Any = getattr(thread, "_target", None)
        through = _is_through_context(function)
        if through:
            function = functools.partial(function, *getattr(thread, "_args", ()))
        parent = lanes.current()
        name = name_of(function or type(thread).run)
        lane = parent if parent in (UNRECORDED, GC) else parent.child(name)
        thread.__dict__["_playhead_carried"] = Carried(lane, is_job=through)
    start(thread)


def _run_thread(run: Any, thread: threading.Thread) -> None:
    carried: Carried | None = thread.__dict__.pop("_playhead_carried", None)
    if carried is None:
        run(thread)
    else:
        carried.run(run, thread)


def hook_gevent(gevent: ModuleType) -> None:
    """Give each greenlet of gevent a lane."""
    start: Any = required(required(gevent, "Greenlet"), "add_spawn_callback")
    lanes.follow_greenlets(required(gevent, "getcurrent"))
    start(_enter_greenlet)


def _enter_greenlet(greenlet: Any) -> None:
    """Runs in the greenlet that starts another one. gevent passes no context on."""
    try:
        run = greenlet._run
        parent = lanes.current()
        alike = parent in (UNRECORDED, GC) or isinstance(
            getattr(run, "__self__", None), threading.Thread
        )
        lane = parent if alike else parent.child(name_of(run))
        context = greenlet.gr_context
        if context is None:
            context = greenlet.gr_context = Context()
        context.run(lanes.entered, lane)
        context.run(otel_context.attach, otel_context.get_current())
    except Exception:
        log.debug("playhead could not give a greenlet a lane", exc_info=True)


def has_lane(thread: threading.Thread) -> bool:
    """Whether a thread has a lane of its own."""
    if thread.name.startswith(OWN_THREADS):
        return False
    # The jobs of an executor have lanes, not its threads: when it starts a worker depends on timing.
    target = getattr(thread, "_target", None)
    return getattr(target, "__module__", "") != "concurrent.futures.thread"


def hook_executor(module: ModuleType) -> None:
    """Hook the jobs of `ThreadPoolExecutor`."""
    PATCHES.around(required(module, "ThreadPoolExecutor"), "submit", _submit, order=INNER)


def _submit(submit: Any, executor: Any, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    parent = lanes.current()
    function = functools.partial(fn, *args) if _is_through_context(fn) else fn
    lane = parent if parent in (UNRECORDED, GC) else parent.child(name_of(function))
    future = submit(executor, _Job(lane, fn), *args, **kwargs)
    of_job[future] = lane
    return future


def hook_gevent_pool(module: ModuleType) -> None:
    """Hook the jobs of gevent's pool of threads, such as name lookups."""
    PATCHES.around(required(module, "ThreadPool"), "spawn", _spawn)


def _spawn(spawn: Any, pool: Any, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    parent = lanes.current()
    lane = parent if parent in (UNRECORDED, GC) else parent.child(name_of(func))
    return spawn(pool, _Job(lane, func), *args, **kwargs)


class _Job:
    """The function of a job; it runs in the lane of the job."""

    __slots__ = ("_carried", "_function")

    def __init__(self, lane: Lane, function: Callable[..., Any]) -> None:
        self._carried = Carried(lane, is_job=True)
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._carried.run(self._function, *args, **kwargs)
