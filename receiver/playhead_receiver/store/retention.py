"""Which runs have been kept for long enough. Pure; `Upkeep.delete` deletes them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from playhead_receiver.store.protocol import Query, RunSummary
from playhead_receiver.store.upkeep import FLAGGED, HELD, TEST, Deleted, Upkeep
from playhead_semconv.errors import ConfigurationError

DAY_S = 86_400.0
AT_ONCE = 64
"""Runs that one transaction deletes."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S}
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """How long what is kept, in seconds since its end. What runs, and what is held, is never deleted."""

    success_s: float = 7 * DAY_S
    failure_s: float = 30 * DAY_S
    """For runs that failed, were interrupted or were partly done."""
    flagged_s: float = 90 * DAY_S
    """At least so long, whatever else is said."""
    test_s: float = DAY_S
    """For runs that are marked as a test, and for successes outside of ``success_share``."""
    agents_s: Mapping[str, float] = {}
    """By agent, instead of ``success_s`` and ``failure_s``."""
    success_share: float = 1.0
    """Share of the successful runs that is kept for ``success_s``; which, their trace ids say."""
    budget_bytes: int | None = None
    """Above this size the oldest runs go, flagged ones last."""

    def keeps_s(self, run: RunSummary, marks: set[str]) -> float:
        """How long a run is kept after its end."""
        if run.agent in self.agents_s:
            kept = self.agents_s[run.agent]
        elif run.status != "success":
            kept = self.failure_s
        elif int(run.trace_id[:8], 16) < self.success_share * (1 << 32):
            kept = self.success_s
        else:
            kept = self.test_s
        if TEST in marks:
            kept = self.test_s
        return max(kept, self.flagged_s) if FLAGGED in marks else kept


def policy_of(text: str) -> Policy | None:
    """A policy in words, ``success=7d failure=30d agent:refund=1d share=0.1 budget=10G``; None: ``off``.

    What is not said is as in `Policy`. `ConfigurationError`.
    """
    if text.strip() == "off":
        return None
    given: dict[str, Any] = {}
    agents: dict[str, float] = {}
    for word in text.split():
        name, _, value = word.partition("=")
        if name in ("success", "failure", "flagged", "test"):
            given[f"{name}_s"] = duration_s(value)
        elif name.startswith("agent:"):
            agents[name.removeprefix("agent:")] = duration_s(value)
        elif name == "budget":
            given["budget_bytes"] = size_of(value)
        elif name == "share" and re.fullmatch(r"0(\.\d+)?|1(\.0+)?", value):
            given["success_share"] = float(value)
        else:
            raise ConfigurationError(
                f"{word!r} says nothing of how long runs are kept",
                hint="success=7d failure=30d flagged=90d test=1d agent:NAME=1d share=0.1 budget=10G",
            )
    return Policy(agents_s=agents, **given)


def duration_s(text: str) -> float:
    """``90d``, ``12h``, ``30m`` or ``10s`` in seconds. `ConfigurationError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text.strip())
    if found is None:
        raise ConfigurationError(f"{text!r} is no duration", hint="90d, 12h, 30m or 10s")
    return float(found[1]) * _UNITS[found[2]]


def size_of(text: str) -> int:
    """``10G``, ``500M``, ``64K`` or a number of bytes. `ConfigurationError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)i?B?", text.strip())
    if found is None:
        raise ConfigurationError(f"{text!r} is no size", hint="10G, 500M or 64K")
    return int(float(found[1]) * _SIZES[found[2]])


def expired(
    runs: Iterable[RunSummary], marks: Mapping[bytes, set[str]], policy: Policy, now_ns: int
) -> list[RunSummary]:
    """Those of ``runs`` whose time is over, oldest first."""
    found: list[RunSummary] = []
    for run in runs:
        own = marks.get(bytes.fromhex(run.trace_id), set())
        if run.ended_ns is None or HELD in own:
            continue
        if now_ns - run.ended_ns > policy.keeps_s(run, own) * 1e9:
            found.append(run)
    return sorted(found, key=lambda run: run.started_ns)


def apply(
    store: Upkeep, policy: Policy, now_ns: int, note: Callable[[str], None] = lambda _: None
) -> Deleted:
    """Delete what has expired and, oldest first, what is above the budget; then stray blobs.

    ``note`` is told the trace id of each run that goes.
    """
    marks = store.marks()
    runs = list(store.runs(Query(mode=None, limit=1 << 60)))
    over = expired(runs, marks, policy, now_ns)
    done = Deleted()
    for at in range(0, len(over), AT_ONCE):
        done = _sum(done, _delete(store, over[at : at + AT_ONCE], note))
    if policy.budget_bytes is not None:
        gone = {run.trace_id for run in over}
        left = [run for run in runs if run.trace_id not in gone and run.ended_ns is not None]
        left = [run for run in left if HELD not in marks.get(bytes.fromhex(run.trace_id), set())]
        left.sort(
            key=lambda run: (FLAGGED in marks.get(bytes.fromhex(run.trace_id), set()), run.started_ns)
        )
        while left and store.size_bytes() > policy.budget_bytes:
            count = max(1, len(left) // 50)
            done = _sum(done, _delete(store, left[:count], note))
            del left[:count]
    return _sum(done, store.sweep())


def names_of_runs(store: Upkeep) -> set[str]:
    """The names of all runs, of whatever mode."""
    return {run.name for run in store.runs(Query(mode=None, limit=1 << 60))}


def _delete(store: Upkeep, runs: list[RunSummary], note: Callable[[str], None]) -> Deleted:
    for run in runs:
        note(run.trace_id)
    return store.delete([bytes.fromhex(run.trace_id) for run in runs])


def _sum(one: Deleted, other: Deleted) -> Deleted:
    return Deleted(
        one.runs + other.runs,
        one.spans + other.spans,
        one.facts + other.facts,
        one.blobs + other.blobs,
        other.wiped,
    )
