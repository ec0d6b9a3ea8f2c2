"""The real clock, wherever the program's own is."""

from __future__ import annotations

import time
from typing import Final


class _Real:
    """Not names of a module, in whose place freezegun puts its own."""

    def __init__(self) -> None:
        self.now_s: Final = time.perf_counter
        """Not `monotonic`: time-machine changes it in place."""
        self.monotonic: Final = time.monotonic
        """As the standard library reads it."""
        self.time_ns: Final = time.time_ns
        self.sleep: Final = time.sleep


REAL: Final = _Real()
