"""Waits of playhead itself in a thread of the program, which are not waits of the program."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Protocol

from playhead_instrumentation.runtime.lanes import Shadow
from playhead_instrumentation.runtime.real_clock import REAL

APART_S = 30.0
"""Seconds until the thread counts as continuing by itself; longer than any wait of playhead itself."""


class Turns(Protocol):
    """The turns that let one thread run at a time."""

    def waits(self, until: float | None = None) -> None:
        """This thread waits. ``until``: when it continues by itself, in seconds (`REAL.now_s`)."""
        ...

    def goes_on(self) -> None:
        """This thread continues when it is its turn."""
        ...


_turns: Turns | None = None


def keep(turns: Turns | None) -> None:
    """Run threads in these turns from now on; None: without turns."""
    global _turns
    _turns = turns


@contextlib.contextmanager
def apart() -> Generator[None]:
    """Context for a wait of playhead itself: other threads run, and nothing goes on the tape."""
    turns = _turns
    with Shadow():
        if turns is not None:
            turns.waits(REAL.now_s() + APART_S)
        try:
            yield
        finally:
            if turns is not None:
                turns.goes_on()
