"""A `queue.SimpleQueue` for which nobody waits while it has the turn. `ThreadPool` is made of it."""

from __future__ import annotations

import queue
from typing import Any

from playhead_instrumentation.determinism.scheduler.wait_lines import Waiter, wait_in, wake_first, wanted
from playhead_instrumentation.runtime.patching import PATCHES

_Real: Any = queue.SimpleQueue
_put: Any = _Real.put
_get: Any = _Real.get


def hook() -> None:
    """Replace it."""
    PATCHES.put(queue, "SimpleQueue", SimpleQueue)


class _IsReal(type):
    """Of the type that stands in for the real queue's."""

    def __instancecheck__(cls, instance: object) -> bool:
        stands = "_line" in cls.__dict__
        return isinstance(instance, _Real) if stands else super().__instancecheck__(instance)


class SimpleQueue(_Real, metaclass=_IsReal):
    """As `queue.SimpleQueue`. Who waits first is served first."""

    __slots__ = ("_line",)
    _line: list[Waiter]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """A real one where that is due."""
        if cls is SimpleQueue and not wanted(1):
            return _Real(*args, **kwargs)
        self = _Real.__new__(cls)
        self._line = []
        return self

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """As the real one; safe in a finalizer too."""
        _put(self, item, block, timeout)
        if self._line:
            wake_first(self._line)

    def put_nowait(self, item: Any) -> None:
        """As the real one."""
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """As the real one."""
        if not block or (timeout is not None and timeout <= 0):
            return _get(self, block, timeout)
        found: list[Any] = []

        def take() -> bool:
            try:
                found.append(_get(self, False))
            except queue.Empty:
                return False
            return True

        if self._line or self.empty() or not take():
            if not wait_in(self._line, take, timeout, "get"):
                raise queue.Empty
        if self._line and not self.empty():
            wake_first(self._line)
        return found[0]
