"""Hook of CrewAI: its event bus starts and ends spans.

CrewAI calls handlers of events in other threads, too late to enclose anything. Its bus takes an event in
the thread and the context of what happens, so a layer around the bus gets the events. An event at a
start opens a scope of CrewAI, and the event at its end names it. Both are in one context variable, as
is the current span.

=======================================  ============================================
what starts                              its span
=======================================  ============================================
a crew, or a flow of the program         ``invoke_workflow NAME``
a task, or a method of a flow            its name, as a step
an agent, in a task or by itself         ``invoke_agent ROLE``
a tool; delegation to an agent is one    ``execute_tool NAME``
a guardrail                              ``guardrail NAME``, as a step
a model call                             none: the SDK below has one
=======================================  ============================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any, Final, NamedTuple

from playhead_instrumentation.libraries.frameworks.operation_span import (
    UNKNOWN_ERROR,
    OperationSpan,
    never_raises,
    tool_attributes,
)
from playhead_instrumentation.libraries.frameworks.scopes import Entry
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "crewai"

DELEGATIONS: Final = ("delegate_work_to_coworker", "ask_question_to_coworker")
"""Tools that CrewAI gives to an agent that may delegate."""

Start = tuple[str, Mapping[str, Any]]
"""Name of a span, and the attributes with which it starts."""


def hook(_: ModuleType) -> None:
    """Install the hook: `crewai` has been imported."""
    PATCHES.when_imported("crewai.events.event_bus", NAME, _patch_bus)


def _patch_bus(module: ModuleType) -> None:
    PATCHES.around(required(module, "CrewAIEventsBus"), "emit", _emit)


def _emit(original: Any, bus: Any, source: Any, event: Any) -> Any:
    """Layer of the function that takes all events, and numbers them."""
    result = original(bus, source, event)
    SCOPES.emitted(source, event)
    return result


class _Open(NamedTuple):
    """Something that has started and has not ended."""

    operation: OperationSpan
    entry: Entry


class EventScopes:
    """What the events of a process have started. Its methods never raise."""

    def __init__(self) -> None:
        self._open: Final[dict[str, _Open]] = {}
        """By the id of the event at the start."""

    @never_raises
    def emitted(self, source: Any, event: Any) -> None:
        """Something has started, has ended or has happened."""
        ended = self._open.get(getattr(event, "started_event_id", None) or "")
        if ended is not None:
            self._end(ended.operation, event)
        start = STARTS.get(event.type)
        if start is _flow and getattr(source, "suppress_flow_events", False):
            return  # an agent of CrewAI runs as a flow, too
        if start is not None:
            self._begin(event, *start(event))

    def _begin(self, event: Any, name: str, attributes: Mapping[str, Any]) -> None:
        parent = self._open.get(event.parent_event_id or "")
        operation = OperationSpan.begin(
            name,
            {a.PLAYHEAD_FRAMEWORK_NAME: NAME, **{key: one for key, one in attributes.items() if one}},
            None if parent is None else parent.operation,
        )
        if operation is None:
            return
        if operation.tool:
            operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: event.tool_args})
        self._open[event.event_id] = _Open(operation, Entry(operation))

    def _end(self, operation: OperationSpan, event: Any) -> None:
        """End an operation, and those inside of it whose end CrewAI did not report."""
        _set_result(operation, event)
        inside = [id for id, one in self._open.items() if operation.contains(one.operation)]
        for id in reversed(inside):
            one = self._open.pop(id)
            one.entry.leave()
            one.operation.end()


SCOPES: Final = EventScopes()


def _set_result(operation: OperationSpan, event: Any) -> None:
    error: Any = getattr(event, "error", None)
    failure: Any = getattr(event, "failure", None)
    if operation.tool and hasattr(event, "output"):
        operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: event.output})
    if hasattr(event, "success"):
        operation.set({a.PLAYHEAD_FRAMEWORK_GUARDRAIL_TRIGGERED: not event.success})
    elif isinstance(error, BaseException):
        operation.end(error)
    elif error or failure:
        kind = getattr(getattr(event, "error_type", None), "__name__", UNKNOWN_ERROR)
        operation.fail(kind, str(error or getattr(failure, "message", "")))


def _frame(operation: str, name: str, **more: Any) -> Start:
    known = {a.GEN_AI_OPERATION_NAME: operation, a.GEN_AI_AGENT_NAME: name}
    return f"{operation} {name}", {**known, **more}


def _flow(event: Any) -> Start:
    """A flow. The id with which the program starts it selects the state that CrewAI restores."""
    inputs: Mapping[str, Any] = event.inputs or dict[str, Any]()
    conversation = str(inputs.get("id", ""))
    name, attributes = _frame(GenAiOperationName.INVOKE_WORKFLOW, event.flow_name)
    return name, {**attributes, a.GEN_AI_CONVERSATION_ID: conversation}


def _step(name: str) -> Start:
    return name, {a.PLAYHEAD_STEP_NAME: name}


def _agent(role: str) -> Start:
    return _frame(GenAiOperationName.INVOKE_AGENT, role.strip())


def _tool(event: Any) -> Start:
    name = str(event.tool_name)
    attributes = tool_attributes(NAME, name)
    arguments: Any = event.tool_args
    if name in DELEGATIONS and hasattr(arguments, "get"):
        attributes[a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM] = (event.agent_role or "").strip()
        attributes[a.PLAYHEAD_FRAMEWORK_HANDOFF_TO] = str(arguments.get("coworker", ""))
    return f"{GenAiOperationName.EXECUTE_TOOL} {name}", attributes


def _guardrail(event: Any) -> Start:
    """A guardrail. One that is a model is called as its instructions, which are content."""
    name = event.guardrail_name if event.guardrail_type == "function" else event.guardrail_type
    return _step(f"guardrail {name or ''}".strip())


STARTS: Final[Mapping[str, Callable[[Any], Start]]] = {
    "crew_kickoff_started": lambda event: _frame(
        GenAiOperationName.INVOKE_WORKFLOW, event.crew_name or "crew"
    ),
    "flow_started": _flow,
    "method_execution_started": lambda event: _step(event.method_name),
    "task_started": lambda event: _step(getattr(event.task, "name", None) or "task"),
    "agent_execution_started": lambda event: _agent(event.agent.role),
    "lite_agent_execution_started": lambda event: _agent(event.agent_info.get("role", "")),
    "tool_usage_started": _tool,
    "llm_guardrail_started": _guardrail,
}
"""What the events at a start tell of the span."""
