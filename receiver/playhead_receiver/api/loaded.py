"""Cache of loaded runs. A page requests ten parts of a run at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, cast

from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.values.stored import StoreVersion

MOST_BYTES: Final = 384 << 20
"""Approximate memory limit of the cache. A larger run is not kept."""
LEAST_BYTES: Final = 1 << 20
"""Minimum size of an entry: even a small run keeps readers of its tapes."""


class Sized(Protocol):
    """Data that was loaded for a run."""

    @property
    def size_bytes(self) -> int:
        """Approximate memory use."""
        ...


T = TypeVar("T", bound=Sized)


class LoadedRuns:
    """LRU cache of recently requested runs, for all tenants. Thread-safe.

    Each request compares the entry with the store, so it never gets older data than the store has.
    After a deletion, the next request for any run of that store calls `forget_deleted`, which removes
    deleted data from memory.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._entries: OrderedDict[tuple[Store, str, Any], _Entry] = OrderedDict()
        """By store (one per tenant), trace id and function, least recently used first."""
        self._lock = threading.Lock()

    def get(self, store: Store, run: RunSummary, load: Callable[[Store, str], T]) -> T:
        """Return the result of ``load(store, trace_id)``, cached. ``run``: just read from ``store``.

        Of concurrent requests for one run, the first loads it and the others wait.
        """
        key = store, run.trace_id, load
        with self._lock:
            entry = self._entries.setdefault(key, _Entry())
            self._entries.move_to_end(key)
        with entry.lock:
            entry.update(store, run, load)
            found = cast("T", entry.loaded)
        self._make_room()
        return found

    def forget_deleted(self, store: Store) -> None:
        """Remove all entries of a store that were loaded before its last deletion.

        Other runs are removed too, because a fork contains content of its origin.
        """
        with self._lock:
            kept = [(key, entry.version) for key, entry in self._entries.items() if key[0] is store]
        deletion = store.version().deletion if kept else 0
        outdated = [key for key, seen in kept if seen is not None and seen.deletion != deletion]
        with self._lock:
            for key in outdated:
                self._entries.pop(key, None)

    def _make_room(self) -> None:
        with self._lock:
            total = sum(entry.size_bytes for entry in self._entries.values())
            for key, entry in list(self._entries.items()):
                if total > self._most_bytes:
                    total -= entry.size_bytes
                    del self._entries[key]


class _Entry:
    """The data of one run and the state it was loaded from. Hold ``lock`` to update it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loaded: Sized | None = None
        self.size_bytes = LEAST_BYTES
        self.version: StoreVersion | None = None
        """Version of the store when the data was loaded; None if nothing is loaded."""
        self._stored: tuple[Any, ...] = ()
        self._summed_up: tuple[Any, ...] = ()

    def update(self, store: Store, run: RunSummary, load: Callable[[Store, str], Sized]) -> None:
        """Load the run unless the loaded data is current."""
        version, stored, summed_up = store.version(), self._stored, _summed_up(run)
        if self.version != version:
            # A fork contains content of its origin, so any change of the store may affect it.
            stamp = version if run.origin else store.stamp(bytes.fromhex(run.trace_id))
            stored = version.deletion, stamp
        if self.version is None or (stored, summed_up) != (self._stored, self._summed_up):
            self.loaded = self.version = None  # free the old data before loading the new
            self.loaded = load(store, run.trace_id)
            self.size_bytes = max(LEAST_BYTES, self.loaded.size_bytes)
        self.version, self._stored, self._summed_up = version, stored, summed_up


def _summed_up(run: RunSummary) -> tuple[Any, ...]:
    """Return the values that `Run.load` takes from the summary; some change with time alone."""
    at = run.name, run.agent, run.status, run.mode, run.origin, run.started_ns, run.ended_ns
    return at, run.cost_usd, run.unpriced, run.instances
