"""Decides which arrived spans count as calls, and which bear tokens, so that each call counts once.

Of several spans that describe one call, one is counted (`playhead_genai.steps`). They may arrive one by
one, mostly the inner one first. So counted spans, their ancestors and the latest calls are kept in
memory, for the most recent runs.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from playhead_genai.steps import Nesting, Role
from playhead_receiver.storage.runs.summary_fold import counted_steps, nesting_of, role_of, token_bearers
from playhead_receiver.storage.values.span_labels import Label, SpanRow

MOST_RUNS, MOST_SPANS, MOST_CALLS = 1000, 10_000, 100
"""Limits on remembered runs, and on ids and calls of each; the oldest are forgotten first."""


class CountedSpans(NamedTuple):
    """Ids of the newly arrived spans that count."""

    calls: set[bytes]
    bearers: set[bytes]
    """Spans whose tokens count."""


class CountedOnce:
    """Remembers which spans were counted. For one thread."""

    def __init__(self) -> None:
        self._runs: OrderedDict[bytes, _Run] = OrderedDict()

    def open_ends(self, trace_id: bytes) -> set[bytes]:
        """Ids of ancestors of counted spans that had not arrived when these were counted."""
        run = self._runs.get(trace_id)
        return set() if run is None else {*run.calls.open_ends(), *run.bearers.open_ends()}

    def of(self, trace_id: bytes, rows: Sequence[SpanRow], fresh: Collection[bytes]) -> CountedSpans:
        """The spans that count. ``rows``: ``fresh`` and the open ends, with their known ancestors."""
        run = self._runs.setdefault(trace_id, _Run())
        self._runs.move_to_end(trace_id)
        if len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        rows = run.with_last_calls(rows)
        nesting = nesting_of(rows)
        parents = {row.span_id: row.parent for row in rows}
        steps = counted_steps(rows, nesting).intersection(fresh)
        calls = [row.span_id for row in rows if row.span_id in steps and role_of(row) >= Role.CALL]
        bearers = [
            row.span_id
            for row in token_bearers(rows, nesting)
            if row.span_id in fresh and run.is_first(row.label)
        ]
        return CountedSpans(
            run.calls.add(nesting, parents, calls), run.bearers.add(nesting, parents, bearers)
        )


class _Run:
    """The memory of `CountedOnce` about a run."""

    def __init__(self) -> None:
        self.calls, self.bearers = _Kept(), _Kept()
        self._last_calls: dict[bytes, SpanRow] = {}
        self._fetched: dict[str, None] = {}

    def is_first(self, label: Label) -> bool:
        """Whether a response was not counted before; True for calls and for spans that fetch none."""
        if not label.fetched:
            return True
        is_first = label.call or label.fetched not in self._fetched
        self._fetched[label.fetched] = None
        _forget(self._fetched, MOST_CALLS)
        return is_first

    def with_last_calls(self, rows: Sequence[SpanRow]) -> list[SpanRow]:
        """Return ``rows`` and the latest calls, which a sibling span may describe again."""
        found = self._last_calls | {row.span_id: row for row in rows}
        self._last_calls |= {row.span_id: row for row in rows if role_of(row) >= Role.CALL}
        _forget(self._last_calls, MOST_CALLS)
        return list(found.values())


class _Kept:
    """The spans of a run that were counted, and their ancestors."""

    def __init__(self) -> None:
        self._counted: dict[bytes, None] = {}
        self._around: dict[bytes, bool] = {}
        """Whether each ancestor has arrived, by id."""

    def open_ends(self) -> Iterable[bytes]:
        """Ids of ancestors that have not arrived."""
        return (id for id, come in self._around.items() if not come)

    def add(
        self, nesting: Nesting[bytes], parents: Mapping[bytes, bytes], found: Iterable[bytes]
    ) -> set[bytes]:
        """Of spans that describe calls, those whose call was not counted yet. Marks them as counted."""
        for id in [id for id in self.open_ends() if id in parents]:
            self._note(parents, id)
        # Spans whose call was described by a span that arrived, and was counted, earlier.
        told = {nesting.told_by(id) for id in parents if id in self._counted}
        new = {
            id
            for id in found
            if id not in self._around
            and id not in told
            and not any(one in self._counted for one in nesting.above(id))
        }
        for id in new:
            self._counted[id] = None
            self._note(parents, parents[id])
        _forget(self._counted, MOST_SPANS)
        _forget(self._around, MOST_SPANS)
        return new

    def _note(self, parents: Mapping[bytes, bytes], id: bytes) -> None:
        """Remember a span and its ancestors."""
        while id and not self._around.get(id):
            self._around[id] = id in parents
            id = parents.get(id, b"")


def _forget(kept: dict[Any, Any], most: int) -> None:
    """Drop the oldest entries beyond ``most``."""
    while len(kept) > most:
        del kept[next(iter(kept))]
