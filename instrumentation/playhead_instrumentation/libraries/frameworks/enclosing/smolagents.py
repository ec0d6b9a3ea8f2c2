"""Hook of smolagents: spans around the runs of agents and the tool calls.

An agent that manages others calls them as tools. A `ToolCallingAgent` calls each by a method that knows
the tool's name; code of a `CodeAgent` calls the tool or the agent itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final, cast

from playhead_instrumentation.libraries.frameworks.enclosing.enclosed_call import EnclosedCall
from playhead_instrumentation.libraries.frameworks.operation_span import (
    OperationSpan,
    tool_attributes,
)
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "smolagents"


def hook(_: ModuleType) -> None:
    """Install the hook: `smolagents` has been imported."""
    PATCHES.when_imported("smolagents.agents", NAME, _patch_agents)
    PATCHES.when_imported("smolagents.tools", NAME, _patch_tools)


def _patch_agents(module: ModuleType) -> None:
    run = EnclosedCall(_begin_agent)
    PATCHES.around(required(module, "MultiStepAgent"), "run", run.sync_layer)
    call = EnclosedCall(_begin_tool_call, _finish_tool)
    PATCHES.around(required(module, "ToolCallingAgent"), "execute_tool_call", call.sync_layer)


def _patch_tools(module: ModuleType) -> None:
    call = EnclosedCall(_begin_tool, _finish_tool)
    PATCHES.around(required(module, "Tool"), "__call__", call.sync_layer)


def _begin_agent(agent: Any, *_: Any, **__: Any) -> OperationSpan | None:
    name = str(getattr(agent, "name", None) or type(agent).__name__)
    return OperationSpan.begin(
        f"{GenAiOperationName.INVOKE_AGENT} {name}",
        {
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.INVOKE_AGENT,
            a.GEN_AI_AGENT_NAME: name,
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
    )


def _begin_tool_call(_: Any, tool_name: str, arguments: Any = None, **__: Any) -> OperationSpan | None:
    return _tool(tool_name, "", arguments)


def _begin_tool(tool: Any, *args: Any, **kwargs: Any) -> OperationSpan | None:
    """Start the span of a tool, unless the agent that calls it has started it."""
    around = OperationSpan.current()
    if around is not None and around.tool == tool.name:
        return None
    given = {name: value for name, value in kwargs.items() if name != "sanitize_inputs_outputs"}
    if len(args) == 1 and isinstance(args[0], dict):
        given = {**cast("Mapping[str, Any]", args[0]), **given}
    else:  # positional, in the order of the tool's inputs
        given = {**dict(zip(tool.inputs, args, strict=False)), **given}
    return _tool(tool.name, getattr(tool, "description", ""), given)


def _tool(name: str, description: str, arguments: Any) -> OperationSpan | None:
    attributes = tool_attributes(NAME, name)
    if description:
        attributes[a.GEN_AI_TOOL_DESCRIPTION] = description
    operation = OperationSpan.begin(f"{GenAiOperationName.EXECUTE_TOOL} {name}", attributes)
    if operation is not None:
        operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: arguments})
    return operation


def _finish_tool(operation: OperationSpan, result: Any) -> None:
    operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: result})
