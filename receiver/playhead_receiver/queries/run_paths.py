"""Reads the paths of the runs that match a query, for analyses over many runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from playhead_analysis import RunPath, read_path
from playhead_core.errors import RunUnknown
from playhead_receiver.queries.language import read_language
from playhead_receiver.queries.matching_runs import ask_runs
from playhead_receiver.storage import Query, RunSummary, Store
from playhead_receiver.storage.api.store import OF_ONE_RUN

MOST_RUNS: Final = 10_000
"""Largest number of runs that an analysis reads, the newest ones."""
MOST_STEPS: Final = 2_000_000
"""Largest number of steps that an analysis holds."""


@dataclass(frozen=True, slots=True)
class SelectedPaths:
    """The paths of the runs that match a query."""

    paths: list[RunPath]
    truncated: bool
    """Whether more runs match."""
    unreadable: list[str]
    """Names of runs that could not be read: they are damaged."""


def select_paths(
    store: Store, query: str, limit: int = 1000, *, with_states: bool = False
) -> SelectedPaths:
    """Return the paths of the newest runs with steps that match a query. `UsageError`."""
    return paths_of(store, matching(store, query, limit + 1), limit, with_states=with_states)


def matching(store: Store, query: str, limit: int) -> Iterator[RunSummary]:
    """Yield the newest runs with steps that match a query. `UsageError`."""
    return ask_runs(store, read_language(query, Query(limit=limit)))


def paths_of(
    store: Store, runs: Iterable[RunSummary], limit: int, *, with_states: bool = False
) -> SelectedPaths:
    """Return the paths of some runs, at most ``limit``."""
    paths: list[RunPath] = []
    unreadable: list[str] = []
    steps = 0
    for run in runs:
        if len(paths) >= limit or steps >= MOST_STEPS:
            return SelectedPaths(paths, True, unreadable)
        if not run.steps:
            continue
        try:
            path = read_path(store, run, with_states=with_states)
        except RunUnknown:  # deleted in the meantime
            continue
        except OF_ONE_RUN:
            unreadable.append(run.name)
            continue
        paths.append(path)
        steps += len(path.steps)
    return SelectedPaths(paths, False, unreadable)
