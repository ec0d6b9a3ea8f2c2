"""The run of a process that has just been recorded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playhead_receiver.store.protocol import Query
from playhead_semconv import attributes as a
from playhead_semconv import events as e

if TYPE_CHECKING:
    from playhead_receiver.store.protocol import RunSummary, Store

NEWEST = 100
"""Runs that are looked at: those that started while the process ran."""

SKEW_NS = 1_000_000_000


def find_recorded(store: Store, pid: int, since_ns: int) -> RunSummary | None:
    """The run that process ``pid``, started at ``since_ns``, has left; None if there is none."""
    for run in store.runs(Query(mode=None, limit=NEWEST)):
        if run.started_ns >= since_ns - SKEW_NS and any(
            process_id(store, bytes.fromhex(instance)) == pid for instance in run.instances
        ):
            return run
    return None


def process_id(store: Store, instance: bytes) -> int | None:
    """The pid that a process instance had."""
    for fact in store.tape(instance).facts():
        if fact.name == e.PLAYHEAD_PROCESS_START:
            pid = fact.attributes.get(a.PLAYHEAD_PROCESS_PID)
            return None if pid is None else int(pid)
        break
    return None
