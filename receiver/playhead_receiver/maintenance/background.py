"""Maintains the store while the receiver runs, off the acknowledgement path."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from playhead_receiver.maintenance.call_metrics import CallMetrics
from playhead_receiver.maintenance.jobs import serve
from playhead_receiver.maintenance.unnamed_calls import Meanings
from playhead_receiver.storage import Store
from playhead_receiver.storage.api.maintenance import (
    CallDerivation,
    FrameCompaction,
    LogEmptying,
    SharedMaintenance,
    Summaries,
)
from playhead_receiver.storage.api.retention import Ageing, History, Retention
from playhead_receiver.storage.api.store import needed, offered
from playhead_receiver.storage.retention import Outlook, Policy, apply, names_of_runs
from playhead_receiver.system.worker_threads import RepeatingThread
from playhead_replay.forks.workspace import sweep

T = TypeVar("T")

BY_POLICY = "retention"
"""Who deletes, as passed to ``note`` and written on tombstones."""
POLL_S = 0.5
RESTS = 9
"""Ratio of rest to work, unless ageing out falls behind the intake."""
ROLLS_S = 1.0
"""Seconds of one turn in which histories of services age out."""
EVERY_S = 600.0
"""Seconds between checks for expired runs."""
LAST_LOOK_S = 5.0
"""Seconds that the receiver stays, at its end, to determine the meanings of what came last."""


class Housekeeper(RepeatingThread):
    """The thread that sums up runs, joins their frames, and deletes what ``policy`` does not keep.

    It determines the meanings of requests that have no GenAI instrumentation. It lets what services did
    outside of requests age out by ``history``. It deletes the folders of deleted forks. It executes
    errands for the data folder. Intake has priority.
    """

    def __init__(
        self,
        store: Store,
        data_dir: Path,
        policy: Policy | None = None,
        history: History | None = None,
        note: Callable[[str, str], None] = lambda _by, _trace_id: None,
    ) -> None:
        """``note`` is called with who deletes and the trace id, for each deleted run.

        `NotOffered` if the engine of the store does not offer what ``policy`` or ``history`` needs.
        Other duties that it does not offer are left out.
        """
        super().__init__("keeper")
        self._note = note
        self._store = store
        self.calls = CallMetrics()
        self._retention = None if policy is None else needed(store, Retention)
        self._ageing = None if history is None else needed(store, Ageing)
        meanings = offered(store, CallDerivation)
        self._meanings = None if meanings is None else Meanings(meanings, self.calls.count)
        self._summaries = offered(store, Summaries)
        self._compaction = offered(store, FrameCompaction)
        self._logs = offered(store, LogEmptying)
        self._shared = offered(store, SharedMaintenance)
        self._data_dir = data_dir
        self.policy = policy
        self.outlook: Outlook | None = None
        """What the policy deletes next; None until it was applied."""
        self._history = history
        self._next_s = time.monotonic()
        self._failed: Exception | None = None
        self._rolls_on = False
        """Whether more is due to age out than there was time for."""

    def stop(self) -> None:
        """Stop, when the meanings of what has come are determined or `LAST_LOOK_S` are over. Idempotent.

        A recording ends with its receiver, and no other process looks before the next receiver starts.
        """
        works = self._thread.is_alive() and not self._stop.is_set()
        super().stop()
        if works and self._meanings is not None:
            self._try(partial(self._look_at_last, self._meanings))

    def _look_at_last(self, meanings: Meanings) -> None:
        until_s = time.monotonic() + LAST_LOOK_S
        with nullcontext(True) if self._shared is None else self._shared.exclusive_maintenance() as ours:
            while ours and meanings.left() and time.monotonic() < until_s:
                meanings.of_new()

    def turn(self) -> float:
        """Execute pending errands, or else some of the other duties."""
        begin, self._failed, self._rolls_on = time.monotonic(), None, False
        self._work()
        if self._failed is not None:
            raise self._failed
        rests = 1 if self._rolls_on else RESTS
        return max(POLL_S, rests * (time.monotonic() - begin))

    def _work(self) -> None:
        if serve(self._data_dir, self._store, self._note):
            return
        with nullcontext(True) if self._shared is None else self._shared.exclusive_maintenance() as ours:
            if ours:
                self._keep()

    def _keep(self) -> None:
        if self._ageing is not None and self._history is not None:
            self._try(partial(self._roll, self._ageing, self._history))
        if self._meanings is not None:
            self._try(self._meanings.of_new)
        behind = None if self._summaries is None else self._try(self._summaries.sum_up)
        if self._retention is not None and self.policy is not None and time.monotonic() >= self._next_s:
            self._next_s = time.monotonic() + EVERY_S
            self._try(partial(self._delete_expired, self._retention, self.policy))
            self._try(lambda: sweep(self._data_dir, lambda: names_of_runs(self._store)))
        if self._logs is not None:
            self._try(self._logs.empty_logs)
        if not behind and self._compaction is not None:
            self._try(self._compaction.compact)

    def _delete_expired(self, store: Retention, policy: Policy) -> None:
        note = partial(self._note, BY_POLICY)
        apply(store, policy, time.time_ns(), note, BY_POLICY, ahead=self._look_ahead)

    def _look_ahead(self, outlook: Outlook) -> None:
        self.outlook = outlook

    def _roll(self, store: Ageing, kept: History) -> None:
        """Let everything age out that is due, for at most `ROLLS_S`, whatever the other duties take."""
        until_s = time.monotonic() + ROLLS_S
        while store.age_out(kept):
            if time.monotonic() >= until_s:
                self._rolls_on = True
                return

    def _try(self, duty: Callable[[], T]) -> T | None:
        """Do a duty. If it fails, the others are still done; the first failure is raised after them."""
        try:
            return duty()
        except Exception as problem:
            self._failed = self._failed or problem
            return None
