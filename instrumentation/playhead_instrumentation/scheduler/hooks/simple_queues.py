"""A `queue.SimpleQueue` on which no thread blocks while it holds the permit. `ThreadPool` uses it."""

from __future__ import annotations

import queue
from typing import Any

from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.scheduler.wait_lines import Waiter, wait_in, wake_first, wanted

_Real: Any = queue.SimpleQueue
_put: Any = _Real.put
_get: Any = _Real.get


def hook() -> None:
    """Replace `queue.SimpleQueue`."""
    PATCHES.put(queue, "SimpleQueue", SimpleQueue)


class _IsReal(type):
    """Metaclass: instances of the real queue are instances of its stand-in."""

    def __instancecheck__(cls, instance: object) -> bool:
        stands = "_line" in cls.__dict__
        return isinstance(instance, _Real) if stands else super().__instancecheck__(instance)


class SimpleQueue(_Real, metaclass=_IsReal):
    """Works like `queue.SimpleQueue`. Waiting threads are served first in, first out."""

    __slots__ = ("_line",)
    _line: list[Waiter]

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a real queue where the caller is not to get a stand-in (`wanted`)."""
        if cls is SimpleQueue and not wanted(1):
            return _Real(*args, **kwargs)
        self = _Real.__new__(cls)
        self._line = []
        return self

    def put(self, item: Any, block: bool = True, timeout: float | None = None) -> None:
        """See `queue.SimpleQueue.put`. Safe in a finalizer too."""
        _put(self, item, block, timeout)
        if self._line:
            wake_first(self._line)

    def put_nowait(self, item: Any) -> None:
        """See `queue.SimpleQueue.put_nowait`."""
        self.put(item)

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        """See `queue.SimpleQueue.get`."""
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
