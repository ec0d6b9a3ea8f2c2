"""Threads, locks and waits of the interpreter itself, even where a program has replaced them.

gevent and eventlet replace threads by greenlets and locks by their own. A background thread of playhead
would then run inside the program's event loop and block it. This module uses a fresh copy of ``_thread``
that nobody has patched, before or after. Its threads are not `threading.Thread` objects: the program
does not see them in `threading.enumerate`, and the interpreter does not wait for them.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import resource
from collections import deque
from collections.abc import Callable
from functools import cache
from typing import Any, Final


def _fresh(name: str) -> Any:
    """Load a fresh copy of a built-in module."""
    spec: Any = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_thread: Final[Any] = _fresh("_thread")
_time: Final[Any] = _fresh("time")
_signal: Final[Any] = importlib.import_module("_signal")

make_lock: Final[Callable[[], Any]] = _thread.allocate_lock
"""Make a lock that blocks a system thread."""
get_ident: Final[Callable[[], int]] = _thread.get_ident
"""Id of the current system thread, whichever greenlet runs in it."""
now_s: Final[Callable[[], float]] = _time.monotonic
"""Seconds since an arbitrary zero; independent of the program's clock."""

_own: dict[int, str] = {}

_ARENA_MAX: Final = -8
"""``M_ARENA_MAX`` of glibc."""


@cache
def share_memory_pool() -> None:
    """Where the address space is limited (RLIMIT_AS), let all threads allocate from one pool of memory.

    glibc reserves 64 MiB of address space for each thread that allocates. Those of our own threads would
    be what the program lacks to start one of its threads.
    """
    if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
        import ctypes  # few processes have such a limit

        with contextlib.suppress(AttributeError):  # another C library
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def own_thread() -> str:
    """Return the name of the current thread if it was started here; empty if not."""
    return _own.get(get_ident(), "")


def threads() -> list[str]:
    """Return the names of the running threads of this kind, sorted."""
    return sorted(_own.values())


class Thread:
    """A background thread. It dies with the process, which does not wait for it."""

    def __init__(self, name: str, run: Callable[[], object]) -> None:
        """``name``: for `own_thread`.

        ``run``: must not raise. The thread does not exist in a forked child.
        """
        self.name: Final = name
        self._run = run
        self._over = make_lock()
        self._alive = False

    def start(self) -> None:
        """Start the thread, once.

        RuntimeError if the system cannot start it, or at interpreter shutdown.
        """
        share_memory_pool()
        self._over.acquire()
        self._alive = True
        try:
            _thread.start_new_thread(self._main, ())
        except BaseException:
            self._ended()
            raise

    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self._alive

    def join(self, timeout_s: float) -> bool:
        """Wait until it has ended; False if ``timeout_s`` was not enough."""
        if self._alive and self._over.acquire(timeout=max(0.0, timeout_s)):
            self._over.release()
        return not self._alive

    def _main(self) -> None:
        _own[get_ident()] = self.name
        _leave_signals()
        try:
            self._run()
        finally:
            del _own[get_ident()]
            self._ended()

    def _ended(self) -> None:
        self._alive = False
        self._over.release()


def _leave_signals() -> None:
    """Leave signals to the threads of the program, which may hold them back for a while.

    What is taken by any other thread is handled by the main thread all the same, at once.
    """
    if hasattr(_signal, "pthread_sigmask"):
        faults = {_signal.SIGSEGV, _signal.SIGBUS, _signal.SIGFPE, _signal.SIGILL}
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _signal.valid_signals() - faults)


class Bell:
    """Wakes one waiting thread. Several rings without a waiter count as one."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = make_lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake the current or the next waiter. Never waits: safe in finalizers and signal handlers."""
        with contextlib.suppress(RuntimeError):  # it was rung before and not waited for yet
            self._lock.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait for a ring, also one since the last wait; False if ``timeout_s`` was not enough."""
        if timeout_s is None:
            return bool(self._lock.acquire())
        return bool(self._lock.acquire(timeout=min(max(0.0, timeout_s), _thread.TIMEOUT_MAX)))


class Waiters:
    """A condition on which any number of threads wait."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[Bell] = deque()

    def tell(self) -> None:
        """Something has changed: wake all waiters so that they check their conditions."""
        for bell in list(self._waiting):
            bell.ring()

    def wait_for(self, wanted: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until ``wanted()``; False if that does not hold after ``timeout_s``."""
        bell, until = Bell(), now_s() + timeout_s
        self._waiting.append(bell)
        try:
            while not wanted():
                if not bell.wait(until - now_s()):
                    return wanted()
            return True
        finally:
            self._waiting.remove(bell)

    def wait(self, timeout_s: float) -> None:
        """Wait for the next change, at most ``timeout_s``."""
        looked = iter((False,))
        self.wait_for(lambda: next(looked, True), timeout_s)


def _forget() -> None:
    """Runs in a forked child, where the parent's threads do not exist."""
    _own.clear()


with contextlib.suppress(AttributeError):
    import os

    os.register_at_fork(after_in_child=_forget)
