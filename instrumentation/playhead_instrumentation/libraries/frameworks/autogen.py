"""Hook of AutoGen: completes its own OpenTelemetry spans.

AutoGen has spans of agents and tools. This hook adds what they lack: the team that contains its agents,
hand-offs, arguments and results of tools. Its runtime also has spans of each message between the agents
of a team: some twenty for a turn, many of them without a parent. They are left out, as with AutoGen's
own ``AUTOGEN_DISABLE_RUNTIME_TRACING``; if a program sets this variable, its value decides.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from types import ModuleType
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan

from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.frameworks.operation_span import (
    OperationSpan,
    never_raises,
    tool_attributes,
)
from playhead_instrumentation.libraries.frameworks.scopes import streamed_within
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.tracing.tool_span import ToolSpan, entered
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "autogen"


def hook(_: ModuleType) -> None:
    """Install the hook: `autogen_core` has been imported."""
    PATCHES.when_imported("autogen_core._telemetry._tracing", NAME, _patch_messages)
    PATCHES.when_imported("autogen_core.tools._base", NAME, _patch_tools)
    PATCHES.when_imported("autogen_ext.tools.mcp._workbench", NAME, _patch_tool_spans)
    PATCHES.when_imported("autogen_agentchat.teams._group_chat._base_group_chat", NAME, _patch_teams)


def _patch_messages(module: ModuleType) -> None:
    PATCHES.around(required(module, "TraceHelper"), "trace_block", _trace_block)


def _trace_block(original: Callable[..., Any], helper: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Layer of the method that starts a span of a message."""
    if "AUTOGEN_DISABLE_RUNTIME_TRACING" in os.environ or recording() is None:
        return original(helper, *args, **kwargs)
    return nullcontext(NonRecordingSpan(trace.get_current_span().get_span_context()))


def _patch_tools(module: ModuleType) -> None:
    PATCHES.around(required(module, "BaseTool"), "run_json", _run_tool)
    _patch_tool_spans(module)


def _patch_tool_spans(module: ModuleType) -> None:
    PATCHES.around(module, "trace_tool_span", _trace_tool)


async def _run_tool(
    original: Callable[..., Awaitable[Any]], tool: Any, /, *args: Any, **kwargs: Any
) -> Any:
    """Layer of the method that runs a tool and that knows its arguments and its result."""
    operation = _begun_tool(tool, *args, **kwargs)
    if operation is None:
        return await original(tool, *args, **kwargs)
    outer = otel_context.attach(operation.context())
    try:
        result = await original(tool, *args, **kwargs)
        _set_result(operation, tool, result)
    except BaseException as error:
        operation.end(error)
        raise
    finally:
        otel_context.detach(outer)
        operation.end()
    return result


def _begun_tool(
    tool: Any, args: Mapping[str, Any], _: Any = None, call_id: str | None = None, **__: Any
) -> OperationSpan | None:
    known = {
        **tool_attributes(NAME, tool.name),
        a.GEN_AI_TOOL_DESCRIPTION: tool.description,
        a.GEN_AI_TOOL_CALL_ID: call_id or "",
    }
    operation = OperationSpan.begin(
        f"{GenAiOperationName.EXECUTE_TOOL} {tool.name}",
        {name: value for name, value in known.items() if value},
    )
    if operation is not None:
        operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: dict(args)})
    return operation


@never_raises
def _set_result(operation: OperationSpan, tool: Any, result: Any) -> None:
    operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: tool.return_value_as_string(result)})


def _trace_tool(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Layer of AutoGen's span of a tool. If the tool has our span already, there is no other."""
    name = str(kwargs.get("tool_name", args[0] if args else ""))
    operation = OperationSpan.current()
    if operation is not None and operation.tool == name:
        return nullcontext(operation.span)
    return _within_tool(original(*args, **kwargs), name)


@contextmanager
def _within_tool(spans: AbstractContextManager[trace.Span], name: str) -> Generator[trace.Span]:
    with spans as span:
        outer = otel_context.attach(entered(otel_context.get_current(), ToolSpan(name, span)))
        try:
            yield span
        finally:
            otel_context.detach(outer)


def _patch_teams(module: ModuleType) -> None:
    PATCHES.around(required(module, "BaseGroupChat"), "run_stream", _run_team)


def _run_team(original: Callable[..., Any], team: Any, /, *args: Any, **kwargs: Any) -> Any:
    """Layer of the method that runs a team, also for its other methods."""
    stream = original(team, *args, **kwargs)
    name = str(getattr(team, "name", "") or type(team).__name__)
    operation = OperationSpan.begin(
        f"{GenAiOperationName.INVOKE_WORKFLOW} {name}",
        {
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.INVOKE_WORKFLOW,
            a.GEN_AI_WORKFLOW_NAME: name,
            a.GEN_AI_CONVERSATION_ID: str(getattr(team, "_team_id", "")),
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
    )
    return stream if operation is None else streamed_within(operation, stream, _note_handoff)


@never_raises
def _note_handoff(message: Any) -> None:
    """Add a span for the message with which an agent hands over to another one."""
    if type(message).__name__ != "HandoffMessage":
        return
    ends = str(message.source), str(message.target)
    operation = OperationSpan.begin(
        f"handoff {ends[0]} to {ends[1]}",
        {
            a.PLAYHEAD_STEP_NAME: "handoff",
            a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM: ends[0],
            a.PLAYHEAD_FRAMEWORK_HANDOFF_TO: ends[1],
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
    )
    if operation is not None:
        operation.end()
