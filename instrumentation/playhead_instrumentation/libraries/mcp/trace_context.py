"""Trace context in ``_meta`` of requests, for versions of the SDK that neither write nor read it (1.x).

The client's span becomes the parent of the server's, over each transport. The fields are a read, as with
the later versions, which write them themselves: so a replay sends the same.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import ModuleType
from typing import Any

from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import SpanKind

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME_CHARS = 200
"""Characters of a name that a client sends, in the name of a span."""


def patch_requests(module: ModuleType) -> None:
    """Patch the method that sends each request, of a client or a server."""
    PATCHES.around(required(module, "BaseSession"), "send_request", _send_request)


async def _send_request(
    original: Callable[..., Awaitable[Any]], sender: Any, /, request: Any, *args: Any, **kwargs: Any
) -> Any:
    session = recording()
    if session is not None:
        request = _with_context(session, request)
    return await original(sender, request, *args, **kwargs)


def _with_context(session: Session, request: Any) -> Any:
    plain = request.model_dump(by_alias=True, mode="json", exclude_none=True)
    meta: dict[str, Any] = plain.setdefault("params", {}).setdefault("_meta", {})
    if "traceparent" in meta:
        return request  # the program or another instrumentation continues the trace

    def live() -> list[Any]:
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        return [[name, value] for name, value in carrier.items()]

    fields: list[Any] = session.driver.reads.read("entropy/mcp.trace_context", live)
    if not fields:
        return request
    meta.update(dict(fields))
    return request.model_validate(plain)


def patch_server(module: ModuleType) -> None:
    """Patch the method of a server that handles each request."""
    if not hasattr(module, "OpenTelemetryMiddleware"):  # later versions have spans of their own
        PATCHES.around(required(module, "Server"), "_handle_request", _handle_request)


async def _handle_request(
    original: Callable[..., Awaitable[Any]],
    server: Any,
    /,
    message: Any,
    req: Any,
    *args: Any,
    **kwargs: Any,
) -> Any:
    session = recording()
    if session is None:
        return await original(server, message, req, *args, **kwargs)
    redact = session.redactor.text
    method = redact(str(req.method)[:NAME_CHARS])
    named = getattr(getattr(req, "params", None), "name", None)
    name = redact(named[:NAME_CHARS]) if isinstance(named, str) else ""
    attributes = {a.MCP_METHOD_NAME: method}
    if method == "tools/call":
        attributes[a.GEN_AI_OPERATION_NAME] = GenAiOperationName.EXECUTE_TOOL
        attributes[a.GEN_AI_TOOL_NAME] = name
    with session.tracer.start_as_current_span(
        f"{method} {name}".rstrip(),
        _context_of(message.request_meta),
        SpanKind.SERVER,
        attributes,
    ):
        return await original(server, message, req, *args, **kwargs)


def _context_of(meta: Any) -> Context | None:
    """Return the context that a request names; None: that of the caller remains."""
    if meta is None:
        return None
    context = propagate.extract(
        {name: value for name, value in meta.model_dump().items() if isinstance(value, str)}
    )
    return context if trace.get_current_span(context).get_span_context().is_valid else None
