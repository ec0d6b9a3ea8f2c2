"""Waits of playhead itself in a thread of the program, which are not waits of the program."""

from __future__ import annotations

import contextlib
from collections.abc import Generator

from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.patching.runtime import RUNTIME
from playhead_instrumentation.patching.unpatched import REAL

APART_S = 30.0
"""Seconds until the thread counts as continuing by itself; longer than any wait of playhead itself."""


@contextlib.contextmanager
def apart() -> Generator[None]:
    """Context for a wait of playhead itself: other threads run, and nothing goes on the tape."""
    turns = RUNTIME.turns
    with Shadow():
        if turns is not None:
            turns.waits(REAL.now_s() + APART_S)
        try:
            yield
        finally:
            if turns is not None:
                turns.goes_on()
