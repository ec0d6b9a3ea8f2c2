"""The real clock, independent of the program's clock."""

from __future__ import annotations

import time
from typing import Final


class _Real:
    """Holds the functions as attributes, because freezegun replaces names in modules."""

    def __init__(self) -> None:
        self.now_s: Final = time.perf_counter
        """Not `monotonic`, which time-machine changes in place. In seconds."""
        self.monotonic: Final = time.monotonic
        """The clock that the standard library reads. In seconds."""
        self.time_ns: Final = time.time_ns
        self.sleep: Final = time.sleep


REAL: Final = _Real()
