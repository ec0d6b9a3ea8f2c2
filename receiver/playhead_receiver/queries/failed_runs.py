"""Reads the failed runs of a query with the failure that explains each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from playhead_analysis.failure_kinds import FailedRun, FailureKinds, cause_of, kinds_of
from playhead_analysis.paths import RunPath
from playhead_core.errors import RunUnknown
from playhead_receiver.queries.run_paths import SelectedPaths
from playhead_receiver.storage import Store
from playhead_receiver.storage.api.store import OF_ONE_RUN
from playhead_replay.failures.find import failures_of
from playhead_replay.run.run import Run

MOST_FAILED: Final = 500
"""Failed runs that are read, the newest ones: why a run failed is known from its tapes alone."""


def failure_kinds(store: Store, selected: SelectedPaths) -> FailureKinds:
    """Group the failed runs among some by cause.

    A run whose process fell silent, such as one that was stopped, has failed only if something says so.
    """
    found = list(failed_runs(store, selected.paths))
    failed = [one for one in found if one.failure is not None or one.path.status == "failure"]
    others = [path for path in selected.paths if not path.failed]
    return FailureKinds(
        runs=len(selected.paths),
        failed=len(selected.paths) - len(others) - (len(found) - len(failed)),
        truncated=selected.truncated,
        kinds=kinds_of(failed, others),
    )


def failed_runs(store: Store, paths: Iterable[RunPath]) -> Iterator[FailedRun]:
    """Yield the failed runs among some, at most `MOST_FAILED`, each with what explains it."""
    failed = 0
    for path in paths:
        if not path.failed or failed == MOST_FAILED:
            continue
        failed += 1
        try:
            run = Run.load(store, path.trace_id)
            cause = cause_of(failures_of(run))
        except RunUnknown:  # deleted in the meantime
            continue
        except OF_ONE_RUN:
            cause = None
        yield FailedRun(path, cause)
