"""Objects of the query API: audit log, tokens, retention, spool, and status of the receiver."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.api.models.model import Model
from playhead_receiver.auth import Scope

FidelityName: TypeAlias = Literal[
    "exact", "volatile", "moved", "changed", "live", "blocked", "unused", "semantic"
]


class AuditNote(Model):
    """An entry of the audit log."""

    number: int
    time_ns: int
    token: str
    name: str
    tenant: str
    action: str
    subject: str


class AuditPage(Model):
    """Audit log entries, newest first."""

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
    """Last use, to the minute; null if never recorded."""


class TokenList(Model):
    """Tokens of a tenant."""

    tokens: list[TokenItem]


class CallerItem(Model):
    """The caller: name, tenant and scopes of its token."""

    name: str
    """Token name; empty if no token is needed."""
    tenant: str
    """Tenant whose runs are visible; empty: the default tenant."""
    scopes: list[Scope]
    """Granted scopes; `admin` includes the others."""


class NextDeletion(Model):
    """The run that expires next."""

    run: str
    time_ns: int
    """Expiry time. Expired runs are deleted within ten minutes."""


class PolicyInForce(Model):
    """The retention policy in force."""

    seconds: dict[str, float | None]
    """After the end of a run: `success`, `failure`, `flagged`, `test`, `agent:NAME`; null: forever."""
    success_share: float
    """Share of successful runs kept that long; the others are kept as long as tests."""
    budget_bytes: int | None
    """Above this size the oldest runs are deleted."""


class RetentionState(Model):
    """Retention of the caller's tenant, and the next deletion."""

    policy: PolicyInForce | None
    """Null: nothing expires."""
    looked_ns: int | None
    """Last check for expired runs; null if not yet."""
    next: NextDeletion | None
    """Null if no run expires, or not checked yet."""
    held: int
    """Number of held runs, which never expire."""
    flagged: int


class UndeliveredTape(Model):
    """A recording on this machine that is not delivered yet."""

    instance: str
    """32 hex digits."""
    agent: str
    pid: int | None
    alive: bool
    """A live process delivers it; for a dead one run `playhead spool push`."""
    facts: int
    spans: int
    size_bytes: int


class SpoolState(Model):
    """The spool of the receiver's user on its machine."""

    machine: str | None
    """Its name; null if this receiver does not read a spool, or not for the caller's tenant."""
    undelivered: list[UndeliveredTape]
    refused: int
    """Requests that an endpoint rejected permanently; they stay in the spool."""


class EndedReplay(BaseModel):
    """How a replay, fork or resume ended."""

    model_config = ConfigDict(extra="forbid")
    mode: Literal["replay", "fork", "resume"]
    outcome: Literal[
        "identical",
        "volatile",
        "semantic",
        "diverged",
        "blocked",
        "success",
        "partial",
        "failure",
        "interrupted",
        "failed",
    ]
    """Result of a replay, or status of the new run; `failed` if there is neither."""
    seconds: Annotated[float, Field(strict=True, ge=0, le=1e9)]
    exchanges: dict[FidelityName, Annotated[int, Field(strict=True, ge=0, le=1 << 53)]] = {}
    """Number of exchanges of a replay by fidelity: exact, changed, …"""


class ReplayCounted(Model):
    """Confirmation."""

    counted: bool = True


class SampledMetrics(Model):
    """Metrics since the receiver started, for at most a day; in memory, so they end with its process."""

    time_ns: list[int]
    """Time of each sample: one a minute, and one of now as the last."""
    metrics: dict[str, list[float | None]]
    """Values at these times by name and label as in `/metrics`; null if it did not exist then."""


class State(Model):
    """Status of the receiver."""

    status: Literal["ok", "degraded", "unavailable"]
    problem: str | None = None
    """Why it is not `ok`."""
