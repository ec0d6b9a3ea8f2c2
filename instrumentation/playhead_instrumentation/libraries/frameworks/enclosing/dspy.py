"""Hook of DSPy: spans around the calls of modules, tools and retrievers.

DSPy has callbacks, but a program that configures its own replaces those of others. A module that the
program calls is a workflow, and `ReAct` is an agent. A module within another one has a span if it is the
program's own: those of DSPy within each other (`ChainOfThought`, `Predict`) add nothing to a call.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final

from playhead_instrumentation.libraries.frameworks.enclosing.enclosed_call import EnclosedCall
from playhead_instrumentation.libraries.frameworks.enclosing.retrieval import (
    begin_retrieval,
    set_documents,
)
from playhead_instrumentation.libraries.frameworks.operation_span import (
    OperationSpan,
    tool_attributes,
)
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "dspy"

AGENTS: Final = ("ReAct", "CodeAct", "RLM")
"""Modules of DSPy that call tools until they have an answer."""


def hook(dspy: ModuleType) -> None:
    """Install the hook: `dspy` has been imported."""
    module, tool = EnclosedCall(_begin_module), EnclosedCall(_begin_tool, _finish_tool)
    _enclose(required(dspy, "Module"), module)
    _enclose(required(dspy, "Tool"), tool)
    if hasattr(dspy, "Retrieve"):
        retrieve = EnclosedCall(_begin_retrieval, _finish_retrieval)
        PATCHES.around(dspy.Retrieve, "forward", retrieve.sync_layer)


def _enclose(owner: Any, call: EnclosedCall) -> None:
    PATCHES.around(owner, "__call__", call.sync_layer)
    if hasattr(owner, "acall"):
        PATCHES.around(owner, "acall", call.async_layer)


def _begin_module(module: Any, *_: Any, **__: Any) -> OperationSpan | None:
    kind = type(module)
    name = kind.__name__
    is_own = kind.__module__.partition(".")[0] == NAME
    around = OperationSpan.current()
    if name == "Retrieve" and is_own:
        return None
    if name in AGENTS and is_own:
        operation, named = GenAiOperationName.INVOKE_AGENT, a.GEN_AI_AGENT_NAME
    elif around is None or around.tool or not is_own:
        operation, named = GenAiOperationName.INVOKE_WORKFLOW, a.GEN_AI_WORKFLOW_NAME
    else:
        return None
    return OperationSpan.begin(
        f"{operation} {name}",
        {a.GEN_AI_OPERATION_NAME: operation, named: name, a.PLAYHEAD_FRAMEWORK_NAME: NAME},
    )


def _begin_tool(tool: Any, *_: Any, **arguments: Any) -> OperationSpan | None:
    name = str(tool.name)
    attributes = tool_attributes(NAME, name)
    if tool.desc:
        attributes[a.GEN_AI_TOOL_DESCRIPTION] = str(tool.desc)
    operation = OperationSpan.begin(f"{GenAiOperationName.EXECUTE_TOOL} {name}", attributes)
    if operation is not None:
        operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: arguments})
    return operation


def _finish_tool(operation: OperationSpan, result: Any) -> None:
    operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: result})


def _begin_retrieval(retriever: Any, query: Any, *_: Any, **__: Any) -> OperationSpan | None:
    return begin_retrieval(NAME, type(retriever).__name__, query)


def _finish_retrieval(operation: OperationSpan, result: Any) -> None:
    passages = getattr(result, "passages", result)
    set_documents(
        operation,
        (one if isinstance(one, Mapping) else {"content": str(one)} for one in passages),  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    )
