"""Threads, locks and waits of the interpreter itself, whatever a program has put in their place.

gevent and eventlet replace threads by greenlets and locks by their own: a background thread of playhead
would then run inside the program's event loop and block it. What is here is made of a module ``_thread``
of our own, which nobody has changed, before or after. These threads are no `threading.Thread`: the
program does not see them in `threading.enumerate`, and the interpreter does not wait for them.
"""

from __future__ import annotations

import contextlib
import importlib.util
from collections import deque
from collections.abc import Callable
from typing import Any, Final


def _fresh(name: str) -> Any:
    """A built-in module, made anew."""
    spec: Any = importlib.util.find_spec(name)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_thread: Final[Any] = _fresh("_thread")
_time: Final[Any] = _fresh("time")

make_lock: Final[Callable[[], Any]] = _thread.allocate_lock
"""A lock that a thread of the system waits for."""
get_ident: Final[Callable[[], int]] = _thread.get_ident
"""Of the thread of the system that runs, whichever greenlet runs in it."""
now_s: Final[Callable[[], float]] = _time.monotonic
"""Seconds since some zero; not the program's clock."""

_own: dict[int, str] = {}


def own_thread() -> str:
    """The name under which the thread that runs was started here; empty where it was not."""
    return _own.get(get_ident(), "")


def threads() -> list[str]:
    """Names of the threads of this kind that run, sorted."""
    return sorted(_own.values())


class Thread:
    """A background thread. It ends with the process, in which nobody waits for it."""

    def __init__(self, name: str, run: Callable[[], object]) -> None:
        """``name``: of `own_thread`. ``run``: raises nothing. Not there in a forked child."""
        self.name: Final = name
        self._run = run
        self._over = make_lock()
        self._alive = False

    def start(self) -> None:
        """Once. RuntimeError where the system gives no thread, or the interpreter goes down."""
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
        """Wait until it has ended; False where ``timeout_s`` was not enough."""
        if self._alive and self._over.acquire(timeout=max(0.0, timeout_s)):
            self._over.release()
        return not self._alive

    def _main(self) -> None:
        _own[get_ident()] = self.name
        try:
            self._run()
        finally:
            del _own[get_ident()]
            self._ended()

    def _ended(self) -> None:
        self._alive = False
        self._over.release()


class Bell:
    """Wakes one waiting thread. Rings without a waiter count as one."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = make_lock()
        self._lock.acquire()

    def ring(self) -> None:
        """Wake who waits, or will. Waits for nothing: safe in finalizers and signal handlers."""
        with contextlib.suppress(RuntimeError):  # it has been rung, and not heard yet
            self._lock.release()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until it rings, or has rung since; False where ``timeout_s`` was not enough."""
        if timeout_s is None:
            return bool(self._lock.acquire())
        return bool(self._lock.acquire(timeout=min(max(0.0, timeout_s), _thread.TIMEOUT_MAX)))


class Changes:
    """Where any number of threads wait until something is as they want it."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[Bell] = deque()

    def tell(self) -> None:
        """Something has changed: have all look."""
        for bell in list(self._waiting):
            bell.ring()

    def wait_for(self, wanted: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until ``wanted()``; False where it is not so after ``timeout_s``."""
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
        """Wait for the next change, at most so long."""
        looked = iter((False,))
        self.wait_for(lambda: next(looked, True), timeout_s)


def _forget() -> None:
    """In a forked child: of its parent's threads none is there."""
    _own.clear()


with contextlib.suppress(AttributeError):
    import os

    os.register_at_fork(after_in_child=_forget)
