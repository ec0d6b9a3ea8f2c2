"""Delivering what dead processes left, on demand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from playhead_exporter.notices import Notices
from playhead_exporter.shipping.delivery import Tally
from playhead_exporter.shipping.rejected import Rejected
from playhead_exporter.shipping.shipper import Shipper
from playhead_exporter.shipping.transports import transport_opener
from playhead_exporter.spool.budget import Budget
from playhead_exporter.spool.places import Places
from playhead_exporter.spool.recovery import Pending
from playhead_exporter.spool.recovery import pending as pending_in
from playhead_semconv.settings import Settings


@dataclass(frozen=True, slots=True)
class PushReport:
    """What a push did."""

    tally: Tally
    """What was delivered, and what was refused."""
    remaining: list[Pending]
    """What is still there: of living processes, which deliver it themselves, or undelivered."""
    problem: str = ""
    """What the endpoint said that ended the push; empty if everything went."""


def pending(settings: Settings) -> list[Pending]:
    """What is undelivered in the spool of ``settings``; instances with nothing left out."""
    return [one for one in pending_in(Places.of(settings)) if one.facts or one.spans]


def push(
    settings: Settings,
    *,
    attempts: int = 3,
    progress: Callable[[Tally], None] | None = None,
    instances: frozenset[bytes] | None = None,
) -> PushReport:
    """Deliver what dead processes left in the spool of ``settings``. Blocks; safe beside agents.

    Gives up after ``attempts`` answers in a row that nothing can be taken now. ``instances``: only
    theirs. `ConfigurationError` if the settings name no endpoint.
    """
    places = Places.of(settings)
    _, open_transport = transport_opener(settings)
    notices = Notices(settings.quiet)
    budget = Budget(places.spool, settings.spool_budget_bytes)
    shipper = Shipper(
        None,
        places,
        open_transport,
        Rejected(places.spool, budget, notices),
        notices,
        interval_s=settings.export_interval_ms / 1000,
        learn=None if settings.endpoint_kind == "other" else lambda _: None,
        only=instances,
        progress=progress,
    )
    problem = shipper.deliver_left_once(attempts)
    return PushReport(shipper.tally, pending(settings), problem)
