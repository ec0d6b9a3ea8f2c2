"""``/health``, ``/ready`` and ``/metrics``: for those who run the receiver."""

from __future__ import annotations

from fastapi import APIRouter, Request
from prometheus_client import CONTENT_TYPE_LATEST
from prometheus_client.exposition import generate_latest
from starlette.responses import Response

from playhead_receiver.query.asked import Reading, serving_of
from playhead_receiver.query.figures import registry_of
from playhead_receiver.query.models import State
from playhead_semconv.errors import StoreUnavailable

router = APIRouter(tags=["operations"])


@router.get("/health")
async def health() -> State:
    """The receiver runs."""
    return State(status="ok")


@router.get("/ready", responses={503: {"description": "Not now."}})
def ready(request: Request) -> State:
    """The receiver can read what it stores, and is not about to stop."""
    serving = serving_of(request)
    serving.tenants.own.store.position()
    if serving.stopping:
        raise StoreUnavailable("the receiver is about to stop")
    return State(status="ok")


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request, asked: Reading) -> Response:
    """Figures of the receiver, as Prometheus reads them."""
    return Response(generate_latest(registry_of(serving_of(request))), media_type=CONTENT_TYPE_LATEST)
