"""Objects of the query API: the audit log, and how the receiver is."""

from __future__ import annotations

from typing import Literal

from playhead_receiver.query.models.model import Model


class AuditNote(Model):
    """A line of the audit log."""

    number: int
    time_ns: int
    token: str
    name: str
    tenant: str
    action: str
    subject: str


class AuditPage(Model):
    """Lines of the audit log, newest first."""

    notes: list[AuditNote]
    next: int | None


class State(Model):
    """How the receiver is."""

    status: Literal["ok", "degraded", "unavailable"]
    problem: str | None = None
    """Why it is not `ok`."""
