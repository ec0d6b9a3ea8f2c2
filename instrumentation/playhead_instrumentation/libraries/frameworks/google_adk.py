"""Hook of Google's Agent Development Kit: completes its own OpenTelemetry spans of tools.

They have arguments and results only if variables of the framework ask for them. And a tool that only
calls an MCP server, or a function that `playhead.tool` marks, is one step with it.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import ModuleType
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.common.span_content import set_content
from playhead_instrumentation.libraries.frameworks.operation_span import never_raises
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.tool_span import ToolSpan, entered
from playhead_semconv import attributes as a

NAME: Final = "google-adk"


def hook(_: ModuleType) -> None:
    """Install the hook: `google.adk` has been imported."""
    PATCHES.when_imported("google.adk.telemetry.tracing", NAME, _patch_descriptions)
    PATCHES.when_imported("google.adk.telemetry._instrumentation", NAME, _patch_tools)


def _patch_descriptions(module: ModuleType) -> None:
    PATCHES.around(module, "trace_tool_call", _trace_tool_call)


def _trace_tool_call(original: Callable[..., None], /, *args: Any, **kwargs: Any) -> None:
    """Layer of the function that describes a tool call in the current span."""
    original(*args, **kwargs)
    _describe(**kwargs)


@never_raises
def _describe(args: Any = None, function_response_event: Any = None, span: Any = None, **_: Any) -> None:
    session = recording()
    if session is None:
        return
    span = span or trace.get_current_span()
    note(span, {a.PLAYHEAD_FRAMEWORK_NAME: NAME})
    content = {} if args is None else {a.GEN_AI_TOOL_CALL_ARGUMENTS: args}
    answered = getattr(getattr(function_response_event, "content", None), "parts", None)
    answer = getattr(answered[0], "function_response", None) if answered else None
    if answer is not None and answer.response is not None:
        content[a.GEN_AI_TOOL_CALL_RESULT] = answer.response
    set_content(session, span, content)


def _patch_tools(module: ModuleType) -> None:
    PATCHES.around(module, "record_tool_execution", _record_tool)


def _record_tool(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Layer of the function that returns the scope of a tool call."""
    tool = kwargs["tool"] if "tool" in kwargs else args[0]
    return _within_tool(original(*args, **kwargs), str(tool.name))


@asynccontextmanager
async def _within_tool(scope: AbstractAsyncContextManager[Any], name: str) -> AsyncGenerator[Any]:
    async with scope as inner:
        tool = ToolSpan(name, trace.get_current_span())
        outer = otel_context.attach(entered(otel_context.get_current(), tool))
        try:
            yield inner
        finally:
            otel_context.detach(outer)
