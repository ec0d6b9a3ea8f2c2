"""OTLP/HTTP in protobuf and JSON, and the paths for agents, on one port."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from io import BytesIO

import anyio
import anyio.to_thread
from google.protobuf.message import Message
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from playhead_core.control.messages import LISTEN, REPORT
from playhead_core.errors import PlayheadError, TooLarge
from playhead_core.facts import digest_of
from playhead_exporter.shipping.endpoint_answers import WATCHED
from playhead_receiver.auth.guard import Caller, Guard, Unauthenticated
from playhead_receiver.auth.tokens import Scope
from playhead_receiver.endpoints import agents
from playhead_receiver.endpoints.answers import Misdirected, about, http_status, is_retryable, status_of
from playhead_receiver.ingest.budget import RETRY_AFTER_S, Share, Stalled
from playhead_receiver.ingest.encodings import MAX_BYTES, UnsupportedEncoding, decompress, too_large
from playhead_receiver.ingest.export import REQUESTS, Acknowledgement, Signal
from playhead_receiver.ingest.otlp_json import binary_of_json, json_of
from playhead_receiver.tenants.tenants import Tenants

PROTOBUF = "application/x-protobuf"
DESTINATION = "playhead-destination"
"""Header in which playhead's exporter names the intended receiver: after a kill, another one may listen
at the same port."""
JSON = "application/json"
STALL_S = 20.0
"""Seconds that a sender may be silent in the middle of a request."""
DRAIN_S = 5.0
"""Seconds for which the rest of a refused body is read, so that its sender sees the answer."""

ROUTES: tuple[tuple[str, str, Scope | None], ...] = (
    ("/v1/traces", "POST", "ingest"),
    ("/v1/logs", "POST", "ingest"),
    ("/v1/metrics", "POST", "ingest"),
    (LISTEN, "POST", "ingest"),
    (REPORT, "POST", "ingest"),
    ("/v1/playhead", "GET", None),
    ("/health", "GET", None),
)
"""Paths, methods, and the scope that each requires."""

THREADS = 16
"""Most requests that are decompressed, read and stored at once; more wait."""


def http_app(
    tenants: Tenants,
    guard: Guard,
    *,
    limit_bytes: int = MAX_BYTES,
    destination: str = "",
    is_watched: Callable[[], bool] = lambda: True,
) -> Starlette:
    """The ASGI application. ``guard`` admits exports; they go to the tenant of their token.

    ``destination``: what this receiver stands for; senders that name another one are refused. If it
    is empty, all are admitted. ``is_watched``: whether a live page or an alert
    waits for data.
    """
    own = digest_of(destination.encode()).hex()
    limiter: list[anyio.CapacityLimiter] = []

    def threads() -> anyio.CapacityLimiter:
        if not limiter:  # needs the running event loop
            limiter.append(anyio.CapacityLimiter(THREADS))
        return limiter[0]

    def receive(signal: Signal) -> Callable[[Request], Awaitable[Response]]:
        async def endpoint(request: Request) -> Response:
            kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
            coming = request.stream()
            awaits_word = request.headers.get("expect", "").lower() == "100-continue"
            try:
                with Share(tenants.budget) as share:
                    try:
                        caller = guard.admit(request.headers.get("authorization", ""), "ingest")
                        if destination and request.headers.get(DESTINATION, own) != own:
                            raise Misdirected("this receiver writes to another data folder or database")
                        _check_kind(kind)
                        _check_announced(request, limit_bytes)
                        awaits_word = False
                        body = await _read(coming, share, limit_bytes)
                    except (AnnouncedTooLarge, Stalled):
                        raise
                    except PlayheadError:
                        if not awaits_word:
                            await _drain(coming)
                        raise
                    work = Work(
                        caller,
                        signal,
                        kind,
                        request.headers.get("content-encoding", ""),
                        body,
                        share,
                        limit_bytes,
                    )
                    del body
                    response = await anyio.to_thread.run_sync(work.answer, tenants, limiter=threads())
                    response.headers[WATCHED] = str(int(is_watched()))
                    return response
            except PlayheadError as problem:
                refusal = _refuse(problem, kind)
                if awaits_word:  # the body that it announced will not come
                    refusal.headers["connection"] = "close"
                return refusal
            except ClientDisconnect:
                return Response(status_code=400)

        return endpoint

    async def say(_: Request) -> JSONResponse:
        return JSONResponse(about())

    async def health(_: Request) -> JSONResponse:
        return JSONResponse({"status": "ok"})

    endpoints = {f"/v1/{signal}": receive(signal) for signal in REQUESTS}
    endpoints |= {"/v1/playhead": say, "/health": health}
    endpoints |= agents.endpoints(tenants, guard, lambda problem: _refuse(problem, JSON))
    return Starlette(
        routes=[Route(path, endpoints[path], methods=[method]) for path, method, _ in ROUTES]
    )


def _check_kind(kind: str) -> None:
    if kind not in (PROTOBUF, JSON):
        raise UnsupportedEncoding(
            f"content type {kind!r} is not supported", hint=f"use {PROTOBUF} or {JSON}"
        )


class AnnouncedTooLarge(TooLarge):
    """The length that a request announces is above the limit: it is refused before its body arrives."""


def _check_announced(request: Request, limit_bytes: int) -> None:
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limit_bytes:
        problem = too_large(limit_bytes)
        raise AnnouncedTooLarge(problem.what, hint=problem.hint)


async def _read(coming: AsyncIterator[bytes], share: Share, limit_bytes: int) -> bytes:
    """Read the body. Budget is reserved for bytes as they arrive, not for the announced length.

    `TooLarge`, `Overloaded`, `Stalled`.
    """
    body = BytesIO()
    with anyio.move_on_after(STALL_S) as patience:
        async for chunk in coming:
            patience.deadline = anyio.current_time() + STALL_S
            if body.tell() + len(chunk) > limit_bytes:
                raise too_large(limit_bytes)
            share.grow(len(chunk))
            body.write(chunk)
        return body.getvalue()
    raise Stalled(f"the request stopped arriving for {STALL_S:g} s")


async def _drain(coming: AsyncIterator[bytes]) -> None:
    """Read and discard the rest: a sender that is cut off while it sends would not see the answer."""
    with anyio.move_on_after(DRAIN_S):
        async for _ in coming:
            pass


@dataclass(slots=True)
class Work:
    """One request whose body is read but not decoded yet."""

    caller: Caller
    signal: Signal
    kind: str
    encoding: str
    body: bytes
    share: Share
    limit_bytes: int

    def answer(self, tenants: Tenants) -> Response:
        """Store the content of the request.

        No error may leave the thread: it would be in a reference cycle with the frames that hold the
        request, which would stay in memory until the next garbage collection.
        """
        try:
            return _response(self._export(tenants).message, self.kind, 200)
        except PlayheadError as problem:
            return _refuse(problem, self.kind)

    def _export(self, tenants: Tenants) -> Acknowledgement:
        plain = decompress(self.body, self.encoding, self.limit_bytes, self.share.grow)
        self.body = b""
        if self.kind == JSON:
            plain = binary_of_json(plain, REQUESTS[self.signal])
        return tenants.services(self.caller.tenant).intake.export(self.signal, plain)


def _response(message: Message, kind: str, status: int) -> Response:
    content = json_of(message) if kind == JSON else message.SerializeToString()
    return Response(content, status_code=status, media_type=kind)


def _refuse(problem: PlayheadError, kind: str) -> Response:
    kind = kind if kind in (PROTOBUF, JSON) else JSON
    response = _response(status_of(problem), kind, http_status(problem))
    if is_retryable(problem):
        response.headers["retry-after"] = str(RETRY_AFTER_S)
    if isinstance(problem, Unauthenticated):
        response.headers["www-authenticate"] = "Bearer"
    if isinstance(problem, Stalled):
        response.headers["connection"] = "close"
    return response
