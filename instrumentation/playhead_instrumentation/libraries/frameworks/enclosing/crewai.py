"""Hook of CrewAI: spans around the runs of flows, crews, tasks and agents, and the calls of tools.

CrewAI has a bus of events, but it calls handlers in threads of its own, where nothing is known of the
context of the call. A crew that streams calls itself in another thread: that call has the span.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.frameworks.enclosing.enclosed_call import EnclosedCall
from playhead_instrumentation.libraries.frameworks.operation_span import (
    UNKNOWN_ERROR,
    OperationSpan,
    tool_attributes,
)
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "crewai"


def hook(_: ModuleType) -> None:
    """Install the hook: `crewai` has been imported."""
    PATCHES.when_imported("crewai.crew", NAME, _patch_crews)
    PATCHES.when_imported("crewai.task", NAME, _patch_tasks)
    PATCHES.when_imported("crewai.agent.core", NAME, _patch_agents)
    PATCHES.when_imported("crewai.tools.base_tool", NAME, _patch_tools)
    PATCHES.when_imported("crewai.tools.structured_tool", NAME, _patch_structured_tools)
    PATCHES.when_imported("crewai.flow.runtime", NAME, _patch_flows)


def _enclose(owner: Any, call: EnclosedCall, method: str, *coroutines: str) -> None:
    """Enclose a method and, if this version has them, coroutine functions."""
    PATCHES.around(owner, method, call.sync_layer)
    for name in coroutines:
        if hasattr(owner, name):
            PATCHES.around(owner, name, call.async_layer)


def _patch_crews(module: ModuleType) -> None:
    _enclose(required(module, "Crew"), EnclosedCall(_begin_crew), "kickoff", "akickoff")


def _patch_tasks(module: ModuleType) -> None:
    _enclose(required(module, "Task"), EnclosedCall(_begin_task), "_execute_core", "_aexecute_core")


def _patch_agents(module: ModuleType) -> None:
    call = EnclosedCall(_begin_agent)
    agent = required(module, "Agent")
    _enclose(agent, call, "execute_task", "aexecute_task", "kickoff_async", "akickoff")
    _enclose(agent, call, "kickoff")


def _patch_tools(module: ModuleType) -> None:
    call = EnclosedCall(_begin_tool, _finish_tool)
    for name in ("BaseTool", "Tool"):
        _enclose(required(module, name), call, "run", "arun")


def _patch_structured_tools(module: ModuleType) -> None:
    call = EnclosedCall(_begin_structured_tool, _finish_tool)
    _enclose(required(module, "CrewStructuredTool"), call, "invoke", "ainvoke")


def _patch_flows(module: ModuleType) -> None:
    flow = required(module, "Flow")
    PATCHES.around(flow, "kickoff_async", EnclosedCall(_begin_flow).async_layer)
    PATCHES.around(flow, "_execute_method", EnclosedCall(_begin_flow_method).async_layer)


def _begin_crew(crew: Any, *_: Any, **__: Any) -> OperationSpan | None:
    return None if crew.stream else _frame(GenAiOperationName.INVOKE_WORKFLOW, crew.name or "crew")


def _begin_flow(flow: Any, *_: Any, **__: Any) -> OperationSpan | None:
    if getattr(flow, "stream", False):
        return None
    return _frame(GenAiOperationName.INVOKE_WORKFLOW, getattr(flow, "name", "") or type(flow).__name__)


def _begin_agent(agent: Any, *_: Any, **__: Any) -> OperationSpan | None:
    """Start the span of an agent, unless the call is one that its own method makes to try again."""
    around = OperationSpan.current()
    name = str(agent.role).strip()
    if around is not None and around.name == f"{GenAiOperationName.INVOKE_AGENT} {name}":
        return None
    return _frame(GenAiOperationName.INVOKE_AGENT, name)


def _frame(operation: str, name: str) -> OperationSpan | None:
    is_agent = operation == GenAiOperationName.INVOKE_AGENT
    return OperationSpan.begin(
        f"{operation} {name}",
        {
            a.GEN_AI_OPERATION_NAME: operation,
            a.GEN_AI_AGENT_NAME if is_agent else a.GEN_AI_WORKFLOW_NAME: name,
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
    )


def _begin_task(task: Any, *_: Any, **__: Any) -> OperationSpan | None:
    return _step(task.name or "task")


def _begin_flow_method(_: Any, method_name: Any, *__: Any, **___: Any) -> OperationSpan | None:
    return _step(str(method_name))


def _step(name: str) -> OperationSpan | None:
    return OperationSpan.begin(name, {a.PLAYHEAD_STEP_NAME: name, a.PLAYHEAD_FRAMEWORK_NAME: NAME})


def _begin_tool(tool: Any, *args: Any, **arguments: Any) -> OperationSpan | None:
    return _tool(tool, {**arguments, "args": args} if args else arguments)


def _begin_structured_tool(tool: Any, input: Any = None, *_: Any, **__: Any) -> OperationSpan | None:
    return _tool(tool, input)


def _tool(tool: Any, arguments: Any) -> OperationSpan | None:
    """Start the span of a tool, unless its other form, which calls this one, has started it."""
    name = str(tool.name)
    around = OperationSpan.current()
    if around is not None and around.tool == name:
        return None
    operation = OperationSpan.begin(
        f"{GenAiOperationName.EXECUTE_TOOL} {name}", tool_attributes(NAME, name)
    )
    if operation is not None:
        operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: arguments})
    return operation


def _finish_tool(operation: OperationSpan, result: Any) -> None:
    operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: result})
    if type(result).__name__ == "ToolFailure":
        operation.fail(UNKNOWN_ERROR, str(getattr(result, "message", "")))
