"""The application of the query API."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from fastapi import APIRouter, FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from starlette.middleware.gzip import GZipMiddleware

from playhead_receiver.api.context import SCOPE_OF
from playhead_receiver.api.jaeger.http import jaeger_routers
from playhead_receiver.api.middleware import BodySizeMiddleware, TimingMiddleware
from playhead_receiver.api.problems import MEDIA_TYPE, Problem, handle_problems
from playhead_receiver.api.routes import ROUTERS
from playhead_receiver.api.serving import Serving
from playhead_receiver.api.tempo.http import tempo_router
from playhead_receiver.auth import Scope

COMPATIBILITY_ROUTERS: tuple[APIRouter, ...] = (
    *jaeger_routers("/jaeger"),
    tempo_router("/tempo"),
    tempo_router(for_jaeger_too=True),
    *jaeger_routers(traces_by_id=False),
)
"""The APIs of Jaeger and Tempo: each under its own prefix, and at the paths that its clients use.

Only ``/api/traces/{trace_id}`` belongs to both Jaeger and Tempo: requests for protobuf go to Tempo.
"""

COMPRESSED_BYTES = 4096
"""Responses from this size on are compressed for clients that accept gzip; live streams never are."""

PUBLIC = frozenset(("/health", "/ready"))
"""Paths that are answered without a token: they reveal nothing about stored data."""


def query_app(serving: Serving, others: Sequence[APIRouter] = ()) -> FastAPI:
    """The ASGI application. Requests are answered in threads; the event loop only moves bytes.

    ``others``: additional routers on the same port.
    """

    app = FastAPI(
        title="playhead",
        summary="Recorded runs of LLM agents: messages, tool calls, effects and cost.",
        version=serving.version,
        docs_url=None,
        redoc_url=None,
    )
    app.state.serving = serving
    app.add_middleware(BodySizeMiddleware)
    app.add_middleware(TimingMiddleware, tallies=serving.tallies)
    app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_BYTES, compresslevel=4)
    handle_problems(app, _methods_of)
    app.router.routes += _together((*ROUTERS, *others)).routes
    guarded = scopes() | scopes(others)
    unguarded = {path for (_, path), scope in guarded.items() if not scope} - PUBLIC
    if unguarded:
        raise AssertionError(f"no scope is required at {', '.join(sorted(unguarded))}")
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = describe()
            for (method, path), scope in scopes().items():
                schema["paths"][path][method.lower()]["x-playhead-scope"] = scope
        return describe()

    app.openapi = openapi
    _match_once(app)
    return app


def _match_once(app: FastAPI) -> None:
    """Match a path without a route, so that FastAPI completes its routes before the first request.

    That takes several tenths of a second and would delay all concurrent requests.
    """

    async def nothing(*_: object) -> Any:
        return None

    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/-", "headers": []}
    with suppress(StopIteration):  # it awaits nothing, so no event loop is needed
        app.router(scope, nothing, nothing).__await__().send(None)


_TOGETHER: Final[dict[tuple[int, ...], APIRouter]] = {}
"""Combined routers, by the identities of their parts."""


def _together(routers: Sequence[APIRouter]) -> APIRouter:
    """Combine routers, once per process because it takes longer than the start of a receiver."""
    combined = _TOGETHER.get(key := tuple(map(id, routers)))
    if combined is None:
        combined = _TOGETHER[key] = APIRouter(
            responses={"default": {"model": Problem, "content": {MEDIA_TYPE: {}}}},
            generate_unique_id_function=_operation_id,
        )
        for router in routers:
            combined.include_router(router)
    return combined


def scopes(routers: Sequence[APIRouter] = ROUTERS) -> dict[tuple[str, str], Scope | None]:
    """The scope that each endpoint requires, by method and path; None if it needs no token."""
    scope_of: dict[tuple[str, str], Scope | None] = {}
    for router in routers:
        for route in router.routes:
            assert isinstance(route, APIRoute)
            for method in route.methods or ():
                scope_of[method, route.path] = _scope_of(route.dependant)
    return scope_of


def _scope_of(dependant: Dependant) -> Scope | None:
    if dependant.call in SCOPE_OF:
        return SCOPE_OF[dependant.call]
    for below in dependant.dependencies:
        scope = _scope_of(below)
        if scope is not None:
            return scope
    return None


def _methods_of(path: str) -> Iterator[str]:
    for router in ROUTERS:
        for route in router.routes:
            if isinstance(route, APIRoute) and route.path_regex.match(path):
                yield from route.methods or ()


def _operation_id(route: APIRoute) -> str:
    return route.name
