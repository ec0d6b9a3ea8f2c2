"""Limits the disk space of a spool folder."""

from __future__ import annotations

import os
import time
from pathlib import Path

COUNT_AGAIN_S = 2.0


class DiskBudget:
    """Disk budget of one spool folder, shared by all processes that use the folder."""

    def __init__(self, spool: Path, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self._spool = spool
        self._counted_at = 0.0
        self._spent = 0

    def allows(self, more_bytes: int) -> bool:
        """Whether ``more_bytes`` may be written. If so, they count as written."""
        now = time.monotonic()
        over = self._spent + more_bytes > self.limit_bytes
        if now - self._counted_at > COUNT_AGAIN_S or (over and now - self._counted_at > 0.1):
            self._spent = spent_bytes(self._spool)
            self._counted_at = time.monotonic()
            over = self._spent + more_bytes > self.limit_bytes
        if not over:
            self._spent += more_bytes
        return not over

    @property
    def spent_bytes(self) -> int:
        """Size of the folder at the last count, plus what this process has written since."""
        return self._spent


def spent_bytes(spool: Path) -> int:
    """Total size of all files below ``spool``."""
    total = 0
    for folder, _, names in os.walk(spool):
        for name in names:
            try:
                total += os.stat(os.path.join(folder, name)).st_size
            except OSError:
                continue  # delivered and deleted meanwhile
    return total
