"""Finds the run of a process that has just been recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from playhead_receiver.store.values.run_summaries import Query
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_receiver.store.protocol.store import Store
    from playhead_receiver.store.values.run_summaries import RunSummary

NEWEST = 100
"""Largest number of runs that are checked, those that started while the process ran."""

SKEW_NS = 1_000_000_000


def find_recorded(store: Store, pid: int, since_ns: int, by: str = "") -> RunSummary | None:
    """The run of process ``pid``, which was started at ``since_ns``; None if there is none.

    If that process is not Python itself (``uv run``, a shell, make), a run of one of its children, which
    are recognized by the word ``by``: the first that is not empty, else the first.
    """
    below: list[RunSummary] = []
    for run in store.runs(Query(mode=None, limit=NEWEST)):
        if run.started_ns < since_ns - SKEW_NS:
            continue
        starts = [_start_of(store, bytes.fromhex(instance)) for instance in run.instances]
        if any(at.get(a.PLAYHEAD_PROCESS_PID) == pid for at in starts):
            return run
        if by and any(at.get(a.PLAYHEAD_PROCESS_RECORDED_BY) == by for at in starts):
            below.append(run)
    return min(below, key=lambda run: (not run.steps, run.is_empty, run.started_ns), default=None)


def _start_of(store: Store, instance: bytes) -> Mapping[str, Any]:
    """Attributes of a process instance's start fact."""
    first = next(iter(store.tape(instance).facts()), None)
    return {} if first is None or first.name != e.PLAYHEAD_PROCESS_START else first.attributes
