"""MCP clients: stdio servers message by message, and a span per tool call on any transport.

Over HTTP the HTTP boundary records the bytes. Here only the trace context that the SDK writes into each
request becomes a read, so that a replay sends the same. No other boundary sees a stdio server. Each
message of the client is an exchange of the kind ``mcp`` with its answer. What the server sends on its
own initiative (notifications, progress, its own requests) becomes parts of one exchange for the
connection. A replay starts no server.
"""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from types import ModuleType
from typing import Any

from opentelemetry.trace import SpanKind, Status, StatusCode, use_span

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.span_content import set_content
from playhead_instrumentation.libraries.mcp.stdio import Connection, Kit
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.exceptions import name_of, record_of
from playhead_instrumentation.session.session import Session, current
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.tool_span import take_tool_span
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

log = Log(__name__)


def _recording() -> Session | None:
    session = current()
    if session is None or lanes.current() in (lanes.UNRECORDED, lanes.GC):
        return None
    return session


def patch_stdio(module: ModuleType) -> None:
    """Patch connections to servers on stdio."""
    original: Any = required(module, "stdio_client")
    if hasattr(original, "__playhead__"):
        return
    kit = Kit(module)

    def opened(_: Any, server: Any) -> Connection | None:
        session = _recording()
        if session is None:
            return None
        return Connection(session, kit, label_of(server.command, server.args))

    @asynccontextmanager
    @functools.wraps(getattr(original, "__wrapped__", original))
    async def stdio_client(server: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[Any, None]:
        connection: Connection | None = PATCHES.call(opened, _nothing, server)
        if connection is None:
            async with original(server, *args, **kwargs) as streams:
                yield streams
            return
        async with connection.opened(lambda: original(server, *args, **kwargs)) as streams:
            yield streams

    stdio_client.__dict__["__playhead__"] = True
    PATCHES.put(module, "stdio_client", stdio_client)


def _nothing(_: Any) -> None:
    return None


def label_of(command: str, arguments: list[str]) -> str:
    """Return a server's command line without folders, which differ between machines."""
    return " ".join(os.path.basename(word) if os.sep in word else word for word in (command, *arguments))


def patch_context(module: ModuleType) -> None:
    """Patch the function that writes the trace context into requests."""
    PATCHES.around(module, "inject_trace_context", _inject)


def _inject(original: Any, meta: dict[str, Any]) -> None:
    session = _recording()
    if session is None:
        original(meta)
        return

    def live() -> list[Any]:
        carrier: dict[str, Any] = {}
        original(carrier)
        meta.update(carrier)
        return [[name, value] for name, value in carrier.items()]

    meta.update(dict(session.driver.reads.read("entropy/mcp.trace_context", live)))


def patch_session(module: ModuleType) -> None:
    """Patch tool calls."""
    PATCHES.around(required(module, "ClientSession"), "call_tool", _call_tool)


async def _call_tool(original: Any, client: Any, name: str, *args: Any, **kwargs: Any) -> Any:
    session = _recording()
    if session is None:
        return await original(client, name, *args, **kwargs)
    arguments = kwargs["arguments"] if "arguments" in kwargs else args[0] if args else None
    around = take_tool_span(name)
    if around is not None:
        note(around, {a.MCP_METHOD_NAME: "tools/call"})
    span = around or session.tracer.start_span(
        f"tools/call {name}",
        kind=SpanKind.CLIENT,
        attributes={
            a.MCP_METHOD_NAME: "tools/call",
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.EXECUTE_TOOL,
            a.GEN_AI_TOOL_NAME: name,
        },
    )
    try:
        set_content(session, span, {a.GEN_AI_TOOL_CALL_ARGUMENTS: arguments or {}})
        with use_span(span, record_exception=False, set_status_on_exception=False):
            result = await original(client, name, *args, **kwargs)
        _conclude(session, span, result)
    except BaseException as error:
        record = record_of(error, session.redactor.text)
        note(span, {a.ERROR_TYPE: name_of(record)})
        span.set_status(Status(StatusCode.ERROR, record.message or None))
        raise
    finally:
        if around is None:
            span.end()
    return result


def _conclude(session: Session, span: Any, result: Any) -> None:
    try:
        plain = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        set_content(session, span, {a.GEN_AI_TOOL_CALL_RESULT: plain})
        if plain.get("isError"):
            note(span, {a.ERROR_TYPE: "tool_error"})
            span.set_status(Status(StatusCode.ERROR))
    except Exception:
        log.debug("playhead could not describe the result of a tool", exc_info=True)
