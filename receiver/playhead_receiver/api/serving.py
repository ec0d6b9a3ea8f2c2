"""The components that the query API uses, and their state for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from typing import TYPE_CHECKING

import msgspec

from playhead_core.settings import Settings
from playhead_receiver.api.history import MetricsHistory
from playhead_receiver.api.loaded import LoadedRuns
from playhead_receiver.api.tallies import Tallies
from playhead_receiver.auth import Audit, Guard
from playhead_receiver.reruns.reruns import Reruns
from playhead_receiver.storage.content.references import References
from playhead_receiver.tenants.tenants import Tenants

if TYPE_CHECKING:
    from playhead_receiver.alerts.delivery import Alerts

MOST_LIVE = 64
"""Largest number of concurrent live streams."""


class Forwarded(msgspec.Struct, frozen=True):
    """State of forwarding to one endpoint."""

    number: int
    sent: int
    refused: int
    stuck: bool
    left_out: int = 0
    """Traces that sampling left out."""
    passed: int = 0
    """Accepted requests with metrics and log records."""
    passed_refused: int = 0
    dropped: int = 0
    """Of these, requests that were dropped because the queue was full."""
    waiting: int = 0
    behind: int = 0
    """Spans and facts in the store that are not forwarded yet."""


class Serving:
    """The components of a running receiver that answer requests."""

    def __init__(
        self,
        tenants: Tenants,
        guard: Guard,
        audit: Audit,
        destinations: Callable[[], list[Forwarded]] = list,
        references: References | None = None,
        reruns: Reruns | None = None,
        agents: Settings | None = None,
    ) -> None:
        self.tenants = tenants
        self.guard = guard
        self.audit = audit
        self.destinations = destinations
        self.references = references or References()
        self.reruns = reruns
        """None if no programs are executed."""
        self.agents = agents
        """Settings of agents on this machine; None if their spool is not read."""
        self.version = version("playhead-receiver")
        self.loaded = LoadedRuns()
        self.tallies = Tallies()
        self.alerts: Alerts | None = None
        self.history: MetricsHistory | None = None
        self.live = 0
        """Number of open live streams; used only on the event loop."""
        self.stopping = False

    def failing(self) -> dict[str, bool]:
        """For each kind of maintenance, whether its last pass failed for any tenant."""
        open_tenants = self.tenants.open_services().values()
        return {
            "keeping": any(services.maintenance.problem for services in open_tenants),
            "deriving": any(
                services.findings is not None and services.findings.problem for services in open_tenants
            ),
            "indexing": any(
                services.indexer is not None and services.indexer.problem for services in open_tenants
            ),
        }

    def disorder(self) -> list[str]:
        """Problems of the stores, one sentence each, without stored data; usually empty."""
        found = [f"{name} fails; the log says why" for name, fails in self.failing().items() if fails]
        aside = self.tenants.skipped_runs()
        return [*found, f"{aside} runs cannot be summed up; the log says why"] if aside else found
