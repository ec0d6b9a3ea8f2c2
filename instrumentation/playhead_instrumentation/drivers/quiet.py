"""Who runs and who waits: whether all consequences of a delivery have happened.

Every thread of the program is a place, busy from its start to its end but for the times in which it
waits: at the gate, in a condition, a join, a sleep, in its event loop, or for the next job of an
executor. Who was woken and has not run yet is *coming*. All is quiet when nobody is busy or coming. What
blocks in something else is told by the processor time of its thread, which does not grow.
"""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import thread as executor_threads
from typing import Any

from playhead_instrumentation.lanes import OWN_THREADS
from playhead_instrumentation.patches import PATCHES, required

PRESUMED_S = 0.1
"""A busy thread that used no processor time for so long is taken to wait."""

IDLE_CPU_NS = 1_000_000
"""So much processor time is none."""


class Quiet:
    """The books. Every method takes the gate's lock, which is reentrant."""

    def __init__(self, lock: Any, changed: Callable[[], None]) -> None:
        """``changed`` is called, without the lock, when somebody began to wait."""
        self._lock = lock
        self._changed = changed
        self._busy: set[int] = {threading.get_ident()}
        self._idle: dict[int, float | None] = {}
        """Place → when it goes on by itself (`time.monotonic`); None: when somebody wakes it."""
        self._coming = 0
        self._joining: Counter[threading.Thread] = Counter()
        self._ended: set[threading.Thread] = set()
        self._loops: dict[int, Any] = {}
        self._sample: tuple[float, dict[int, int]] | None = None

    def quiet(self) -> bool:
        """Whether nothing happens until the gate lets somebody through, or time passes."""
        with self._lock:
            return not self._busy and self._coming <= 0 and not self._ready()

    def for_good(self) -> bool:
        """Whether it stays quiet however much time passes."""
        with self._lock:
            return self.quiet() and all(until is None for until in self._idle.values())

    def latest_alarm(self) -> float:
        """When the last of those who sleep goes on (`time.monotonic`); 0: nobody does."""
        with self._lock:
            return max((until for until in self._idle.values() if until is not None), default=0.0)

    def presumed(self) -> bool:
        """Whether those who seem busy have used no processor time for a while, and nobody is coming."""
        now = time.monotonic()
        with self._lock:
            if self._ready():
                return False
            used = {place: _cpu_ns(place) for place in self._busy}
            last = self._sample
            if (
                last is None
                or last[1].keys() != used.keys()
                or any(used[place] - last[1][place] > IDLE_CPU_NS for place in used)
            ):
                self._sample = now, used
                return False
            if now - last[0] < PRESUMED_S:
                return False
            self._coming = 0
            return True

    def waits(self, until: float | None = None, place: int | None = None) -> None:
        """A place waits; ``until``: it goes on by itself then."""
        place = threading.get_ident() if place is None else place
        with self._lock:
            if place not in self._busy and place not in self._idle:
                return
            self._busy.discard(place)
            self._idle[place] = until
        self._changed()

    def goes_on(self, place: int | None = None) -> None:
        """A place runs again."""
        place = threading.get_ident() if place is None else place
        with self._lock:
            if place in self._idle:
                del self._idle[place]
                self._busy.add(place)

    def coming(self, count: int = 1) -> None:
        """So many were woken."""
        with self._lock:
            self._coming += count

    def came(self) -> None:
        """One of those who were woken runs."""
        with self._lock:
            self._coming = max(0, self._coming - 1)

    def begins(self) -> None:
        """This thread begins."""
        with self._lock:
            self._busy.add(threading.get_ident())
            self._coming = max(0, self._coming - 1)

    def ends(self, thread: threading.Thread) -> None:
        """This thread ends."""
        with self._lock:
            self._coming += self._joining.pop(thread, 0)
            self._ended.add(thread)
            self._busy.discard(threading.get_ident())
            self._idle.pop(threading.get_ident(), None)
        self._changed()

    def joins(self, thread: threading.Thread, until: float | None) -> None:
        """This thread waits for the end of another."""
        with self._lock:
            if thread not in self._ended:
                self._joining[thread] += 1
        self.waits(until)

    def joined(self, thread: threading.Thread) -> None:
        """It waits no longer."""
        with self._lock:
            if thread in self._ended:
                self._coming = max(0, self._coming - 1)
            else:
                self._joining[thread] -= 1
        self.goes_on()

    def runs_loop(self, loop: Any) -> None:
        """This thread runs an event loop."""
        with self._lock:
            self._loops[threading.get_ident()] = loop

    def _ready(self) -> bool:
        return any(
            getattr(loop, "_ready", None) for place, loop in self._loops.items() if place in self._idle
        )


def _cpu_ns(place: int) -> int:
    clock = getattr(time, "pthread_getcpuclockid", None)
    try:
        return time.process_time_ns() if clock is None else time.clock_gettime_ns(clock(place))
    except OSError:
        return 0


_books: Quiet | None = None


def keep(books: Quiet | None) -> None:
    """From now on these books are kept; None: none."""
    global _books
    _books = books
    if books is not None:
        _hook()


@functools.cache
def _hook() -> None:
    for name, hook in (
        ("threading.Condition", _hook_conditions),
        ("threading.Thread", _hook_threads),
        ("concurrent.futures.thread", _hook_jobs),
        ("time.sleep", _hook_sleep),
    ):
        PATCHES.attempt(name, hook)


def _until(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + max(0.0, timeout)


def _hook_conditions() -> None:
    owner: Any = threading.Condition
    wait, notify = required(owner, "wait"), required(owner, "notify")

    @functools.wraps(wait)
    def wait_at_the_gate(self: Any, timeout: float | None = None) -> bool:
        books = _books
        if books is None:
            return wait(self, timeout)
        books.waits(_until(timeout))
        woken = False
        try:
            woken = wait(self, timeout)
        finally:
            books.goes_on()
            if woken:
                books.came()
        return woken

    @functools.wraps(notify)
    def notify_and_count(self: Any, n: int = 1) -> None:
        books = _books
        if books is not None and self._is_owned():
            books.coming(min(n, len(self._waiters)))
        notify(self, n)

    owner.wait, owner.notify = wait_at_the_gate, notify_and_count


def _hook_threads() -> None:
    owner: Any = threading.Thread
    start, run = required(owner, "start"), required(owner, "_bootstrap_inner")
    join = required(owner, "join")

    @functools.wraps(start)
    def start_and_count(self: threading.Thread) -> None:
        books = _books
        if books is None or self.name.startswith(OWN_THREADS):
            return start(self)
        books.coming()
        self.__dict__["_playhead_place"] = True
        try:
            start(self)
        except RuntimeError:
            books.came()
            raise

    @functools.wraps(run)
    def run_as_a_place(self: threading.Thread) -> None:
        books = _books
        if books is None or not self.__dict__.pop("_playhead_place", False):
            return run(self)
        books.begins()
        try:
            run(self)
        finally:
            books.ends(self)

    @functools.wraps(join)
    def join_and_wait(self: threading.Thread, timeout: float | None = None) -> None:
        books = _books
        if books is None or not self.is_alive():
            return join(self, timeout)
        books.joins(self, _until(timeout))
        try:
            join(self, timeout)
        finally:
            books.joined(self)

    owner.start, owner._bootstrap_inner, owner.join = start_and_count, run_as_a_place, join_and_wait


def _hook_jobs() -> None:
    executor: Any = ThreadPoolExecutor
    item: Any = required(executor_threads, "_WorkItem")
    submit, run = required(executor, "submit"), required(item, "run")

    @functools.wraps(submit)
    def submit_and_count(self: Any, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        books = _books
        if books is None:
            return submit(self, fn, *args, **kwargs)
        books.coming()
        try:
            return submit(self, fn, *args, **kwargs)
        except BaseException:
            books.came()
            raise

    @functools.wraps(run)
    def run_and_wait(self: Any, *args: Any) -> None:
        books = _books
        if books is None:
            return run(self, *args)
        books.goes_on()
        books.came()
        try:
            run(self, *args)
        finally:
            books.waits()

    executor.submit, item.run = submit_and_count, run_and_wait


def _hook_sleep() -> None:
    sleep = time.sleep

    @functools.wraps(sleep)
    def sleep_and_wait(seconds: float, /) -> None:
        books = _books
        if books is None:
            return sleep(seconds)
        books.waits(_until(seconds))
        try:
            sleep(seconds)
        finally:
            books.goes_on()

    time.sleep = sleep_and_wait


def hook_loop(watch: Callable[[asyncio.AbstractEventLoop], None]) -> None:
    """Have ``watch`` told of every event loop that is run, from now on."""
    owner: Any = asyncio.BaseEventLoop
    original = required(owner, "run_forever")
    run_forever = getattr(original, "__wrapped__", original)

    @functools.wraps(run_forever)
    def watched(self: Any) -> None:
        watch(self)
        run_forever(self)

    owner.run_forever = watched
