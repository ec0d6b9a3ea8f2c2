"""The endpoints of the query API, one file per subject."""

from playhead_receiver.api.routes import (
    analysis,
    checkpoint_states,
    checkpoints,
    control,
    live,
    operations,
    reading,
    reruns,
    runs,
    search,
)
from playhead_receiver.api.routes.one_run import (
    analyses,
    artifacts,
    events,
    logs,
    notes,
    origins,
    reports,
    spans,
    tool_calls,
)

ROUTERS = (
    runs.router,
    artifacts.router,
    reading.router,
    spans.router,
    tool_calls.router,
    notes.router,
    reports.router,
    events.router,
    logs.router,
    search.router,
    search.conversations_router,
    search.stats_router,
    analysis.router,
    analyses.router,
    origins.router,
    live.router,
    checkpoints.router,
    checkpoints.claims_router,
    checkpoint_states.router,
    control.router,
    reruns.router,
    operations.audit_router,
    operations.router,
)
"""All of them."""
