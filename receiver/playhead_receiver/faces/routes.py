"""The endpoints of the faces: each below its own name, and where their clients look for them.

Only ``/api/traces/{trace_id}`` is Jaeger's and Tempo's: who wants protobuf there asks Tempo.
"""

from __future__ import annotations

from fastapi import APIRouter

from playhead_receiver.faces.jaeger.http import jaeger_routers
from playhead_receiver.faces.tempo.http import tempo_router

FACES: tuple[APIRouter, ...] = (
    *jaeger_routers("/jaeger"),
    tempo_router("/tempo"),
    tempo_router(for_jaeger_too=True),
    *jaeger_routers(traces_by_id=False),
)
"""All of them."""
