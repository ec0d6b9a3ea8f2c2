"""What the query API serves from, and how it shows itself to Prometheus."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from playhead_receiver.access import Audit, Guard, Tenants
from playhead_receiver.faces.shown import Shown
from playhead_receiver.query.tree import Trees
from playhead_receiver.store.content.references import References

MOST_LIVE = 64
"""Live streams at once."""


class Forwarded(msgspec.Struct, frozen=True):
    """What became of forwarding to one endpoint."""

    number: int
    sent: int
    refused: int
    stuck: bool
    left_out: int = 0
    """Traces that were not of its share."""
    passed: int = 0
    """Requests of metrics and log records that it took."""
    passed_refused: int = 0
    dropped: int = 0
    """Of them, those for which its queue had no room."""
    waiting: int = 0
    behind: int = 0
    """Spans and facts of the store that it has not got to yet."""


class Serving:
    """The parts of a running receiver that are asked."""

    def __init__(
        self,
        tenants: Tenants,
        guard: Guard,
        audit: Audit,
        shown: Shown,
        destinations: Callable[[], list[Forwarded]] = list,
        version: str = "",
        references: References | None = None,
    ) -> None:
        self.tenants = tenants
        self.guard = guard
        self.audit = audit
        self.shown = shown
        self.destinations = destinations
        self.version = version
        self.references = references or References()
        self.trees = Trees()
        self.live = 0
        """Live streams that are open; on the event loop only."""
        self.stopping = False

    def failing(self) -> dict[str, bool]:
        """By pass of housekeeping, whether its last attempt ended in an error, of any tenant."""
        houses = self.tenants.open_houses().values()
        return {
            "keeping": any(house.keeper.problem for house in houses),
            "indexing": any(house.indexer is not None and house.indexer.problem for house in houses),
        }

    def disorder(self) -> list[str]:
        """Why the stores are not in order, a sentence each, without what is stored; mostly empty."""
        found = [f"{name} fails; the log says why" for name, fails in self.failing().items() if fails]
        aside = sum(house.store.set_aside() for house in self.tenants.open_houses().values())
        return [*found, f"{aside} runs cannot be summed up; the log says why"] if aside else found
