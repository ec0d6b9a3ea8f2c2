"""Says which of the spans that have come in are counted as calls, and which bear tokens: each once.

Of spans that enclose each other one tells of the call (`playhead_semconv.genai.steps`). They may come
one by one, mostly the inner one first. So what is around a counted span is kept in memory, for the
runs that were looked at last.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from playhead_receiver.store.runs.summary_fold import (
    SpanRow,
    counted_steps,
    nesting_of,
    role_of,
    token_bearers,
)
from playhead_semconv.genai.steps import Role

MOST_RUNS, MOST_SPANS = 1000, 10_000
"""Runs of which something is kept, and spans of each; the oldest are forgotten first."""


class Counted(NamedTuple):
    """Ids of the spans that count, of those that have just come in."""

    calls: set[bytes]
    bearers: set[bytes]
    """Spans whose tokens count."""


class CountedOnce:
    """Keeps what is around counted spans. For one thread."""

    def __init__(self) -> None:
        self._runs: OrderedDict[bytes, tuple[_Around, _Around]] = OrderedDict()

    def open_ends(self, trace_id: bytes) -> set[bytes]:
        """Ids of spans that are around counted ones and had not come when these were counted."""
        kept = self._runs.get(trace_id, ())
        return {id for around in kept for id in around.open_ends()}

    def of(self, trace_id: bytes, rows: Sequence[SpanRow], fresh: Collection[bytes]) -> Counted:
        """Those that count. ``rows``: ``fresh`` and the open ends, with what is known around them."""
        calls, bearers = self._runs.setdefault(trace_id, (_Around(), _Around()))
        self._runs.move_to_end(trace_id)
        if len(self._runs) > MOST_RUNS:
            self._runs.popitem(last=False)
        nesting = nesting_of(rows)
        steps = counted_steps(rows, nesting)
        told = [row.span_id for row in rows if row.span_id in steps and role_of(row) >= Role.CALL]
        used = [row.span_id for row in token_bearers(rows, nesting)]
        before = {row.span_id for row in rows if row.end_ns is not None}.difference(fresh)
        parents = {row.span_id: row.parent for row in rows}
        called = {row.span_id for row in rows if role_of(row) >= Role.CALL}
        bearing = {row.span_id for row in rows if row.usage}
        return Counted(
            calls.counted(parents, told, before & called, fresh),
            bearers.counted(parents, used, before & bearing, fresh),
        )


class _Around:
    """The spans of a run that are around counted ones."""

    def __init__(self) -> None:
        self._come: dict[bytes, bool] = {}
        """Whether each has come, by id."""

    def open_ends(self) -> Iterable[bytes]:
        return (id for id, come in self._come.items() if not come)

    def counted(
        self,
        parents: Mapping[bytes, bytes],
        told: Iterable[bytes],
        before: Collection[bytes],
        fresh: Collection[bytes],
    ) -> set[bytes]:
        """Of those that tell, the fresh ones around and within which nothing was counted ``before``."""
        for id in [id for id in self.open_ends() if id in parents]:
            self._note(parents, id)
        counted = before - self._come.keys()
        found: set[bytes] = set()
        for id in told:
            if id in fresh and id not in self._come and counted.isdisjoint(_above(parents, id)):
                found.add(id)
        for id in found:
            self._note(parents, parents[id])
        while len(self._come) > MOST_SPANS:
            del self._come[next(iter(self._come))]
        return found

    def _note(self, parents: Mapping[bytes, bytes], id: bytes) -> None:
        """Keep a span and what is around it."""
        while id and not self._come.get(id):
            self._come[id] = id in parents
            id = parents.get(id, b"")


def _above(parents: Mapping[bytes, bytes], id: bytes) -> list[bytes]:
    """What is around a span."""
    found: list[bytes] = []
    while (id := parents.get(id, b"")) and id not in found:
        found.append(id)
    return found
