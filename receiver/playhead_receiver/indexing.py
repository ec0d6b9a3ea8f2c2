"""Makes searchable what the store takes, off the acknowledgement path."""

from __future__ import annotations

import threading
import time

from playhead_receiver.store import Upkeep
from playhead_semconv.errors import PlayheadError

POLL_S = 0.25


class Indexer:
    """The thread that indexes. It rests as long as it works, so that intake goes first."""

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
            begin = time.monotonic()
            try:
                done = self._store.index()
                self.problem = ""
            except PlayheadError as problem:
                self.problem, done = problem.what, 0
            self._stop.wait(time.monotonic() - begin if done else POLL_S)
