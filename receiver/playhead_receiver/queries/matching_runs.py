"""Finds the runs that match a query: by their properties, and by text that occurs in them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec

from playhead_core.errors import PlayheadError, RunUnknown
from playhead_receiver.queries.language import ParsedQuery
from playhead_receiver.storage import Hit, Query, RunSummary, Store
from playhead_receiver.storage.api.search import Search
from playhead_receiver.storage.api.store import needed
from playhead_receiver.storage.runs.attribute_conditions import meets
from playhead_receiver.storage.runs.listing import asks_for, order_of, parse_cursor
from playhead_replay import Run
from playhead_replay.transitions import session_of, transitions_of

RUNS = 1000
"""Largest number of runs that are searched for a text; if more contain it, the most recent ones."""
FEW = 1000
"""Up to this many runs of a query are listed at once before a text search; else each is looked up."""
_ANY_ORDER: dict[str, Any] = {"limit": FEW, "sort": "started", "ascending": False, "after": ""}


def ask_runs(store: Store, parsed: ParsedQuery) -> Iterator[RunSummary]:
    """The runs in the order and from the position that the query gives. `UsageError`."""
    if not parsed.text:
        return store.runs(resolved(store, parsed.query))
    wanted = iter(sorted(_runs_saying(store, parsed), key=lambda run: order_of(run, parsed.query)))
    after = parse_cursor(parsed.query)
    if after is not None:
        measure, trace_id = after
        place = (measure if parsed.query.ascending else -measure), trace_id
        wanted = (run for run in wanted if order_of(run, parsed.query) > place)
    return islice(wanted, parsed.query.limit)


def ask_hits(store: Store, parsed: ParsedQuery) -> Iterator[tuple[RunSummary, Hit]]:
    """Occurrences of the text in the runs that match the query, newest first. `UsageError`."""
    runs = MatchingRuns(store, parsed.query)
    if runs.none:
        return
    everything = parsed.query == Query(mode=None, limit=parsed.query.limit)
    search = needed(store, Search).search
    for hit in search(parsed.text, parsed.query.limit, None if everything else runs.has):
        run = runs.run(bytes.fromhex(hit.trace_id))
        if run is not None:
            yield run, hit


def resolved(store: Store, query: Query) -> Query:
    """Return a query for a tree of runs, or for a status of sessions, as a query for their traces.

    `RunUnknown` if the root of the tree is not known.
    """
    traces = query.traces
    if query.root:
        tree = _tree(store, query.root)
        traces = frozenset(tree if traces is None else tree & traces)
    if query.session:
        running = store.runs(Query(status="running", mode=None, limit=RUNS))
        of_status = {bytes.fromhex(run.trace_id) for run in running if _has_status(store, run, query)}
        traces = frozenset(of_status if traces is None else of_status & traces)
    return msgspec.structs.replace(query, root="", session="", traces=traces)


def _has_status(store: Store, summary: RunSummary, query: Query) -> bool:
    """Return whether the session of a run has the status of a query; False if it cannot be read."""
    try:
        run = Run.load(store, summary.trace_id)
        return session_of(run, transitions_of(run)).status == query.session
    except PlayheadError:
        return False


def _tree(store: Store, name: str) -> set[bytes]:
    """Return the trace ids of a run, of those that it triggered, and so on."""
    root = store.resolve(name)
    tree, new = {bytes.fromhex(root.trace_id)}, [root]
    while new and len(tree) < RUNS:
        parent = new.pop()
        for name in (parent.trace_id, parent.name):
            below = Query(words=(("parent", name),), mode=None, limit=RUNS)
            found = [run for run in store.runs(below) if bytes.fromhex(run.trace_id) not in tree]
            tree.update(bytes.fromhex(run.trace_id) for run in found)
            new += found
    return tree


def _runs_saying(store: Store, parsed: ParsedQuery) -> list[RunSummary]:
    """The runs that match the query and contain all words of its text."""
    runs = MatchingRuns(store, parsed.query)
    met: set[bytes] = set()

    def is_another(trace_id: bytes) -> bool:
        if trace_id in met or not runs.has(trace_id):
            return False
        met.add(trace_id)
        return True

    if not runs.none:
        needed(store, Search).search(parsed.text, RUNS, is_another)
    return [run for trace_id in met if (run := runs.run(trace_id)) is not None]


class MatchingRuns:
    """Tells which traces match a query: looks each up once, or lists all at once if they are few."""

    def __init__(self, store: Store, query: Query) -> None:
        self._store = store
        self._query = msgspec.structs.replace(resolved(store, query), **_ANY_ORDER)
        self._known: dict[bytes, RunSummary | None] = {}
        self._all = False
        if self._query != Query(mode=query.mode, **_ANY_ORDER):
            some = list(store.runs(self._query))
            self._known = {bytes.fromhex(run.trace_id): run for run in some}
            self._all = len(some) < FEW

    @property
    def none(self) -> bool:
        """Whether it is known that no run matches."""
        return self._all and not self._known

    def has(self, trace_id: bytes) -> bool:
        """Whether this trace is one of them."""
        return self.run(trace_id) is not None

    def run(self, trace_id: bytes) -> RunSummary | None:
        """The run, if it matches the query."""
        if trace_id in self._known or self._all:
            return self._known.get(trace_id)
        try:
            found = self._store.resolve(trace_id.hex())
        except RunUnknown:  # deleted in the meantime
            found = None
        wanted = found is not None and selects(self._store, self._query, found)
        self._known[trace_id] = found if wanted else None
        return self._known[trace_id]


def selects(store: Store, query: Query, run: RunSummary) -> bool:
    """Whether a query selects a run, wherever it is in the order."""
    if not asks_for(query, run):
        return False
    return not query.attributes or meets(store, bytes.fromhex(run.trace_id), query.attributes)


AGAIN_S = 0.5
"""Seconds for which the cached result for a run is valid."""
KNOWN = 1000
"""Largest number of cached runs."""


class Watched:
    """The runs of a query; each is looked up when data for it arrives."""

    def __init__(self, store: Store, query: Query) -> None:
        self._store = store
        self._query = query
        self._known: dict[bytes, tuple[RunSummary | None, float]] = {}

    def run(self, trace_id: bytes) -> RunSummary | None:
        """The run, if it matches the query."""
        found, until = self._known.get(trace_id, (None, 0.0))
        if time.monotonic() < until:
            return found
        try:
            found = self._store.resolve(trace_id.hex())
        except PlayheadError:
            found = None
        if found is not None and not selects(self._store, resolved(self._store, self._query), found):
            found = None
        if len(self._known) >= KNOWN:
            self._known.clear()
        self._known[trace_id] = found, time.monotonic() + AGAIN_S
        return found
