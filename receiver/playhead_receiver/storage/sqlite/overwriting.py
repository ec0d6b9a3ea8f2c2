"""Overwrites deleted data in a thread: rewriting the index may wait for the disk or for readers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookLonger

LONGEST_S = 0.25
"""Maximum time that a deletion waits for the thread."""


class Overwriter:
    """Calls a function in a thread after each deletion. Thread-safe."""

    def __init__(self, overwrite: Callable[[], bool]) -> None:
        """``overwrite``: overwrites everything deleted so far; returns whether it is complete."""
        self._overwrite = overwrite
        self._thread = ThreadPoolExecutor(1, "playhead-overwrite")
        self._lock = threading.Lock()
        self._next: Future[bool] | None = None

    def is_done_soon(self) -> bool:
        """Start overwriting; return whether it is complete within `LONGEST_S`.

        After a timeout the thread continues. An exception before the timeout is raised here.
        """
        with self._lock:
            # A queued call will see this deletion too; a running one may have missed it.
            if self._next is None or self._next.running() or self._next.done():
                self._next = self._thread.submit(self._overwrite)
            following = self._next
        try:
            return following.result(LONGEST_S)
        except TookLonger:
            return False

    def close(self) -> None:
        """Wait until the thread has finished. Idempotent."""
        self._thread.shutdown()
