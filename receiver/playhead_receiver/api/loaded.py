"""What was loaded of runs, shared by requests: a page asks for ten parts of a run at the same time."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeVar, cast

from playhead_receiver.storage import RunSummary, Store
from playhead_receiver.storage.values.stored import StoreVersion

MOST_BYTES: Final = 384 << 20
"""Memory that loaded runs may take together, about. A larger run is not kept."""
LEAST_BYTES: Final = 1 << 20
"""What a small one counts: it holds files of its tapes open."""


class Sized(Protocol):
    """What is loaded of a run."""

    @property
    def size_bytes(self) -> int:
        """Memory that it takes, about."""
        ...


T = TypeVar("T", bound=Sized)


class LoadedRuns:
    """Cache of what was loaded of recently requested runs, for all tenants. Thread-safe.

    Nothing that a request gets is older than the request, which compares the run with what the store
    has now. Nothing deleted stays in memory longer than until the next request for any run of its
    store, which calls `forget_deleted`.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most_bytes = most_bytes
        self._entries: OrderedDict[tuple[Store, str, Any], _Entry] = OrderedDict()
        """By store, of which each tenant has its own, trace id and function; last used last."""
        self._lock = threading.Lock()

    def get(self, store: Store, run: RunSummary, load: Callable[[Store, str], T]) -> T:
        """What ``load`` returns for a store and a trace id. ``run``: read from ``store`` just now.

        Of several requests at the same time, the first one loads; the others wait for it.
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
        """If runs were deleted since, forget all that was loaded from a store before.

        Also what is left of other runs: a fork has content of its origin.
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
    """What was loaded of one run, and of which state of the run. ``lock`` is held to update it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.loaded: Sized | None = None
        self.size_bytes = LEAST_BYTES
        self.version: StoreVersion | None = None
        """Of the store when the state was read; None if nothing is loaded."""
        self._stored: tuple[Any, ...] = ()
        self._summed_up: tuple[Any, ...] = ()

    def update(self, store: Store, run: RunSummary, load: Callable[[Store, str], Sized]) -> None:
        """Load the run, unless what is loaded is still the same."""
        version, stored, summed_up = store.version(), self._stored, _summed_up(run)
        if self.version != version:
            # A fork has content of its origin, which any change of the store may change.
            stamp = version if run.origin else store.stamp(bytes.fromhex(run.trace_id))
            stored = version.deletion, stamp
        if self.version is None or (stored, summed_up) != (self._stored, self._summed_up):
            self.loaded = self.version = None  # frees it before the next one takes memory
            self.loaded = load(store, run.trace_id)
            self.size_bytes = max(LEAST_BYTES, self.loaded.size_bytes)
        self.version, self._stored, self._summed_up = version, stored, summed_up


def _summed_up(run: RunSummary) -> tuple[Any, ...]:
    """What a run takes from its summary, which the clock alone may change."""
    at = run.name, run.agent, run.status, run.mode, run.origin, run.started_ns, run.ended_ns
    return at, run.cost_usd, run.unpriced, run.instances
