"""Makes searchable what the store takes, off the acknowledgement path."""

from __future__ import annotations

import threading
import time

from playhead_receiver.store import Upkeep
from playhead_semconv.errors import PlayheadError

POLL_S = 0.25
RESTS_WHILE_BUSY = 9
"""How much longer than it works it rests while something comes in."""
FAR_BEHIND = 20_000
"""Bundles and runs of facts that may wait for that; then it rests no longer than it works."""


class Indexer:
    """The thread that indexes. Intake goes first, up to a lag; what is idle is used."""

    def __init__(self, store: Upkeep) -> None:
        self._store = store
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="playhead-index", daemon=True)
        self.problem = ""
        """Why nothing is indexed just now; empty while it is."""

    def start(self) -> None:
        """Begin with what is not indexed yet."""
        self._thread.start()

    def stop(self) -> None:
        """Stop soon; the rest is indexed later. Idempotent."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            rest_s = POLL_S
            try:
                before, begin = self._store.position(), time.monotonic()
                if self._store.index():
                    rest_s = (time.monotonic() - begin) * self._rests(before)
                self.problem = ""
            except PlayheadError as problem:
                self.problem = problem.what
            self._stop.wait(rest_s)

    def _rests(self, before: int) -> int:
        """How much longer than it worked it is to rest; ``before``: the position when it began."""
        if self._store.position() == before:
            return 0
        lag = self._store.lag()
        return 1 if lag.bundles + lag.fact_runs > FAR_BEHIND else RESTS_WHILE_BUSY
