"""Objects of the query API: the audit log, and how the receiver is."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.query.models.model import Model

FidelityName: TypeAlias = Literal["exact", "volatile", "moved", "changed", "live", "blocked", "unused"]


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


class EndedReplay(BaseModel):
    """How a replay, fork or resume ended."""

    model_config = ConfigDict(extra="forbid")
    mode: Literal["replay", "fork", "resume"]
    outcome: Literal[
        "identical",
        "volatile",
        "diverged",
        "blocked",
        "success",
        "partial",
        "failure",
        "interrupted",
        "failed",
    ]
    """Of a replay its verdict, of the others the status of the new run; failed: it came to neither."""
    seconds: Annotated[float, Field(ge=0, le=1e9)]
    exchanges: dict[FidelityName, Annotated[int, Field(ge=0, le=1 << 53)]] = {}
    """Of a replay, how many were exact, changed, …"""


class ReplayCounted(Model):
    """It is counted."""

    counted: bool = True


class State(Model):
    """How the receiver is."""

    status: Literal["ok", "degraded", "unavailable"]
    problem: str | None = None
    """Why it is not `ok`."""
