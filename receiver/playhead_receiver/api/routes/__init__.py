"""The endpoints of the query API, one file per subject."""

from playhead_receiver.api.routes import (
    artifacts,
    checkpoints,
    control,
    events,
    live,
    logs,
    operations,
    reading,
    reruns,
    runs,
    scores,
    search,
    spans,
    tool_calls,
)

ROUTERS = (
    runs.router,
    artifacts.router,
    reading.router,
    spans.router,
    tool_calls.router,
    scores.router,
    events.router,
    logs.router,
    search.router,
    search.conversations_router,
    search.stats_router,
    live.router,
    checkpoints.router,
    checkpoints.claims_router,
    control.router,
    reruns.router,
    operations.audit_router,
    operations.router,
)
"""All of them."""
