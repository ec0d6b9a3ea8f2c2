"""Overwriting after deletions, in a thread: it rewrites the index and waits for disks and readers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as TookLonger

LONGEST_S = 0.25
"""How long a deletion waits for it."""


class Overwriter:
    """Calls a function in a thread after each deletion. Any thread may ask."""

    def __init__(self, overwrite: Callable[[], bool]) -> None:
        """``overwrite`` overwrites all that was deleted before; returns whether nothing is left."""
        self._overwrite = overwrite
        self._thread = ThreadPoolExecutor(1, "playhead-overwrite")
        self._lock = threading.Lock()
        self._next: Future[bool] | None = None

    def is_done_soon(self) -> bool:
        """Begin to overwrite; whether nothing is left, or False if that takes longer than `LONGEST_S`.

        The thread goes on then. What it raises in time is raised.
        """
        with self._lock:
            # A call that has not begun yet sees this deletion too; one that runs may have missed it.
            if self._next is None or self._next.running() or self._next.done():
                self._next = self._thread.submit(self._overwrite)
            following = self._next
        try:
            return following.result(LONGEST_S)
        except TookLonger:
            return False

    def close(self) -> None:
        """Wait for what has begun. Idempotent."""
        self._thread.shutdown()
