"""Endpoints for other viewers, whose errors have the form that these viewers expect."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from playhead_core.errors import PlayheadError
from playhead_receiver.api.compatibility.tenant_traces import TenantTraces
from playhead_receiver.api.problems import NotFound, status_of
from playhead_receiver.auth import Forbidden, Unauthenticated

JSON = "application/json"

Say = Callable[[int, str], Response]


def compatibility_router(say: Say, prefix: str = "") -> APIRouter:
    """A router whose errors go through ``say``; it is left out of our own OpenAPI description."""

    class Speaking(APIRoute):
        """A route that reports errors in the form of another API."""

        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def answer(request: Request) -> Response:
                try:
                    return await handle(request)
                except (Unauthenticated, Forbidden):
                    raise
                except PlayheadError as problem:
                    status = status_of(problem)
                    return say(400 if status == 422 else status, problem.what)

            return answer

    return APIRouter(prefix=prefix, include_in_schema=False, route_class=Speaking)


def tenant_traces_of(request: Request) -> TenantTraces:
    """The `TenantTraces` of the application."""
    return request.app.state.tenant_traces


def as_json(content: Any, status: int = 200) -> Response:
    """A JSON response."""
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def trace_id_of(text: str) -> bytes:
    """A trace id; leading zeros may be missing. `NotFound` if it is not valid."""
    try:
        found = bytes.fromhex(text.zfill(32))
    except ValueError:
        found = b""
    if len(found) != 16:
        raise NotFound(f"{text!r} is not a trace id")
    return found
