"""Large runs that still grow: their summaries may be a little behind, as a fold reads all their spans.

If each new span of a run led to a fold of all its spans, the work would grow with the square of their
number. So the store keeps the last fold of a large run, and folds the run again when it has grown by a
share, or after a multiple of the processor time of the last fold. A run that does not run any more, one
that is not large, and one that this process has not summed up are always folded.
"""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Any, Final, NamedTuple

from playhead_receiver.storage.runs.summary_fold import SpanFold
from playhead_receiver.storage.sql.reading.summaries import (
    ComputedSummary,
    StoredRun,
    folded,
    summaries_of,
)
from playhead_receiver.storage.sql.tables.database import Db
from playhead_receiver.storage.values.run_summaries import RunSummary

LARGE: Final = 1_000
"""Number of spans from which a run is large."""
SHARE: Final = 0.25
"""Growth after which a large run is summed up again."""
RESTS: Final = 50
"""Ratio of rest to processor time after which it is summed up again."""
PATIENCE: Final = 2
"""Factor of both for readers, so that `LargeRuns.note` comes first and readers need not fold."""
MOST: Final = 1_000
"""Runs that are remembered, those that were summed up last."""


class _Known(NamedTuple):
    spans: SpanFold
    finished: int
    """Number of finished spans."""
    at_s: float
    """When they were folded, by `time.monotonic`."""
    cost_s: float
    """Processor time of the fold."""


class LargeRuns:
    """The last folds of large runs. One thread sums up, any thread reads and forgets."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Known] = {}

    def __len__(self) -> int:
        return len(self._known)

    def note(self, db: Db, computed: ComputedSummary, cost_s: float) -> None:
        """Remember a new fold if its run is large. ``cost_s``: processor time that it took."""
        trace_id, spans = computed.run.row.trace_id, computed.spans
        self._known.pop(trace_id, None)
        if spans.spans >= LARGE:
            self._known[trace_id] = _Known(spans, _count(db, trace_id), time.monotonic(), cost_s)
        while len(self._known) > MOST:
            self._known.pop(next(iter(self._known)), None)

    def forget(self, trace_ids: Collection[bytes]) -> None:
        """Remove deleted runs."""
        for trace_id in trace_ids:
            self._known.pop(trace_id, None)

    def may_wait(self, db: Db, run: StoredRun, now_ns: int) -> bool:
        """Whether an outdated run need not be summed up yet."""
        return self._recent(db, run, now_ns, 1) is not None

    def summaries(self, db: Db, runs: list[StoredRun], now_ns: int) -> list[RunSummary]:
        """The summaries of runs; those of outdated ones from a recent fold or from their spans."""
        folds = [self._fold(db, run, now_ns) if run.is_outdated else run.fold() for run in runs]
        return summaries_of(db, [run.row for run in runs], folds, now_ns)

    def _fold(self, db: Db, run: StoredRun, now_ns: int) -> SpanFold:
        recent = self._recent(db, run, now_ns, PATIENCE)
        return folded(db, run.row.trace_id) if recent is None else recent

    def _recent(self, db: Db, run: StoredRun, now_ns: int, patience: int) -> SpanFold | None:
        """The last fold of a run that is large and runs, if it is recent enough."""
        known = self._known.get(run.row.trace_id)
        if known is None or time.monotonic() >= known.at_s + patience * RESTS * known.cost_s:
            return None
        most = known.finished * (1 + patience * SHARE)
        if not known.finished <= _count(db, run.row.trace_id) < most:
            return None
        status = summaries_of(db, [run.row], [known.spans], now_ns)[0].status
        return known.spans if status == "running" else None


def _count(db: Db, trace_id: bytes) -> int:
    """The number of finished spans of a run, read from an index."""
    rows: Any = db.execute("SELECT count(*) FROM span WHERE trace_id = ?", (trace_id,))
    return next(iter(rows))[0]
