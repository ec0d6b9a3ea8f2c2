"""Locks on which no thread blocks while it holds the permit: `threading.Lock` and `threading.RLock`.

A thread that blocked on a real lock would keep its permit, and the owner of the lock could not run to
release it. So the replacements hold a real lock, which they acquire without blocking, and a thread that
has to wait joins a line (`wait_lines`). Semaphores, barriers, events, conditions and
`queue.Queue` are built from these and from conditions. Locks made before the patch are left as they are.
"""

from __future__ import annotations

import _thread
import threading
from typing import Any

from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.scheduler.wait_lines import Waiter, wait_in, wake_first, wanted

_allocate = _thread.allocate_lock
_RealLock: Any = type(_allocate())
_RealRLock: Any = _thread.RLock


_before: Any = threading.Lock, threading.RLock


def hook() -> None:
    """Replace `threading.Lock` and `threading.RLock`."""
    global _before
    _before = threading.Lock, threading.RLock
    PATCHES.put_all(threading, {"Lock": Lock, "RLock": RLock})


def unhook() -> None:
    """Restore the originals. Locks made in the meantime stay as they are."""
    owner: Any = threading
    if owner.Lock is Lock and owner.RLock is RLock:
        owner.Lock, owner.RLock = _before


def _waits(blocking: bool, timeout: float) -> bool:
    """Whether `acquire` with these arguments may block. Invalid arguments never block."""
    return blocking and (timeout == -1 or 0 < timeout <= _thread.TIMEOUT_MAX)


def _seconds(timeout: float) -> float | None:
    return None if timeout == -1 else timeout


class _IsReal(type):
    """Metaclass: instances of the real lock are instances of its stand-in."""

    def __instancecheck__(cls, instance: object) -> bool:
        return super().__instancecheck__(instance) or isinstance(instance, _RealLock)


class Lock(metaclass=_IsReal):
    """Works like `threading.Lock`. The permits of the threads decide who acquires it."""

    __slots__ = ("__weakref__", "_give", "_line", "_lock", "_take")

    def __new__(cls) -> Any:
        """Make a real lock where the caller is not to get a stand-in (`wanted`)."""
        if not wanted(1):
            return _allocate()
        self = object.__new__(cls)
        self._lock = lock = _allocate()
        self._take, self._give = lock.acquire, lock.release
        self._line = []
        return self

    _line: list[Waiter]
    _take: Any
    _give: Any

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """See `acquire` of the real lock."""
        if not _waits(blocking, timeout):
            return self._take(blocking, timeout)
        if not self._line and self._take(False):
            return True
        return wait_in(self._line, self._try, _seconds(timeout))

    def release(self) -> None:
        """See `release` of the real lock."""
        self._give()
        if self._line:
            wake_first(self._line)

    def __enter__(self) -> bool:
        if not self._line and self._take(False):
            return True
        return wait_in(self._line, self._try, None)

    def __exit__(self, *_: object) -> None:
        self._give()
        if self._line:
            wake_first(self._line)

    def locked(self) -> bool:
        """See `locked` of the real lock."""
        return bool(self._lock.locked())

    acquire_lock, release_lock, locked_lock = acquire, release, locked

    def _try(self) -> bool:
        return self._take(False)

    def _at_fork_reinit(self) -> None:
        self._lock._at_fork_reinit()  # type: ignore[attr-defined]
        self._line.clear()

    def __reduce_ex__(self, _: Any) -> Any:
        raise TypeError(f"cannot pickle '{_RealLock.__module__}.{_RealLock.__qualname__}' object")

    def __repr__(self) -> str:
        return repr(self._lock)


class RLock(_RealRLock):
    """Works like `threading.RLock`."""

    __slots__ = ("_line",)
    _line: list[Waiter]

    def __new__(cls, *_: object, **__: object) -> Any:
        """Make a real lock where the caller is not to get a stand-in (`wanted`)."""
        if cls is RLock and not wanted(1):
            return _RealRLock()
        self = _RealRLock.__new__(cls)
        self._line = []
        return self

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """See `acquire` of the real lock."""
        if not _waits(blocking, timeout):
            return _take_again(self, blocking, timeout)
        if (not self._line or self._is_owned()) and _take_again(self, False):
            return True
        return wait_in(self._line, self._try, _seconds(timeout))

    def __enter__(self) -> bool:
        if (not self._line or self._is_owned()) and _take_again(self, False):
            return True
        return wait_in(self._line, self._try, None)

    def release(self) -> None:
        """See `release` of the real lock."""
        _give_back(self)
        if self._line:
            wake_first(self._line)

    def __exit__(self, *_: object) -> None:
        _give_back(self)
        if self._line:
            wake_first(self._line)

    @property
    def _owner(self) -> int | None:
        """As the lock written in Python has it, whose owner gevent sets; this one knows its own."""
        return None

    def _release_save(self) -> Any:
        saved = _save(self)
        if self._line:
            wake_first(self._line)
        return saved

    def _acquire_restore(self, saved: Any) -> None:
        for _ in range(saved[0]):
            self.__enter__()

    def _try(self) -> bool:
        return _take_again(self, False)

    def _at_fork_reinit(self) -> None:
        _reinit(self)
        self._line.clear()


_take_again: Any = _RealRLock.acquire
_give_back: Any = _RealRLock.release
_save: Any = _RealRLock._release_save
_reinit: Any = _RealRLock._at_fork_reinit
