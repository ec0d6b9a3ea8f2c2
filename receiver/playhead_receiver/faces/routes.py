"""The endpoints of the faces: each below its own name, and where their clients look for them.

Only ``/api/traces/{trace_id}`` is Jaeger's and Tempo's: who wants protobuf there asks Tempo.
"""

from __future__ import annotations

from fastapi import APIRouter

from playhead_receiver.faces.jaeger.http import jaeger_routers

FACES: tuple[APIRouter, ...] = (*jaeger_routers("/jaeger"), *jaeger_routers())
"""All of them."""
