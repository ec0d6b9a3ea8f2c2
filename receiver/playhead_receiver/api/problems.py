"""Error responses of the query API: problem details (RFC 9457)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any

import msgspec
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response

from playhead_core.errors import (
    CheckpointUnknown,
    PlayheadError,
    RunAmbiguous,
    RunUnknown,
    StoreError,
    UsageError,
)
from playhead_receiver.auth import Forbidden, Unauthenticated
from playhead_receiver.control.hub import HeldByOther, NotControlled, TooMany
from playhead_receiver.ingest.budget import RETRY_AFTER_S
from playhead_receiver.reruns.reruns import NotExecuted, TooManyReruns

MEDIA_TYPE = "application/problem+json"


class Problem(BaseModel):
    """A problem (RFC 9457)."""

    type: str
    """``urn:playhead:CODE``, or ``about:blank``."""
    title: str
    status: int
    detail: str
    cause: str | None = None
    hint: str | None = None


class NotFound(UsageError):
    """Nothing has that id."""

    code = "not-found"


class NodesMissing(UsageError):
    """A checkpoint refers to nodes that are neither stored nor sent with it."""

    code = "checkpoint-nodes"


class BodyTooLarge(UsageError):
    """A request is larger than the limit."""

    code = "body-too-large"


class Busy(PlayheadError):
    """The maximum number of concurrent requests is reached."""

    code = "busy"


def status_of(problem: PlayheadError) -> int:
    """The HTTP status of an error."""
    if isinstance(problem, Unauthenticated):
        return 401
    if isinstance(problem, Forbidden):
        return 403
    if isinstance(problem, BodyTooLarge):
        return 413
    if isinstance(problem, (RunUnknown, NotFound, CheckpointUnknown)):
        return 404
    if isinstance(problem, (RunAmbiguous, NodesMissing, NotControlled, HeldByOther, NotExecuted)):
        return 409
    if isinstance(problem, (TooMany, TooManyReruns)):
        return 429
    if isinstance(problem, UsageError):
        return 422
    if isinstance(problem, Busy):
        return 429
    return 503 if isinstance(problem, StoreError) else 500


def answer(status: int, detail: str, *, code: str = "", cause: str = "", hint: str = "") -> Response:
    """A problem response."""
    fields: dict[str, Any] = {
        "type": f"urn:playhead:{code}" if code else "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": detail,
    }
    fields |= {name: text for name, text in (("cause", cause), ("hint", hint)) if text}
    response = Response(msgspec.json.encode(fields), status, media_type=MEDIA_TYPE)
    if status == 401:
        response.headers["www-authenticate"] = "Bearer"
    if status in (429, 503):
        response.headers["retry-after"] = str(RETRY_AFTER_S)
    return response


def answer_error(problem: PlayheadError) -> Response:
    """A `PlayheadError` as a problem response."""
    return answer(
        status_of(problem), problem.what, code=problem.code, cause=problem.cause, hint=problem.hint
    )


def handle_problems(app: FastAPI, methods_of: Callable[[str], Iterable[str]]) -> None:
    """Answer every error of ``app`` with a problem response.

    ``methods_of``: returns the methods that a path supports.
    """

    async def ours(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, PlayheadError)
        return answer_error(problem)

    async def invalid(_: Request, problem: Exception) -> Response:
        assert isinstance(problem, RequestValidationError)
        wrong = [
            f"{'.'.join(str(step) for step in one['loc'][1:]) or one['loc'][0]}: {one['msg']}"
            for one in problem.errors()
        ]
        return answer(422, "; ".join(wrong), code="usage")

    async def other(request: Request, problem: Exception) -> Response:
        assert isinstance(problem, HTTPException)
        hint = "see /openapi.json" if problem.status_code == 404 else ""
        response = answer(problem.status_code, str(problem.detail), hint=hint)
        for name, value in (problem.headers or {}).items():
            response.headers[name] = value
        if problem.status_code == 405:
            response.headers["allow"] = ", ".join(sorted(methods_of(request.url.path)))
        return response

    async def unforeseen(_: Request, problem: Exception) -> Response:
        return answer(500, f"{type(problem).__name__} in the receiver")

    app.add_exception_handler(PlayheadError, ours)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, other)
    app.add_exception_handler(Exception, unforeseen)
