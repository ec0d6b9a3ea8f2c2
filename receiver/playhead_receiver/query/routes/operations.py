"""``/health``, ``/ready`` and ``/metrics``: for those who run the receiver; and what these count."""

from __future__ import annotations

import time

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

from playhead_receiver.query.asked import Ingesting, Reading, serving_of
from playhead_receiver.query.figures import registry_of
from playhead_receiver.query.models.operations import EndedReplay, ReplayCounted, State
from playhead_semconv.errors import StoreUnavailable

REFUSING_S = 10.0
"""So long after a refusal it is worth to try again."""

router = APIRouter(tags=["operations"])


@router.get("/health")
async def health() -> State:
    """The receiver runs."""
    return State(status="ok")


@router.get("/ready", responses={503: {"description": "Not now."}})
def ready(request: Request) -> State:
    """The receiver can read what it stores, takes what comes, and is not about to stop.

    A request that was refused makes it not ready until another is taken, or for ten seconds. It is
    ready, and ``degraded``, where something keeps it from having its store in order.
    """
    serving = serving_of(request)
    serving.tenants.own.store.position()
    refusal = serving.tenants.own.intake.counted.refusal
    if refusal is not None and time.monotonic() - refusal[1] < REFUSING_S:
        problem = refusal[0]
        raise StoreUnavailable(problem.what, cause=problem.cause, hint=problem.hint)
    if serving.stopping:
        raise StoreUnavailable("the receiver is about to stop")
    problems = serving.disorder()
    return State(status="degraded", problem="; ".join(problems)) if problems else State(status="ok")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request, asked: Reading) -> Response:
    """Figures of the receiver, and of the calls of models of the caller's tenant, for Prometheus."""
    told = generate_latest(registry_of(serving_of(request)))
    called = generate_latest(asked.house.keeper.calls.registry)
    return Response(told + called, media_type=CONTENT_TYPE_LATEST)


@router.post("/v1/replays")
def count_replay(asked: Ingesting, told: EndedReplay) -> ReplayCounted:
    """Say how a replay, fork or resume ended, for `/metrics`. Nothing of it is stored."""
    exchanges = {str(fidelity): count for fidelity, count in told.exchanges.items()}
    asked.tallies.replayed(told.mode, told.outcome, told.seconds, exchanges)
    return ReplayCounted()
