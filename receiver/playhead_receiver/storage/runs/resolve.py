"""Resolves the name of a run, as a user types it. Engine-neutral."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from typing import Protocol

import msgspec

from playhead_core.errors import RunAmbiguous, RunUnknown
from playhead_receiver.storage.values.run_summaries import Query, RunStatus, RunSummary

SHORTEST_PREFIX = 8

SPAN_DIGITS = 16
"""Length of a span id in hex digits."""

LOOKED_THROUGH = 1000
"""How many of the latest runs are searched for one that has steps."""

_HEX = re.compile(r"[0-9a-f]+\Z")
_WHOLE = re.compile(r"[0-9a-f]{32}")
"""Beginning of a run id, and a trace id."""
_LAST = re.compile(r"last(?:-(\d+))?\Z")


class RunLookup(Protocol):
    """The queries that an engine provides for name resolution."""

    def runs(self, query: Query) -> Iterator[RunSummary]:
        """Summaries, newest first."""
        ...

    def run_named(self, name: str) -> RunSummary | None:
        """The run with exactly this name; None if there is none."""
        ...

    def runs_from(self, low: bytes, high: bytes, limit: int) -> list[RunSummary]:
        """At most ``limit`` runs whose trace id lies between ``low`` and ``high``, both included."""
        ...

    def runs_with_span(self, span_id: bytes, limit: int) -> list[RunSummary]:
        """At most ``limit`` runs that have a span with this id."""
        ...

    def run_names(self) -> list[str]:
        """All names, newest first."""
        ...


def resolve(name: str, runs: RunLookup) -> RunSummary:
    """The run that ``name`` means.

    ``name``: a run's name, ``last``, ``last-N``, ``failed``, the name of an agent (its latest run), a
    run id, a trace id, a prefix of one of at least 8 digits, or the id of one of its spans. Runs that
    are empty come after all others when the last ones are counted.
    `RunUnknown` lists similar names, `RunAmbiguous` the candidates.
    """
    name = name.strip()
    exact = runs.run_named(name)
    if exact is not None:
        return exact
    recent = _LAST.match(name)
    if recent is not None:
        back = int(recent[1] or 0)
        found = _latest(runs, back + 1)
        if len(found) > back:
            return found[back]
        raise RunUnknown(
            "no runs yet" if not found else f"there are only {len(found)} runs",
            hint="playhead record agent.py" if not found else "playhead ls",
        )
    if name == "failed":
        statuses: tuple[RunStatus, ...] = ("failure", "interrupted")
        found = [run for status in statuses for run in runs.runs(Query(status=status, limit=1))]
        if found:
            return max(found, key=lambda run: run.started_ns)
        raise RunUnknown("no run has failed", hint="playhead ls")
    if not _WHOLE.match(name):
        own = _latest(runs, 1, name)
        if own:
            return own[0]
    digits = name.lower().split("-")[0]
    if _HEX.match(digits) and SHORTEST_PREFIX <= len(digits) <= 32:
        return _by_prefix(name, digits, runs)
    names = runs.run_names()
    near = difflib.get_close_matches(name, names, n=3) or names[:1]
    raise RunUnknown(
        f'no run is called "{name}"',
        hint=f"did you mean {', '.join(near)}?" if near else "playhead record agent.py",
    )


def _latest(runs: RunLookup, count: int, agent: str | None = None) -> list[RunSummary]:
    """The latest runs, of one agent if it is given, newest first; empty ones after all others."""
    wanted = Query(agent=agent, limit=count)
    found = list(runs.runs(wanted))
    if any(run.is_empty for run in found):
        more = msgspec.structs.replace(wanted, limit=count + LOOKED_THROUGH)
        found = sorted(runs.runs(more), key=lambda run: run.is_empty)
    return found[:count]


def _by_prefix(name: str, digits: str, runs: RunLookup) -> RunSummary:
    low = bytes.fromhex(digits.ljust(32, "0"))
    high = bytes.fromhex(digits.ljust(32, "f"))
    found = runs.runs_from(low, high, 5)
    if len(digits) == SPAN_DIGITS:
        found = runs.runs_with_span(bytes.fromhex(digits), 5) or found
    if not found:
        raise RunUnknown(f'no run has the id "{name}"', hint="playhead ls")
    if len(found) > 1:
        listed = " or ".join(f"{run.name} ({run.trace_id})" for run in found)
        raise RunAmbiguous(f'"{name}" is {listed}')
    return found[0]
