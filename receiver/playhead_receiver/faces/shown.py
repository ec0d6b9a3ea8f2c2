"""What the faces show, and of whose data."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from playhead_receiver.access import Tenants
from playhead_receiver.faces.capping import Cap

if TYPE_CHECKING:
    from playhead_receiver.faces.reading import Traces

JAEGER_BYTES = 64 << 10
TEMPO_BYTES = 16 << 10


class Limits(msgspec.Struct, frozen=True):
    """How much of one attribute each face gives at most; 0: all of it."""

    jaeger_bytes: int = JAEGER_BYTES
    tempo_bytes: int = TEMPO_BYTES
    url: str = ""
    """Where viewers find the query API; empty: where it listens."""


class Shown:
    """The traces of each tenant, and what a face may give of them."""

    def __init__(self, tenants: Tenants, limits: Limits, query_url: Callable[[], str]) -> None:
        self._tenants = tenants
        self._limits = limits
        self._query_url = query_url
        self._traces: dict[str, Traces] = {}
        self._lock = threading.Lock()

    def traces(self, tenant: str) -> Traces:
        """Those of a tenant. `StoreBusy`, `StoreUnavailable`."""
        from playhead_receiver.faces.reading import Traces  # not before somebody looks

        store = self._tenants.house(tenant).store
        with self._lock:
            found = self._traces.get(tenant)
            if found is None or found.store is not store:
                found = self._traces[tenant] = Traces(store)
            return found

    @property
    def jaeger(self) -> Cap:
        """What Jaeger is given."""
        return Cap(self._limits.jaeger_bytes, self._limits.url or self._query_url())

    @property
    def tempo(self) -> Cap:
        """What Grafana is given."""
        return Cap(self._limits.tempo_bytes, self._limits.url or self._query_url())
