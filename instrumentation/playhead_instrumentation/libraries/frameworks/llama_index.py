"""Hook of LlamaIndex: a handler of the spans that its dispatcher reports.

The dispatcher reports the start and the end of a call in the context of the call, with an id and the id
of the call around it. The spans of ours are those of workflows, agents, steps, tools, retrievers, query
engines and chat engines. Other calls have none: what they call belongs to the call around them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import Token
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry.context import Context

from playhead_instrumentation.libraries.frameworks.operation_span import (
    UNKNOWN_ERROR,
    OperationSpan,
    never_raises,
    tool_attributes,
)
from playhead_instrumentation.patching.patches import required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "llama-index"

UUID_LENGTH: Final = 37
"""Length of the hyphen and the UUID at the end of an id; before them is ``CLASS.METHOD``."""

AGENT_STEPS: Final = frozenset(
    (
        "init_run",
        "setup_agent",
        "run_agent_step",
        "parse_agent_output",
        "call_tool",
        "aggregate_tool_results",
    )
)
"""Steps that every agent has. They are no nodes of the program."""

ENGINES: Final = {
    "BaseQueryEngine": ("query", "aquery"),
    "BaseChatEngine": ("chat", "achat", "stream_chat", "astream_chat"),
}
"""Base classes of what answers a question, and their methods."""


def hook(instrumentation: ModuleType) -> None:
    """Install the hook: `llama_index_instrumentation` has been imported."""
    required(instrumentation, "root_dispatcher").add_span_handler(Handler())


@dataclass
class _Open:
    """A call that the dispatcher has reported and that has not ended."""

    around: OperationSpan | None
    """The operation that contains what it calls: its own, else that of the call around it."""
    operation: OperationSpan | None = None
    """Its own; None if it has none."""
    token: Token[Context] | None = None
    workflow: Any = None
    """The workflow, if the call runs one."""
    agent: str = ""
    """The agent of the workflow that ran last."""


class Handler:
    """Handler of the dispatcher's spans. Its methods never raise."""

    def __init__(self) -> None:
        self.open_spans: Final[dict[str, Any]] = {}
        """Read by the dispatcher when it shuts down: nothing, for our spans end by themselves."""
        self._open: Final[dict[str, _Open]] = {}

    @never_raises
    def span_enter(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        parent_id: str | None = None,
        tags: Mapping[str, Any] | None = None,
        **_: Any,
    ) -> None:
        """Start the span of a call, in the context of the call."""
        parent = self._open.get(parent_id or "")
        call = self._open[id_] = _Open(None if parent is None else parent.around)
        method = id_[:-UUID_LENGTH].rpartition(".")[2]
        call.operation = _begun(call, method, bound_args.arguments, instance, parent)
        if call.operation is None:
            return
        call.around = call.operation
        # `Workflow.run` of older versions returns a future that ends in another context.
        if call.workflow is None or "init_state" in bound_args.arguments:
            call.token = otel_context.attach(call.operation.context())

    @never_raises
    def span_exit(
        self, id_: str, bound_args: Any, instance: Any = None, result: Any = None, **_: Any
    ) -> None:
        """End the span of a call that has returned."""
        call = self._open.pop(id_, None)
        if call is not None and call.operation is not None:
            try:
                _set_result(call.operation, result)
            finally:
                _end(call, call.operation, None)

    @never_raises
    def span_drop(
        self,
        id_: str,
        bound_args: Any,
        instance: Any = None,
        err: BaseException | None = None,
        **_: Any,
    ) -> None:
        """End the span of a call that has raised ``err``."""
        call = self._open.pop(id_, None)
        if call is not None and call.operation is not None:
            _end(call, call.operation, err)

    def capture_propagation_context(self) -> dict[str, Any]:
        """Return nothing: OpenTelemetry's context reaches the tasks of a workflow by itself."""
        return {}

    def restore_propagation_context(self, context: Mapping[str, Any]) -> None:
        """Do nothing; see `capture_propagation_context`."""

    def close(self) -> None:
        """Do nothing: the recording ends by itself."""


def _end(call: _Open, operation: OperationSpan, error: BaseException | None) -> None:
    operation.end(error)
    if call.token is not None:
        otel_context.detach(call.token)


def _begun(
    call: _Open, method: str, arguments: Mapping[str, Any], instance: Any, parent: _Open | None
) -> OperationSpan | None:
    """Start the span of ``call``; None if it has none."""
    workflow = None if parent is None else parent.workflow
    if parent is not None and workflow is not None and instance in (None, workflow):
        return _step(parent, method, arguments)
    if method == "run" and _is(instance, "Workflow"):
        call.workflow = instance
        if _is(instance, "BaseWorkflowAgent"):
            return _frame(GenAiOperationName.INVOKE_AGENT, instance.name, call.around)
        return _frame(GenAiOperationName.INVOKE_WORKFLOW, type(instance).__name__, call.around)
    if method in ("call", "acall", "__call__") and _is(instance, "BaseTool"):
        return _tool(instance, arguments, call.around)
    if method in ("retrieve", "aretrieve") and _is(instance, "BaseRetriever"):
        return _retrieval(type(instance).__name__, arguments, call.around)
    if any(method in methods and _is(instance, base) for base, methods in ENGINES.items()):
        return _frame(GenAiOperationName.INVOKE_WORKFLOW, type(instance).__name__, call.around)
    return None


def _frame(operation: str, name: str, around: OperationSpan | None) -> OperationSpan | None:
    is_agent = operation == GenAiOperationName.INVOKE_AGENT
    return OperationSpan.begin(
        f"{operation} {name}",
        {
            a.GEN_AI_OPERATION_NAME: operation,
            a.GEN_AI_AGENT_NAME if is_agent else a.GEN_AI_WORKFLOW_NAME: name,
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
        around,
    )


def _step(run: _Open, step: str, arguments: Mapping[str, Any]) -> OperationSpan | None:
    """Start the span of a step of a workflow.

    The steps of an agent are its model calls and of tools: only the tools have spans. Where a
    workflow runs several agents, the step that calls the model is the invocation of one of them.
    """
    has_agents = _is(run.workflow, "AgentWorkflow")
    if step not in AGENT_STEPS or not (has_agents or _is(run.workflow, "BaseWorkflowAgent")):
        attributes = {a.PLAYHEAD_STEP_NAME: step, a.PLAYHEAD_FRAMEWORK_NAME: NAME}
        return OperationSpan.begin(step, attributes, run.around)
    event = arguments.get("ev")
    if step == "run_agent_step" and has_agents:
        run.agent = event.current_agent_name  # pyright: ignore[reportOptionalMemberAccess]
        return _frame(GenAiOperationName.INVOKE_AGENT, run.agent, run.around)
    if step != "call_tool" or event is None:
        return None
    attributes = {**tool_attributes(NAME, event.tool_name), a.GEN_AI_TOOL_CALL_ID: event.tool_id}
    if has_agents and event.tool_name == "handoff":
        attributes[a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM] = run.agent
        attributes[a.PLAYHEAD_FRAMEWORK_HANDOFF_TO] = str(event.tool_kwargs.get("to_agent", ""))
    operation = OperationSpan.begin(
        f"{GenAiOperationName.EXECUTE_TOOL} {event.tool_name}", attributes, run.around
    )
    if operation is not None:
        operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: event.tool_kwargs})
    return operation


def _tool(tool: Any, arguments: Mapping[str, Any], around: OperationSpan | None) -> OperationSpan | None:
    """Start the span of a tool that no step of an agent calls, and that does not call itself."""
    name = tool.metadata.get_name()
    if around is not None and around.tool == name:
        return None
    operation = OperationSpan.begin(
        f"{GenAiOperationName.EXECUTE_TOOL} {name}",
        {
            **tool_attributes(NAME, name),
            a.GEN_AI_TOOL_DESCRIPTION: tool.metadata.description or "",
        },
        around,
    )
    if operation is not None:
        given = {name: value for name, value in arguments.items() if name not in ("args", "kwargs")}
        given.update(arguments.get("kwargs", {}))
        positional = arguments.get("args") or ()
        operation.set_content(
            {a.GEN_AI_TOOL_CALL_ARGUMENTS: {**given, "args": positional} if positional else given}
        )
    return operation


def _retrieval(
    name: str, arguments: Mapping[str, Any], around: OperationSpan | None
) -> OperationSpan | None:
    operation = OperationSpan.begin(
        f"{GenAiOperationName.RETRIEVAL} {name}",
        {
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.RETRIEVAL,
            a.GEN_AI_DATA_SOURCE_ID: name,
            a.PLAYHEAD_FRAMEWORK_NAME: NAME,
        },
        around,
    )
    if operation is not None:
        query = next(iter(arguments.values()), "")
        text = getattr(query, "query_str", query)
        operation.set_content({a.GEN_AI_RETRIEVAL_QUERY_TEXT: str(text)})
    return operation


def _set_result(operation: OperationSpan, result: Any) -> None:
    """Set the result of a tool or of a retriever."""
    if operation.tool:
        output = getattr(result, "tool_output", result)
        text = str(output)
        operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: text})
        if getattr(output, "is_error", False):
            error = getattr(output, "exception", None)
            operation.fail(UNKNOWN_ERROR if error is None else type(error).__name__, text)
    elif isinstance(result, list) and result and all(hasattr(one, "node") for one in result):  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
        documents: list[dict[str, Any]] = [
            {
                "id": found.node.node_id,
                "score": found.score,
                "content": found.node.get_content(),
                **found.node.metadata,
            }
            for found in result  # pyright: ignore[reportUnknownVariableType]
        ]
        operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: documents})


def _is(instance: Any, base: str) -> bool:
    """Whether ``instance`` has a base class of LlamaIndex with this name."""
    return any(
        one.__name__ == base and one.__module__.partition(".")[0] in ("llama_index", "workflows")
        for one in type(instance).__mro__
    )
