"""Indexes new content of the store for the search, off the acknowledgement path."""

from __future__ import annotations

import time

from playhead_receiver.storage.api.search import Search
from playhead_receiver.system.worker_threads import RepeatingThread

POLL_S = 0.25
RESTS_WHILE_BUSY = 9
"""Ratio of rest to work while data comes in."""
FAR_BEHIND = 20_000
"""Lag in bundles and runs of facts above which it rests only as long as it works."""


class Indexer(RepeatingThread):
    """The thread that indexes. Intake has priority up to a certain lag; idle time is used fully."""

    def __init__(self, store: Search) -> None:
        super().__init__("index")
        self._store = store

    def turn(self) -> float:
        """Index some more of the store."""
        before, begin = self._store.position(), time.monotonic()
        if not self._store.index():
            return POLL_S
        return (time.monotonic() - begin) * self._rests(before)

    def _rests(self, before: int) -> int:
        """Ratio of rest to work for this turn; ``before``: the store's position when the turn began."""
        if self._store.position() == before:
            return 0
        return 1 if self._store.lag().groups > FAR_BEHIND else RESTS_WHILE_BUSY
