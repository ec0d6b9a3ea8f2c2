"""Keeps the store in order while the receiver runs, off the acknowledgement path."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from playhead_receiver.errands import serve
from playhead_receiver.store import Upkeep
from playhead_receiver.store.retention import Policy, apply, names_of_runs
from playhead_replay.forks.workspace import sweep
from playhead_semconv.errors import PlayheadError

POLL_S = 0.5
RESTS = 9
"""How much longer than it works it rests."""
EVERY_S = 600.0
"""How often runs are looked for whose time is over."""


class Keeper:
    """The thread that sums up runs, joins their frames, and deletes what ``policy`` does not keep.

    With forks it deletes their folders.

    It does errands too, what others want done at its data folder. Intake goes first.
    """

    def __init__(self, store: Upkeep, data_dir: Path, policy: Policy | None = None) -> None:
        self._store = store
        self._data_dir = data_dir
        self._policy = policy
        self._next_s = time.monotonic()
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
                self._work()
                self.problem = ""
            except PlayheadError as problem:
                self.problem = problem.what
            except OSError as problem:
                self.problem = str(problem)
            self._stop.wait(max(POLL_S, RESTS * (time.monotonic() - begin)))

    def _work(self) -> None:
        if serve(self._data_dir, self._store) or self._store.sum_up():
            return
        if self._policy is not None and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + EVERY_S
            apply(self._store, self._policy, time.time_ns())
            sweep(self._data_dir, lambda: names_of_runs(self._store))
        self._store.compact()
