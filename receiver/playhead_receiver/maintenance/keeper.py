"""Keeps the store in order while the receiver runs, off the acknowledgement path."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from playhead_receiver.host.worker_threads import Worker
from playhead_receiver.maintenance.errands import serve
from playhead_receiver.maintenance.unnamed_calls import Meanings
from playhead_receiver.store import Upkeep
from playhead_receiver.store.keeping.retention import Policy, apply, names_of_runs
from playhead_receiver.store.keeping.service_history import History
from playhead_replay.forks.workspace import sweep

T = TypeVar("T")

BY_POLICY = "retention"
"""Who deletes."""
POLL_S = 0.5
RESTS = 9
"""How much longer than it works it rests, unless what ages out does not keep pace with what comes."""
ROLLS_S = 1.0
"""For how long in one turn what services did ages out."""
EVERY_S = 600.0
"""How often runs are looked for whose time is over."""


class Keeper(Worker):
    """The thread that sums up runs, joins their frames, and deletes what ``policy`` does not keep.

    It finds out what requests mean that no instrumentation named. What services did for no request
    ages out by ``history``. With forks it deletes their folders. It does errands too, what others want
    done at its data folder. Intake goes first.
    """

    def __init__(
        self,
        store: Upkeep,
        data_dir: Path,
        policy: Policy | None = None,
        history: History | None = None,
        note: Callable[[str, str], None] = lambda _by, _trace_id: None,
    ) -> None:
        """``note`` is told who deletes a run, and its trace id."""
        super().__init__("keeper")
        self._note = note
        self._store = store
        self._meanings = Meanings(store)
        self._data_dir = data_dir
        self._policy = policy
        self._history = history
        self._next_s = time.monotonic()
        self._failed: Exception | None = None
        self._rolls_on = False
        """Whether more is to age out than there was time for."""

    def turn(self) -> float:
        """One errand, or some runs, or a block."""
        begin, self._failed, self._rolls_on = time.monotonic(), None, False
        self._work()
        if self._failed is not None:
            raise self._failed
        rests = 1 if self._rolls_on else RESTS
        return max(POLL_S, rests * (time.monotonic() - begin))

    def _work(self) -> None:
        if serve(self._data_dir, self._store, self._note):
            return
        with self._store.housekeeping() as ours:
            if ours:
                self._keep()

    def _keep(self) -> None:
        history = self._history
        if history is not None:
            self._try(lambda: self._roll(history))
        self._try(self._meanings.of_new)
        behind = self._try(self._store.sum_up)
        if self._policy is not None and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + EVERY_S
            policy, note = self._policy, partial(self._note, BY_POLICY)
            self._try(lambda: apply(self._store, policy, time.time_ns(), note, BY_POLICY))
            self._try(lambda: sweep(self._data_dir, lambda: names_of_runs(self._store)))
        if not behind:
            self._try(self._store.compact)

    def _roll(self, kept: History) -> None:
        """Let all age out that is over, however long the other duties of a turn have taken."""
        until_s = time.monotonic() + ROLLS_S
        while self._store.roll(kept):
            if time.monotonic() >= until_s:
                self._rolls_on = True
                return

    def _try(self, duty: Callable[[], T]) -> T | None:
        """Do a duty. Where it fails the others are done all the same; the first failure is told then."""
        try:
            return duty()
        except Exception as problem:
            self._failed = self._failed or problem
            return None
