"""Patches that keep the scheduler's ledger (`ThreadLedger`) up to date.

They report threads, jobs of executors, conditions, joins, and wake-ups of event loops. The patches stay
in place. Where no ledger is kept they do what the original does.
"""

from __future__ import annotations

import _thread
import asyncio
import functools
import itertools
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as executor_threads
from typing import Any

from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import MIDDLE, OUTER, PATCHES, Patches, required
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.recorder.gate import nothing
from playhead_instrumentation.scheduler import threads, timer_ends, wait_lines
from playhead_instrumentation.scheduler.hooks import locks, simple_queues
from playhead_instrumentation.scheduler.ledger import ThreadLedger, Ticket

_ledger: ThreadLedger | None = None

_loosen: Callable[[], None] = nothing
"""Called where a thread continues without a permit, so that nothing can be held back any more."""


def keep(
    ledger: ThreadLedger | None, *, live: bool = False, loosen: Callable[[], None] = nothing
) -> None:
    """Keep this ledger from now on; None: keep none.

    ``live``: the outside world answers, not a tape. ``loosen``: called where the ledger cannot be kept,
    now or later.
    """
    global _ledger, _loosen
    _loosen = loosen
    if _ledger is not None:
        _ledger.close()
    _ledger = ledger
    wait_lines.keep(ledger)
    RUNTIME.permits = ledger
    RUNTIME.outside = ledger if live else None
    if ledger is not None and not _hook():
        loosen()


def leave_threads() -> None:
    """Report no waits of threads any more: they are greenlets, and their hub says when it is idle."""
    global _ledger
    _ledger = None
    wait_lines.keep(None)
    RUNTIME.permits = RUNTIME.outside = None


def watch_waits(patches: Patches, session: object = None) -> None:
    """Patch conditions and threads, whose timeouts are on the tape."""
    for name, hook in (("threading.Condition", _hook_conditions), ("threading.Thread", _hook_threads)):
        if not patches.attempt(name, hook):
            _loosen()


@functools.cache
def _hook() -> bool:
    done = [
        PATCHES.attempt(name, hook)
        for name, hook in (
            ("threading.Lock", locks.hook),
            ("queue.SimpleQueue", simple_queues.hook),
            ("concurrent.futures.thread", _hook_jobs),
            ("asyncio.call_soon_threadsafe", _hook_wakes),
        )
    ]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork)
    return all(done)


def _around(owner: Any, name: str, layer: Any, *, order: int = MIDDLE) -> None:
    PATCHES.around(owner, name, layer, order=order, lapse=_lapse)


def _lapse() -> None:
    _loosen()


def _after_fork() -> None:
    if _ledger is not None:
        _ledger.after_fork()


_places: dict[Any, int] = {}
"""The thread that waits for each lock of a condition, by lock."""


def _hook_conditions() -> None:
    owner: Any = threading.Condition
    for name in ("_is_owned", "_release_save", "_acquire_restore"):
        required(threading.Condition(), name)
    _around(owner, "wait", _wait)
    _around(owner, "notify", _notify)


def _wait(wait: Any, self: Any, timeout: float | None = None) -> bool:
    ledger = _ledger
    if not self._is_owned() or (timeout is not None and timeout <= 0):
        return wait(self, timeout)
    if lanes.current() is lanes.UNRECORDED:
        return wait(self, timeout)
    wake = None if timeout is None else timer_ends.opened("wait", timeout)
    if ledger is None:
        woken = wait(self, timeout)
        if wake is not None and not woken:
            wake.passed()
        return woken
    # As in the original, except that the permit is taken before the lock is reacquired.
    permit = None if wake is None else wake.waiting()
    if permit is not None:
        waiter = permit.opened
    else:
        waiter = _thread.allocate_lock()
        waiter.acquire()
    self._waiters.append(waiter)
    _places[waiter] = threading.get_ident()
    saved = ledger.lets_go(self._release_save)
    try:
        if wake is not None and permit is not None:
            wake.comes_first(permit)
        elif timeout is None:
            waiter.acquire()
        else:
            waiter.acquire(True, timeout)
    finally:
        del _places[waiter]
        try:
            ledger.goes_on()
        finally:
            self._acquire_restore(saved)
            # `notify` removes the waiter from the list.
            woken = waiter not in self._waiters
            if not woken:
                self._waiters.remove(waiter)
    if wake is not None and permit is not None:
        wake.ended(permit, woken)
    return woken


def _notify(notify: Any, self: Any, n: int = 1) -> None:
    ledger = _ledger
    if ledger is not None and self._is_owned():
        waiters: list[Any] = list(itertools.islice(self._waiters, n))
        for waiter in waiters:
            place = _places.get(waiter)
            if place is not None:
                ledger.wake(place)
    notify(self, n)


def _hook_threads() -> None:
    owner: Any = threading.Thread
    _around(owner, "start", _start_with_a_turn, order=OUTER)
    _around(owner, "_bootstrap_inner", _run_thread_in_turn, order=OUTER)
    _around(owner, "join", _join_and_wait)
    _around(owner, "is_alive", _is_alive)


def _start_with_a_turn(start: Any, self: threading.Thread) -> None:
    ledger = _ledger
    if not threads.is_of_program(self) or lanes.current() is lanes.UNRECORDED:
        # The ledger is not told of its end, so a join of it is not entered as a wait.
        self.__dict__["_playhead_machinery"] = True
        return start(self)
    if ledger is None:
        return start(self)
    # The jobs of an executor's worker have permits of their own.
    works = getattr(getattr(self, "_target", None), "__module__", "") == executor_threads.__name__
    ticket = None if works else ledger.reserve()
    if works:
        # A worker needs no permit to begin: its starter, which holds the executor's locks, keeps the
        # permit that it has.
        begun: Any = required(self, "_started")._cond
        begun.wait = functools.partial(required(threading.Condition.wait, "__wrapped__"), begun)
    self.__dict__["_playhead_turn"] = ledger, ticket
    try:
        start(self)
    except BaseException:
        if ticket is not None and "_playhead_turn" in self.__dict__:
            ledger.give_up(ticket)
        raise


def _run_thread_in_turn(run: Any, self: threading.Thread) -> None:
    ledger, ticket = self.__dict__.pop("_playhead_turn", (None, None))
    if ledger is None:
        return run(self)
    ledger.begins(ticket)
    try:
        run(self)
    finally:
        ledger.ends(self)


def _join_and_wait(join: Any, self: threading.Thread, timeout: float | None = None) -> None:
    ledger = _ledger
    if self.__dict__.get("_playhead_machinery", False):
        return join(self, timeout)
    if not self.is_alive() or self is threading.current_thread():
        return join(self, timeout)
    if timeout is not None and timeout <= 0:
        return join(self, timeout)
    if ledger is not None and ledger.is_certain():
        return join(self, timeout)
    wake = None if timeout is None else timer_ends.opened("join", timeout)
    if ledger is None:
        join(self, timeout)
        if wake is not None and self.is_alive():
            wake.passed()
        return
    permit = None if wake is None else wake.waiting()
    if wake is None or permit is None:
        ledger.joins(self)
        try:
            return join(self, timeout)
        finally:
            ledger.joined(self)
    ledger.joins(self, lock=permit.opened)
    try:
        passed = wake.comes_first(permit)
    finally:
        ledger.joined(self)
    if not passed:
        with ledger.certain():
            join(self)  # it is about to end
    wake.ended(permit, not passed)


def _is_alive(is_alive: Any, self: threading.Thread) -> bool:
    ledger = _ledger
    if ledger is None or not ledger.has_ended(self):
        return is_alive(self)
    if not ledger.is_certain() and self is not threading.current_thread():
        with ledger.certain():  # between its last permit and its end nothing of the program happens
            required(threading.Thread.join, "__wrapped__")(self)
    return is_alive(self)


class _Pool:
    """The number of running jobs of an executor, and the tickets of jobs that wait for a worker."""

    __slots__ = ("line", "running", "waiting")

    def __init__(self) -> None:
        self.running = 0
        self.waiting: deque[Ticket] = deque()
        self.line: list[wait_lines.Waiter] = []
        """Waiters until all jobs are done."""

    def drained(self) -> None:
        """Wait until all jobs are done."""
        wait_lines.wait_in(self.line, lambda: not self.running, None)
        wait_lines.wake_first(self.line)


class _Job:
    """A job of an executor. Jobs begin in the order in which they were submitted."""

    __slots__ = ("_ledger", "_pool", "ticket")

    def __init__(self, ledger: ThreadLedger, executor: Any) -> None:
        self._ledger = ledger
        self.ticket = Ticket()
        with _pools_lock:
            pool = _pools.get(executor)
            if pool is None:
                pool = _pools[executor] = _Pool()
            self._pool = pool
            waits = pool.running >= executor._max_workers
            if waits:
                pool.waiting.append(self.ticket)
            else:
                pool.running += 1
        if not waits:
            ledger.put(self.ticket)

    def begins(self) -> None:
        """A worker has taken the job."""
        self._ledger.claim(self.ticket)

    def ends(self) -> None:
        """The job is done, or will not be run."""
        with _pools_lock:
            pool = self._pool
            if self.ticket in pool.waiting:
                pool.waiting.remove(self.ticket)
                return
            follows = pool.waiting.popleft() if pool.waiting else None
            if follows is None and pool.running:
                pool.running -= 1
        if follows is not None:
            self._ledger.put(follows)
        elif not pool.running:
            wait_lines.wake_first(pool.line)

    @property
    def waits(self) -> bool:
        """Whether the job waits for a worker."""
        return self.ticket in self._pool.waiting


_pools: weakref.WeakKeyDictionary[Any, _Pool] = weakref.WeakKeyDictionary()
_pools_lock = threading.Lock()
_submitting = threading.local()


def _hook_jobs() -> None:
    executor: Any = ThreadPoolExecutor
    item: Any = required(executor_threads, "_WorkItem")
    _around(executor, "submit", _submit_with_a_turn, order=OUTER)
    _around(executor, "shutdown", _shutdown_in_turn)
    _around(executor, "_initializer_failed", _fail_and_wake)
    _around(item, "__init__", _make_with_a_turn)
    _around(item, "run", _run_in_turn)


def _submit_with_a_turn(submit: Any, self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
    ledger = _ledger
    if ledger is None or lanes.current() is lanes.UNRECORDED:
        return submit(self, fn, *args, **kwargs)
    _submitting.made = None
    _submitting.executor = ledger, self
    try:
        return submit(self, fn, *args, **kwargs)
    except BaseException:
        job: _Job | None = _submitting.made
        if job is not None:
            job.ends()
            ledger.give_up(job.ticket)
        raise
    finally:
        _submitting.executor = _submitting.made = None


def _make_with_a_turn(make: Any, self: Any, *args: Any, **kwargs: Any) -> None:
    make(self, *args, **kwargs)
    executor = getattr(_submitting, "executor", None)
    if executor is not None:
        self._playhead_job = _submitting.made = _Job(*executor)


def _run_in_turn(run: Any, self: Any, *args: Any) -> None:
    ledger, job = _ledger, self.__dict__.pop("_playhead_job", None)
    if job is None:
        return run(self, *args)
    if ledger is not None:
        job.begins()
    try:
        run(self, *args)
    finally:
        job.ends()
        if ledger is not None:
            ledger.waits()


def _shutdown_in_turn(
    shutdown: Any, self: Any, wait: bool = True, *, cancel_futures: bool = False
) -> None:
    ledger, pool = _ledger, _pools.get(self)
    if ledger is None or pool is None or lanes.current() is lanes.UNRECORDED:
        return shutdown(self, wait, cancel_futures=cancel_futures)
    if cancel_futures:
        _cancel(self)
    shutdown(self, wait=False)
    if wait:
        pool.drained()
        with ledger.certain():  # the workers have nothing left to do but end
            shutdown(self)


def _fail_and_wake(failed: Any, self: Any) -> None:
    failed(self)
    pool = _pools.get(self)
    if pool is not None:
        pool.running = 0
        wait_lines.wake_first(pool.line)


def _cancel(executor: Any) -> None:
    """Cancel the jobs that wait for a worker. Others stay: whether a worker has taken them is chance."""
    items: Any = required(executor, "_work_queue")
    kept: list[Any] = []
    with required(executor, "_shutdown_lock"):
        while True:
            try:
                item = items.get_nowait()
            except queue.Empty:
                break
            job: _Job | None = getattr(item, "_playhead_job", None)
            if item is None or job is None or not job.waits:
                kept.append(item)
            else:
                job.ends()
                item.future.cancel()
        for item in kept:
            items.put(item)


def _hook_wakes() -> None:
    _around(asyncio.BaseEventLoop, "call_soon_threadsafe", _call_and_wake)


def _call_and_wake(call_soon_threadsafe: Any, loop: Any, *args: Any, **kwargs: Any) -> Any:
    handle = call_soon_threadsafe(loop, *args, **kwargs)
    ledger = _ledger
    if ledger is not None:
        ledger.wakes_loop(loop)
    return handle
