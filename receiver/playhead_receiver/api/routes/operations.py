"""For operators of the receiver: health, metrics, retention, spool, audit log, tokens."""

from __future__ import annotations

import socket
import time
from typing import Annotated

from fastapi import APIRouter, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

from playhead_core.errors import StoreUnavailable
from playhead_exporter.push import pending
from playhead_exporter.spool.folders import REJECTED, SpoolFolders
from playhead_receiver.api.context import Administrating, Ingesting, Limit, Reading, serving_of
from playhead_receiver.api.figures import registry_of
from playhead_receiver.api.models.operations import (
    AuditNote,
    AuditPage,
    CallerItem,
    EndedReplay,
    NextDeletion,
    PolicyInForce,
    ReplayCounted,
    RetentionState,
    SampledMetrics,
    SpoolState,
    State,
    TokenItem,
    TokenList,
    UndeliveredTape,
)
from playhead_receiver.storage.api.retention import FLAGGED, HELD, Retention
from playhead_receiver.storage.api.store import offered
from playhead_receiver.storage.retention import FOREVER_S, Policy

REFUSING_S = 10.0
"""Seconds for which a refused request makes the receiver not ready."""

router = APIRouter(tags=["operations"])


@router.get("/health")
async def health() -> State:
    """Liveness: the receiver is running."""
    return State(status="ok")


@router.get("/ready", responses={503: {"description": "Not ready."}})
def ready(request: Request) -> State:
    """Readiness: storage is readable, writes are accepted, no shutdown is in progress.

    After the store refused a request, it is not ready until another is accepted, or for ten seconds. It
    is ready, but ``degraded``, if maintenance of the store fails.
    """
    serving = serving_of(request)
    serving.tenants.own.store.position()
    refusal = serving.tenants.own.intake.counted.refusal
    if refusal is not None and time.monotonic() - refusal[1] < REFUSING_S:
        problem = refusal[0]
        raise StoreUnavailable(problem.what, cause=problem.cause, hint=problem.hint)
    if serving.stopping:
        raise StoreUnavailable("the receiver is shutting down")
    problems = serving.disorder()
    return State(status="degraded", problem="; ".join(problems)) if problems else State(status="ok")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request, context: Reading) -> Response:
    """Prometheus metrics of the receiver, and of the model calls of the caller's tenant."""
    replay = generate_latest(registry_of(serving_of(request)))
    called = generate_latest(context.services.maintenance.calls.registry)
    return Response(replay + called, media_type=CONTENT_TYPE_LATEST)


@router.get("/v1/metrics/history")
def show_metrics(request: Request, _context: Reading) -> SampledMetrics:
    """Get metrics of the receiver over the last day: intake, errors, queries, disk, lag, forwarding."""
    history = serving_of(request).history
    samples = [] if history is None else history.samples()
    names = dict.fromkeys(name for _, values in samples for name in values)
    return SampledMetrics(
        time_ns=[time_ns for time_ns, _ in samples],
        metrics={name: [values.get(name) for _, values in samples] for name in names},
    )


@router.get("/v1/retention")
def show_retention(context: Reading) -> RetentionState:
    """Get the retention policy, the number of held runs, and the next deletion."""
    maintenance = context.services.maintenance
    store = offered(context.store, Retention)
    marks = [] if store is None else [*store.marks().values()]
    ahead = maintenance.outlook
    context.note("read", "retention")
    return RetentionState(
        policy=None if maintenance.policy is None else _in_force(maintenance.policy),
        looked_ns=None if ahead is None else ahead.looked_ns,
        next=NextDeletion(run=ahead.run, time_ns=ahead.expires_ns) if ahead and ahead.run else None,
        held=sum(HELD in one for one in marks),
        flagged=sum(FLAGGED in one for one in marks),
    )


@router.get("/v1/spool")
def show_spool(context: Reading) -> SpoolState:
    """Get the undelivered recordings on the receiver's machine, as `playhead spool ls` does.

    Spools on other machines are not known here.
    """
    context.note("read", "spool")
    if context.agents is None:
        return SpoolState(machine=None, undelivered=[], refused=0)
    waiting = [
        UndeliveredTape(
            instance=one.instance.hex(),
            agent=one.agent,
            pid=one.pid,
            alive=one.alive,
            facts=one.facts,
            spans=one.spans,
            size_bytes=one.bytes,
        )
        for one in pending(context.agents)
    ]
    refused = (SpoolFolders.of(context.agents).spool / REJECTED).glob("*.txt")
    return SpoolState(machine=socket.gethostname(), undelivered=waiting, refused=sum(1 for _ in refused))


def _in_force(policy: Policy) -> PolicyInForce:
    seconds = {
        "success": policy.success_s,
        "failure": policy.failure_s,
        "flagged": policy.flagged_s,
        "test": policy.test_s,
        **{f"agent:{name}": kept_s for name, kept_s in policy.agents_s.items()},
    }
    return PolicyInForce(
        seconds={name: None if kept_s >= FOREVER_S else kept_s for name, kept_s in seconds.items()},
        success_share=policy.success_share,
        budget_bytes=policy.budget_bytes,
    )


@router.post("/v1/replays")
def count_replay(context: Ingesting, replay: EndedReplay) -> ReplayCounted:
    """Report how a replay, fork or resume ended, for `/metrics`. It is not stored."""
    exchanges = {str(fidelity): count for fidelity, count in replay.exchanges.items()}
    context.tallies.replayed(replay.mode, replay.outcome, replay.seconds, exchanges)
    return ReplayCounted()


audit_router = APIRouter(tags=["audit"])


@audit_router.get("/v1/audit")
def list_notes(
    context: Administrating,
    limit: Limit = 100,
    before: Annotated[int | None, Query(ge=0, le=(1 << 63) - 1)] = None,
) -> AuditPage:
    """List audit log entries of the caller's tenant, newest first."""
    notes = [AuditNote.model_validate(note) for note in context.notes(before, limit)]
    context.note("read", "audit")
    return AuditPage(notes=notes, next=notes[-1].number if len(notes) == limit else None)


@audit_router.get("/v1/tokens")
def list_tokens(context: Administrating) -> TokenList:
    """List tokens of the caller's tenant by creation time, without secrets."""
    tokens = [TokenItem.model_validate(token) for token in context.tokens()]
    context.note("read", "tokens")
    return TokenList(tokens=tokens)


@audit_router.get("/v1/caller")
def show_caller(context: Reading) -> CallerItem:
    """Get the caller's name, tenant and scopes."""
    caller = context.caller
    return CallerItem(name=caller.name, tenant=caller.tenant, scopes=sorted(caller.scopes))
