"""Delivers the spooled records of dead processes on demand."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from playhead_core.settings import Settings
from playhead_exporter.delivery import DeliveryNotices
from playhead_exporter.shipping.endpoint_answers import About
from playhead_exporter.shipping.reporting import Rejected, Reporting, Tally
from playhead_exporter.shipping.shipper import Route, Shipper
from playhead_exporter.shipping.transports import transport_opener
from playhead_exporter.spool.folders import DiskBudget, SpoolFolders
from playhead_exporter.spool.recovery import Pending
from playhead_exporter.spool.recovery import pending as pending_in


@dataclass(frozen=True, slots=True)
class PushReport:
    """Result of a push."""

    tally: Tally
    """What was delivered, and what was refused."""
    remaining: list[Pending]
    """Tapes that stay: those of living processes, and those that could not be delivered."""
    elsewhere: list[Pending]
    """Tapes of dead processes that stay because they go to another destination."""
    problem: str = ""
    """The endpoint's answer that ended the push; empty if everything was delivered."""


def _forget(about: About) -> None: ...


def pending(settings: Settings) -> list[Pending]:
    """Return what is undelivered in the spool of ``settings``, without instances that have nothing."""
    return [one for one in pending_in(SpoolFolders.of(settings)) if one.count]


def push(
    settings: Settings,
    *,
    attempts: int = 3,
    instances: frozenset[bytes] | None = None,
    also: tuple[str, ...] = (),
    everything: bool = False,
) -> PushReport:
    """Deliver the tapes of dead processes in the spool of ``settings``. Blocks; agents may run.

    Only tapes for the destination of ``settings`` or those in ``also``; with ``everything`` all.
    ``instances``: deliver only theirs. Gives up after ``attempts`` failed requests in a row. Raises
    `ConfigurationError` if the settings name no endpoint.
    """
    folders = msgspec.structs.replace(SpoolFolders.of(settings), also=also, everything=everything)
    _, open_transport = transport_opener(settings)
    notices = DeliveryNotices(settings.quiet)
    budget = DiskBudget(folders.spool, settings.spool_budget_bytes)
    reporting = Reporting(Rejected(folders.spool, budget, notices), notices)
    on_about = None if settings.endpoint_kind == "other" else _forget
    shipper = Shipper(folders, Route(open_transport, on_about), reporting, only=instances)
    problem = shipper.deliver_left_once(attempts)
    left = pending(settings)
    elsewhere = [one for one in left if not one.alive and not folders.delivers(one.destination)]
    remaining = [one for one in left if one not in elsewhere]
    return PushReport(shipper.tally, remaining, elsewhere, problem)
