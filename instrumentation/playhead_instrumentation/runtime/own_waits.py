"""Waits of playhead's own in a thread of the program: they are no waits of the program."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Protocol

from playhead_instrumentation.runtime.lanes import Shadow
from playhead_instrumentation.runtime.real_clock import REAL

APART_S = 30.0
"""Longer than playhead waits for itself: until then nobody else waits in vain."""


class Turns(Protocol):
    """The lock that lets one thread run at a time."""

    def waits(self, until: float | None = None) -> None:
        """This thread waits; ``until``: it goes on by itself then (`REAL.now_s`)."""
        ...

    def goes_on(self) -> None:
        """This thread runs again, when it is its turn."""
        ...


_turns: Turns | None = None


def keep(turns: Turns | None) -> None:
    """From now on threads run in these turns; None: as they like."""
    global _turns
    _turns = turns


@contextlib.contextmanager
def apart() -> Generator[None]:
    """This thread waits for what is playhead's own: others run, and nothing of it is on the tape."""
    turns = _turns
    with Shadow():
        if turns is not None:
            turns.waits(REAL.now_s() + APART_S)
        try:
            yield
        finally:
            if turns is not None:
                turns.goes_on()
