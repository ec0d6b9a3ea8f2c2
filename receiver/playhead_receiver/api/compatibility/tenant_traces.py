"""The traces of each tenant, as the compatibility APIs show them."""

from __future__ import annotations

import threading
from collections.abc import Callable

from playhead_receiver.api.compatibility.capping import Cap
from playhead_receiver.api.compatibility.reading import Traces
from playhead_receiver.config.configuration import CompatibilityLimits
from playhead_receiver.tenants.tenants import Tenants


class TenantTraces:
    """The traces of each tenant, and the size limits of each compatibility API."""

    def __init__(
        self, tenants: Tenants, limits: CompatibilityLimits, query_url: Callable[[], str]
    ) -> None:
        self._tenants = tenants
        self._limits = limits
        self._query_url = query_url
        self._traces: dict[str, Traces] = {}
        self._lock = threading.Lock()

    def traces(self, tenant: str) -> Traces:
        """The traces of a tenant. `StoreBusy`, `StoreUnavailable`."""
        store = self._tenants.services(tenant).store
        with self._lock:
            found = self._traces.get(tenant)
            if found is None or found.store is not store:
                found = self._traces[tenant] = Traces(store)
            return found

    @property
    def jaeger(self) -> Cap:
        """The cap for Jaeger."""
        return Cap(self._limits.jaeger_bytes, self._limits.url or self._query_url())

    @property
    def tempo(self) -> Cap:
        """The cap for Grafana."""
        return Cap(self._limits.tempo_bytes, self._limits.url or self._query_url())
