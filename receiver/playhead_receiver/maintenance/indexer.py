"""Makes searchable what the store takes, off the acknowledgement path."""

from __future__ import annotations

import time

from playhead_receiver.host.worker_threads import Worker
from playhead_receiver.store import Upkeep

POLL_S = 0.25
RESTS_WHILE_BUSY = 9
"""How much longer than it works it rests while something comes in."""
FAR_BEHIND = 20_000
"""Bundles and runs of facts that may wait for that; then it rests no longer than it works."""


class Indexer(Worker):
    """The thread that indexes. Intake goes first, up to a lag; what is idle is used."""

    def __init__(self, store: Upkeep) -> None:
        super().__init__("index")
        self._store = store

    def turn(self) -> float:
        """Index some of what is not indexed yet."""
        before, begin = self._store.position(), time.monotonic()
        if not self._store.index():
            return POLL_S
        return (time.monotonic() - begin) * self._rests(before)

    def _rests(self, before: int) -> int:
        """How much longer than it worked it is to rest; ``before``: the position when it began."""
        if self._store.position() == before:
            return 0
        lag = self._store.lag()
        return 1 if lag.bundles + lag.fact_runs > FAR_BEHIND else RESTS_WHILE_BUSY
