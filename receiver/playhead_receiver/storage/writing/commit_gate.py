"""A shared/exclusive lock: commits pass concurrently, a deletion of blobs holds them up."""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import contextmanager


class CommitGate:
    """Any number of `one` at the same time, or a single `held`."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._passing = 0
        self._held = False

    @contextmanager
    def one(self) -> Generator[None]:
        """Shared: pass, after waiting while the gate is held."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held)
            self._passing += 1
        try:
            yield
        finally:
            with self._changed:
                self._passing -= 1
                self._changed.notify_all()

    @contextmanager
    def held(self) -> Generator[None]:
        """Exclusive: nobody passes. Waits first for those that are passing."""
        with self._changed:
            self._changed.wait_for(lambda: not self._held)
            self._held = True
            self._changed.wait_for(lambda: not self._passing)
        try:
            yield
        finally:
            with self._changed:
                self._held = False
                self._changed.notify_all()
