"""Measures how long a thread was prepared to wait, independent of the speed of the machine."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from playhead_core.process import interpreter_threads as native


@contextmanager
def waits() -> Iterator[list[float]]:
    """Timeouts in seconds of each wait of the calling thread: on conditions, bells, threads, sleeps."""
    asked: list[float] = []
    mine = threading.get_ident()
    wait, join, sleep = threading.Condition.wait, threading.Thread.join, time.sleep
    hear, hope, end = native.Bell.wait, native.Waiters.wait_for, native.Thread.join

    def note(seconds: float | None) -> None:
        if threading.get_ident() == mine:
            asked.append(math.inf if seconds is None else seconds)

    def noted_wait(self: Any, timeout: float | None = None) -> bool:
        note(timeout)
        return wait(self, timeout)

    def noted_join(self: Any, timeout: float | None = None) -> None:
        note(timeout)
        join(self, timeout)

    def noted_sleep(seconds: float) -> None:
        note(seconds)
        sleep(seconds)

    def noted_hear(self: Any, timeout_s: float | None = None) -> bool:
        note(timeout_s)
        return hear(self, timeout_s)

    def noted_hope(self: Any, wanted: Callable[[], bool], timeout_s: float) -> bool:
        note(timeout_s)  # its waits for the bell are told what is left of it
        return hope(self, wanted, timeout_s)

    def noted_end(self: Any, timeout_s: float) -> bool:
        note(timeout_s)
        return end(self, timeout_s)

    with (
        patch.object(native.Bell, "wait", noted_hear),
        patch.object(native.Waiters, "wait_for", noted_hope),
        patch.object(native.Thread, "join", noted_end),
        patch.object(threading.Condition, "wait", noted_wait),
        patch.object(threading.Thread, "join", noted_join),
        patch.object(time, "sleep", noted_sleep),
    ):
        yield asked
