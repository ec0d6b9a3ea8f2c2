"""``/v1/stats``: sums over runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Literal

from fastapi import APIRouter

from playhead_receiver.asking.asked_runs import ask_runs
from playhead_receiver.asking.language import read_language
from playhead_receiver.query.asked import Q, Reading
from playhead_receiver.query.models import Group, Stats
from playhead_receiver.store import Query as RunQuery
from playhead_receiver.store import RunSummary

MOST_RUNS = 20_000
"""Runs that are summed up: the newest."""

router = APIRouter(tags=["runs"])

By = Literal[
    "none", "agent", "version", "environment", "status", "model", "provider", "tool", "error", "day"
]

_KEYS: dict[str, Callable[[RunSummary], Iterable[str]]] = {
    "none": lambda run: (),
    "agent": lambda run: (run.agent,),
    "version": lambda run: (run.version,),
    "environment": lambda run: (run.environment,),
    "status": lambda run: (run.status,),
    "model": lambda run: run.models,
    "provider": lambda run: run.providers,
    "tool": lambda run: run.tools,
    "error": lambda run: run.error_types,
    "day": lambda run: (f"{datetime.fromtimestamp(run.started_ns / 1e9, UTC):%Y-%m-%d}",),
}


@router.get("/v1/stats")
def show_stats(asked: Reading, q: Q = "", by: By = "none") -> Stats:
    """Sums over the runs that are asked for, and over groups of them.

    A run with several models, tools or kinds of error counts whole in the group of each.
    """
    wanted = read_language(q, RunQuery(limit=MOST_RUNS))
    asked.note("read", "stats")
    total, groups, count = _empty(""), dict[str, Group](), 0
    for run in ask_runs(asked.store, wanted):
        count += 1
        _add(total, run)
        for key in _KEYS[by](run):
            _add(groups.setdefault(key, _empty(key)), run)
    lag = asked.store.lag()
    return Stats(
        total=total,
        groups=sorted(groups.values(), key=lambda group: (-group.runs, group.key)),
        truncated=count == MOST_RUNS,
        size_bytes=asked.store.size_bytes(),
        position=asked.store.position(),
        behind=lag.bundles + lag.fact_runs,
    )


def _empty(key: str) -> Group:
    return Group(
        key=key,
        runs=0,
        statuses={},
        steps=0,
        errors=0,
        input_tokens=0,
        output_tokens=0,
        cached_tokens=0,
        reasoning_tokens=0,
        cost_usd=None,
        unpriced_runs=0,
        duration_ns=0,
    )


def _add(group: Group, run: RunSummary) -> None:
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
