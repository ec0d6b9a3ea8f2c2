"""Tells which runs match a query while they are still going on."""

from __future__ import annotations

import time

from playhead_core.errors import PlayheadError
from playhead_receiver.storage.api.store import Store
from playhead_receiver.storage.runs.listing import asks_for
from playhead_receiver.storage.values.run_summaries import Query, RunSummary

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
        if found is not None and not asks_for(self._query, found):
            found = None
        if len(self._known) >= KNOWN:
            self._known.clear()
        self._known[trace_id] = found, time.monotonic() + AGAIN_S
        return found
