"""Objects of the query API: audit log, tokens, retention, and how the receiver is."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.access import Scope
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


class TokenItem(Model):
    """A token, without its secret."""

    id: str
    """8 hex digits, the readable part of the token."""
    name: str
    scopes: list[Scope]
    created_ns: int
    expires_ns: int | None
    revoked_ns: int | None
    used_ns: int | None
    """When it last opened something, to the minute; null: never, or not since that is noted."""


class TokenList(Model):
    """Tokens of a tenant."""

    tokens: list[TokenItem]


class CallerItem(Model):
    """The caller: name, tenant and scopes of its token."""

    name: str
    """Of the token; empty where none is needed."""
    tenant: str
    """Whose runs are seen; empty: those of the data folder itself."""
    scopes: list[Scope]
    """What may be done; `admin` includes the others."""


class NextDeletion(Model):
    """The run whose time is over first."""

    run: str
    time_ns: int
    """When it is over. What is over goes within ten minutes."""


class PolicyInForce(Model):
    """How long what is kept."""

    seconds: dict[str, float | None]
    """After the end of a run: `success`, `failure`, `flagged`, `test`, `agent:NAME`; null: for ever."""
    success_share: float
    """Share of the successes that is kept so long; the others are kept as tests."""
    budget_bytes: int | None
    """Above it the oldest runs go."""


class RetentionState(Model):
    """What retention keeps of the caller's tenant, and what goes next."""

    policy: PolicyInForce | None
    """Null: nothing is deleted but by hand."""
    looked_ns: int | None
    """When it was last seen what is over; null: not yet."""
    next: NextDeletion | None
    """Null: no run's time ends, or nobody has looked yet."""
    held: int
    """Runs that are never deleted."""
    flagged: int


class UndeliveredTape(Model):
    """What a process on this machine recorded and no receiver has taken yet."""

    instance: str
    """32 hex digits."""
    agent: str
    pid: int | None
    alive: bool
    """A living process delivers it by itself, what of a dead one is left `playhead spool push` does."""
    facts: int
    spans: int
    size_bytes: int


class SpoolState(Model):
    """The spool of agents on the machine of the receiver, of its own user."""

    machine: str | None
    """Its name; null: it is not looked at here, or not for the caller's tenant."""
    undelivered: list[UndeliveredTape]
    refused: int
    """Requests that an endpoint refused for good; they are kept in the spool."""


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
    seconds: Annotated[float, Field(strict=True, ge=0, le=1e9)]
    exchanges: dict[FidelityName, Annotated[int, Field(strict=True, ge=0, le=1 << 53)]] = {}
    """Of a replay, how many were exact, changed, …"""


class ReplayCounted(Model):
    """It is counted."""

    counted: bool = True


class State(Model):
    """How the receiver is."""

    status: Literal["ok", "degraded", "unavailable"]
    problem: str | None = None
    """Why it is not `ok`."""
