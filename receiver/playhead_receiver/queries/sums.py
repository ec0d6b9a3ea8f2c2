"""Sums over runs, and over groups of them that have something in common."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

from typing_extensions import TypedDict

from playhead_receiver.storage import Store
from playhead_receiver.storage.api.maintenance import Statistics
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import needed, offered
from playhead_receiver.storage.values.run_summaries import RunSummary

MOST_RUNS = 20_000
"""Number of runs that are summed up, newest first."""

By: TypeAlias = Literal[
    "none",
    "agent",
    "agent_type",
    "version",
    "release",
    "environment",
    "user",
    "conversation",
    "tag",
    "prompt",
    "prompt_version",
    "status",
    "model",
    "provider",
    "tool",
    "error",
    "failure",
    "day",
    "hour",
    "minute",
]
WAYS: tuple[By, ...] = get_args(By)
"""What runs can be grouped by."""

_KEYS: dict[By, Callable[[RunSummary], Iterable[str]]] = {
    "none": lambda run: (),
    "agent": lambda run: (run.agent,),
    "agent_type": lambda run: run.agent_types,
    "version": lambda run: (run.version,),
    "release": lambda run: run.releases,
    "environment": lambda run: (run.environment,),
    "user": lambda run: run.users,
    "conversation": lambda run: run.conversations,
    "tag": lambda run: run.tags,
    "prompt": lambda run: run.prompts,
    "prompt_version": lambda run: run.prompt_versions,
    "status": lambda run: (run.status,),
    "model": lambda run: run.models,
    "provider": lambda run: run.providers,
    "tool": lambda run: run.tools,
    "error": lambda run: run.error_types,
    "failure": lambda run: run.failure_codes,
    "day": lambda run: (_began(run, "%Y-%m-%d"),),
    "hour": lambda run: (_began(run, "%Y-%m-%dT%H:00Z"),),
    "minute": lambda run: (_began(run, "%Y-%m-%dT%H:%MZ"),),
}


def _began(run: RunSummary, form: str) -> str:
    return datetime.fromtimestamp(run.started_ns / 1e9, UTC).strftime(form)


@dataclass(kw_only=True, slots=True)
class SummedRuns:
    """The sum over runs that have something in common."""

    key: str
    """What they have in common; empty for the sum over all."""
    runs: int = 0
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    steps: int = 0
    errors: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0
    cost_usd: float | None = None
    """Null if no price is known."""
    unpriced_runs: int = 0
    """Runs with calls of unknown price, which the cost leaves out."""
    duration_ns: int = 0
    duration_p50_ns: int | None = None
    """50th percentile (nearest rank) of finished runs; null if none has finished."""
    duration_p90_ns: int | None = None
    duration_p99_ns: int | None = None


class RunStats(TypedDict):
    """Sums over runs, and over groups of them."""

    total: SummedRuns
    groups: list[SummedRuns]
    truncated: bool
    """Whether more runs matched than were read."""
    size_bytes: int
    """Of the store."""
    position: int
    behind: int
    """Groups of spans and facts that cannot be searched yet."""


class _Sum:
    """A group that is being summed up."""

    def __init__(self, key: str) -> None:
        self.group = SummedRuns(key=key)
        self._took_ns: list[int] = []

    def add(self, run: RunSummary) -> None:
        group = self.group
        group.runs += 1
        group.statuses[run.status] = group.statuses.get(run.status, 0) + 1
        group.steps += run.steps
        group.errors += run.errors
        group.input_tokens += run.input_tokens
        group.output_tokens += run.output_tokens
        group.cached_tokens += run.cached_tokens
        group.reasoning_tokens += run.reasoning_tokens
        if run.cost_usd is not None:
            group.cost_usd = round((group.cost_usd or 0.0) + run.cost_usd, 9)
        group.unpriced_runs += bool(run.unpriced)
        group.duration_ns += run.last_ns - run.started_ns
        if run.ended_ns is not None:
            self._took_ns.append(max(run.ended_ns - run.started_ns, 0))

    def done(self) -> SummedRuns:
        took = sorted(self._took_ns)
        found: dict[str, Any] = {f"duration_p{one}_ns": percentile(took, one) for one in (50, 90, 99)}
        return replace(self.group, **found)


def percentile(ascending: Sequence[int], percent: int) -> int | None:
    """The percentile by nearest rank; None without values.

    >>> percentile([1, 2, 3, 4], 50), percentile([1, 2, 3, 4], 99), percentile([], 50)
    (2, 4, None)
    """
    if not ascending:
        return None
    return ascending[max(math.ceil(len(ascending) * percent / 100), 1) - 1]


def summed(runs: Iterable[RunSummary], by: By) -> tuple[SummedRuns, list[SummedRuns]]:
    """The sum over ``runs``, and over each group of them, the largest first.

    A run with several models, users or other values counts whole in the group of each.
    """
    total, groups = _Sum(""), dict[str, _Sum]()
    for run in runs:
        total.add(run)
        for key in _KEYS[by](run):
            groups.setdefault(key, _Sum(key)).add(run)
    found = [one.done() for one in groups.values()]
    return total.done(), sorted(found, key=lambda group: (-group.runs, group.key))


FACETS: dict[str, By] = {
    "status": "status",
    "agent": "agent",
    "version": "version",
    "model": "model",
    "tool": "tool",
    "failure": "failure",
    "user": "user",
    "tag": "tag",
    "env": "environment",
    "release": "release",
    "prompt": "prompt",
}
"""Fields of the query language whose values are counted, and what runs are grouped by for each."""


def stats_of(store: Store, runs: Iterable[RunSummary], by: By) -> RunStats:
    """Sum up the runs that a query found. `NotOffered` if the store has no statistics."""
    search = offered(store, Search)
    total, groups = summed(runs, by)
    return {
        "total": total,
        "groups": groups,
        "truncated": total.runs == MOST_RUNS,
        "size_bytes": needed(store, Statistics).size_bytes(),
        "position": store.position(),
        "behind": 0 if search is None else search.lag().groups,
    }


def no_runs() -> RunStats:
    """The sums of an empty store."""
    return {
        "total": SummedRuns(key=""),
        "groups": [],
        "truncated": False,
        "size_bytes": 0,
        "position": 0,
        "behind": 0,
    }


def count_facets(
    runs: Iterable[RunSummary], most: int, without_idle: bool
) -> tuple[int, dict[str, list[tuple[str, int]]]]:
    """Count runs, and by field the runs of each value, the most frequent ones first.

    ``without_idle``: idle runs are not in the total. They are in the count of their values, since a
    list with a condition has them.
    """
    total = 0
    counts = {field: Counter[str]() for field in FACETS}
    for run in runs:
        total += not (without_idle and run.is_idle)
        for name, by in FACETS.items():
            counts[name].update({key for key in _KEYS[by](run) if key})
    ranked = {
        field: sorted(found.items(), key=lambda one: (-one[1], one[0]))[:most]
        for field, found in counts.items()
    }
    return total, ranked
