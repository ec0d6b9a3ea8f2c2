"""Keeps the store in order while the receiver runs, off the acknowledgement path."""

from __future__ import annotations

import threading
import time

from playhead_receiver.store import Upkeep
from playhead_semconv.errors import PlayheadError

POLL_S = 1.0
RESTS = 9
"""How much longer than it works it rests."""


class Keeper:
    """The thread that sums up runs and joins their frames. Intake goes first."""

    def __init__(self, store: Upkeep) -> None:
        self._store = store
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="playhead-keeper", daemon=True)
        self.problem = ""
        """Why nothing is done just now; empty while it is."""

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def stop(self) -> None:
        """Stop soon; the rest is done later. Idempotent."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._stop.is_set():
            begin = time.monotonic()
            try:
                if not self._store.sum_up():
                    self._store.compact()
                self.problem = ""
            except PlayheadError as problem:
                self.problem = problem.what
            self._stop.wait(max(POLL_S, RESTS * (time.monotonic() - begin)))
