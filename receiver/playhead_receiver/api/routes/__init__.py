"""The endpoints of the query API, one file per subject."""

from playhead_receiver.api.routes import (
    artifacts,
    audit,
    checkpoints,
    claims,
    control,
    conversations,
    events,
    live,
    operations,
    reading,
    reruns,
    runs,
    search,
    spans,
    stats,
)

ROUTERS = (
    runs.router,
    artifacts.router,
    reading.router,
    spans.router,
    events.router,
    search.router,
    conversations.router,
    stats.router,
    live.router,
    checkpoints.router,
    claims.router,
    control.router,
    reruns.router,
    audit.router,
    operations.router,
)
"""All of them."""
