"""Maintains the store while the receiver runs, off the acknowledgement path."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TypeVar

from playhead_core.errors import PlayheadError
from playhead_receiver.maintenance.call_metrics import CallMetrics
from playhead_receiver.maintenance.jobs import execute_pending
from playhead_receiver.maintenance.unnamed_calls import UnnamedCalls
from playhead_receiver.storage import Store
from playhead_receiver.storage.api.maintenance import (
    CallDerivation,
    FrameCompaction,
    LogEmptying,
    SharedMaintenance,
    Summaries,
)
from playhead_receiver.storage.api.retention import Ageing, History, Retention
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import needed, offered
from playhead_receiver.storage.retention import Outlook, Policy, apply, names_of_runs
from playhead_replay.forks.workspace import sweep

RETRY_S = 0.5
"""Seconds of rest after a problem."""


class RepeatingThread:
    """Calls `turn` repeatedly. After a problem, which is kept in `problem`, it tries again."""

    def __init__(self, name: str) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"playhead-{name}", daemon=True)
        self.problem = ""
        """The problem of the last turn; empty if it had none."""

    def turn(self) -> float:
        """Do some of the work; return the seconds to rest after it."""
        raise NotImplementedError

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop after the current turn, and wait for that. Idempotent."""
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        rest_s = 0.0
        while not self._stop.wait(rest_s):
            try:
                rest_s = self.turn()
                self.problem = ""
            except PlayheadError as problem:
                self.problem = problem.what
                rest_s = RETRY_S
            except OSError as problem:
                self.problem = str(problem)
                rest_s = RETRY_S
            except Exception as problem:  # a bug of ours; the thread goes on
                if str(problem) != self.problem:
                    traceback.print_exc()
                self.problem = str(problem)
                rest_s = RETRY_S


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
"""Seconds that the receiver stays, at its end, for the last calls and runs."""


class MaintenanceThread(RepeatingThread):
    """The thread that sums up runs, joins their frames, and deletes runs that ``policy`` lets expire.

    It derives attributes of requests that have no GenAI instrumentation. Facts that services recorded
    outside of requests age out by ``history``. It deletes the folders of deleted forks. It executes
    jobs for the data folder. Intake has priority.
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
        unnamed_calls = offered(store, CallDerivation)
        self._unnamed_calls = (
            None if unnamed_calls is None else UnnamedCalls(unnamed_calls, self.calls.count)
        )
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
        """Stop when all calls are derived and all runs summed up, or after `LAST_LOOK_S`. Idempotent.

        A recording ends with its receiver, and no other process looks before the next receiver starts.
        """
        works = self._thread.is_alive() and not self._stop.is_set()
        super().stop()
        if works:
            self._try(partial(self._finish, time.monotonic() + LAST_LOOK_S))

    def _finish(self, until_s: float) -> None:
        calls, summaries = self._unnamed_calls, self._summaries
        with nullcontext(True) if self._shared is None else self._shared.exclusive_maintenance() as ours:
            while ours and calls is not None and calls.left() and time.monotonic() < until_s:
                calls.derive_new()
            while ours and summaries is not None and time.monotonic() < until_s:
                if not summaries.sum_up(1, final=True):
                    break

    def turn(self) -> float:
        """Execute pending jobs, or else some of the other duties."""
        begin, self._failed, self._rolls_on = time.monotonic(), None, False
        self._work()
        if self._failed is not None:
            raise self._failed
        rests = 1 if self._rolls_on else RESTS
        return max(POLL_S, rests * (time.monotonic() - begin))

    def _work(self) -> None:
        if execute_pending(self._data_dir, self._store, self._note):
            return
        with nullcontext(True) if self._shared is None else self._shared.exclusive_maintenance() as ours:
            if ours:
                self._keep()

    def _keep(self) -> None:
        if self._ageing is not None and self._history is not None:
            self._try(partial(self._roll, self._ageing, self._history))
        if self._unnamed_calls is not None:
            self._try(self._unnamed_calls.derive_new)
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


INDEX_POLL_S = 0.25
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
            return INDEX_POLL_S
        return (time.monotonic() - begin) * self._rests(before)

    def _rests(self, before: int) -> int:
        """Ratio of rest to work for this turn; ``before``: the store's position when the turn began."""
        if self._store.position() == before:
            return 0
        return 1 if self._store.lag().groups > FAR_BEHIND else RESTS_WHILE_BUSY
