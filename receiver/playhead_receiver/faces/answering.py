"""Endpoints that speak another's language: their problems too are said as their viewers know them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from fastapi.routing import APIRoute
from starlette.responses import Response

from playhead_receiver.access import Forbidden, Unauthenticated
from playhead_receiver.query.problems import NotFound, status_of
from playhead_semconv.errors import PlayheadError

JSON = "application/json"

Say = Callable[[int, str], Response]


def face_router(say: Say, prefix: str = "") -> APIRouter:
    """A router whose errors go through ``say``; it is no part of the description of our own API."""

    class Speaking(APIRoute):
        """A route that says what went wrong in another's words."""

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


def as_json(content: Any, status: int = 200) -> Response:
    """An answer in JSON."""
    return Response(msgspec.json.encode(content), status, media_type=JSON)


def trace_id_of(text: str) -> bytes:
    """A trace id, leading zeros may be missing. `NotFound` if it is none."""
    try:
        found = bytes.fromhex(text.zfill(32))
    except ValueError:
        found = b""
    if len(found) != 16:
        raise NotFound(f"{text!r} is no trace id")
    return found
