"""The endpoints of the faces: each under its own prefix, and at the paths that its clients use.

Only ``/api/traces/{trace_id}`` belongs to both Jaeger and Tempo: requests for protobuf go to Tempo.
"""

from __future__ import annotations

from fastapi import APIRouter

from playhead_receiver.api.jaeger.http import jaeger_routers
from playhead_receiver.api.tempo.http import tempo_router

FACES: tuple[APIRouter, ...] = (
    *jaeger_routers("/jaeger"),
    tempo_router("/tempo"),
    tempo_router(for_jaeger_too=True),
    *jaeger_routers(traces_by_id=False),
)
"""The routers of all faces."""
