"""Hook of the OpenAI Agents SDK: a processor of its traces, next to its own.

The SDK notifies processors of starts and ends, and keeps the current trace and span in context
variables. When it makes its span the current one, ours becomes current too, and stops being current in
the same context, also in generators and tasks that are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import Token
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
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

NAME: Final = "openai-agents"

MODEL_CALLS: Final = ("generation", "response", "turn", "task", "mcp_tools")
"""Types without a span of ours: model calls and servers have one, and turns add nothing."""


def hook(agents: ModuleType) -> None:
    """Install the hook: `agents` has been imported. Other packages have this name, too."""
    if not hasattr(agents, "TracingProcessor"):
        return
    PATCHES.when_imported("agents.tracing.provider", NAME, _patch_provider)
    PATCHES.when_imported("agents.tracing.scope", NAME, _patch_scope)
    PATCHES.when_imported("agents.tool_context", NAME, _patch_tools)
    made = getattr(getattr(agents.tracing, "setup", None), "GLOBAL_TRACE_PROVIDER", None)
    if made is not None:
        made.register_processor(PROCESSOR)


def _patch_provider(module: ModuleType) -> None:
    """Add the processor when the SDK creates its provider, which it does lazily."""
    provider = required(module, "DefaultTraceProvider")
    PATCHES.around_all(provider, {"__init__": _make, "set_processors": _set_processors})


def _make(original: Callable[..., None], provider: Any, /, *args: Any, **kwargs: Any) -> None:
    original(provider, *args, **kwargs)
    provider.register_processor(PROCESSOR)


def _set_processors(original: Callable[..., None], provider: Any, processors: Sequence[Any]) -> None:
    """Keep our processor when the program replaces the processors to remove the SDK's own."""
    original(provider, [*processors, PROCESSOR])


def _patch_scope(module: ModuleType) -> None:
    PATCHES.around_all(
        required(module, "Scope"),
        {
            "set_current_span": _enter,
            "reset_current_span": _leave,
            "set_current_trace": _enter,
            "reset_current_trace": _leave,
        },
    )


_entered: Final[dict[int, tuple[Any, Token[Context]]]] = {}
"""Tokens of the SDK with ours, by identity: they have no hash."""


def _enter(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Layer of the functions that make a span or a trace of the SDK the current one."""
    token = original(*args, **kwargs)
    _attach(token, *args, *kwargs.values())
    return token


@never_raises
def _attach(token: Any, current: Any) -> None:
    operation = PROCESSOR.operation(current)
    if operation is not None:
        _entered[id(token)] = token, otel_context.attach(operation.context())


def _leave(original: Callable[..., None], token: Any) -> None:
    """Layer of the functions that restore the span before it."""
    _, ours = _entered.pop(id(token), (None, None))
    original(token)  # raises in another context than that of the token; then ours cannot be used either
    if ours is not None:
        otel_context.detach(ours)


def _patch_tools(module: ModuleType) -> None:
    PATCHES.around(required(module, "ToolContext"), "__init__", _made_tool_context)


def _made_tool_context(original: Callable[..., None], made: Any, /, *args: Any, **kwargs: Any) -> None:
    """Layer of the constructor that runs within the span of each tool and gets the id of the call."""
    original(made, *args, **kwargs)
    _set_call_id(made)


@never_raises
def _set_call_id(made: Any) -> None:
    operation = OperationSpan.current()
    if operation is not None and operation.tool == made.tool_name:
        operation.set({a.GEN_AI_TOOL_CALL_ID: str(made.tool_call_id)})


class Processor:
    """Processor of the SDK's traces. Its methods never raise."""

    def __init__(self) -> None:
        self._operations: dict[int, tuple[Any, OperationSpan]] = {}
        """Open spans and traces of the SDK by identity, and our spans."""
        self._conversations: dict[str, str] = {}
        """Ids of the SDK's open traces, and of the conversations that they belong to."""

    def operation(self, span: Any) -> OperationSpan | None:
        """Return our span for an open span or trace of the SDK."""
        found = self._operations.get(id(span))
        return None if found is None else found[1]

    @never_raises
    def on_trace_start(self, trace: Any) -> None:
        """A trace begins: a run of an agent, or what the program puts into one trace."""
        conversation = getattr(trace, "group_id", None)
        if conversation:
            self._conversations[trace.trace_id] = str(conversation)
        self._begin(
            trace,
            GenAiOperationName.INVOKE_WORKFLOW,
            trace.name,
            {
                a.GEN_AI_OPERATION_NAME: GenAiOperationName.INVOKE_WORKFLOW,
                a.GEN_AI_AGENT_NAME: trace.name,
            },
        )

    @never_raises
    def on_trace_end(self, trace: Any) -> None:
        """A trace ends."""
        self._conversations.pop(trace.trace_id, None)
        self._end(trace)

    @never_raises
    def on_span_start(self, span: Any) -> None:
        """A span begins; most of its data comes later."""
        data = span.span_data
        if data.type == "agent":
            self._begin(
                span,
                GenAiOperationName.INVOKE_AGENT,
                data.name,
                {
                    a.GEN_AI_OPERATION_NAME: GenAiOperationName.INVOKE_AGENT,
                    a.GEN_AI_AGENT_NAME: data.name,
                },
            )
        elif data.type == "function":
            operation = GenAiOperationName.EXECUTE_TOOL
            self._begin(span, operation, data.name, tool_attributes(NAME, data.name))
        elif data.type not in MODEL_CALLS:
            name = str(getattr(data, "name", ""))
            prefix = "" if data.type == "custom" else data.type
            self._begin(span, prefix, name, {a.PLAYHEAD_STEP_NAME: name or data.type})

    @never_raises
    def on_span_end(self, span: Any) -> None:
        """A span ends."""
        data, operation = span.span_data, self.operation(span)
        if operation is None:
            return
        if data.type == "function":
            content = {
                a.GEN_AI_TOOL_CALL_ARGUMENTS: data.input,
                a.GEN_AI_TOOL_CALL_RESULT: data.output,
            }
            operation.set_content({name: one for name, one in content.items() if one is not None})
        elif data.type == "guardrail":
            operation.set({a.PLAYHEAD_FRAMEWORK_GUARDRAIL_TRIGGERED: bool(data.triggered)})
        elif data.type == "handoff":
            ends = str(data.from_agent or ""), str(data.to_agent or "")
            names = (a.PLAYHEAD_FRAMEWORK_HANDOFF_FROM, a.PLAYHEAD_FRAMEWORK_HANDOFF_TO)
            operation.set(dict(zip(names, ends, strict=True)))
            operation.rename(f"handoff {ends[0]} to {ends[1]}")
        if span.error:
            operation.fail(UNKNOWN_ERROR, str(span.error.get("message", "")))
        self._end(span)

    def shutdown(self, timeout: float | None = None) -> None:
        """Do nothing: the recording ends by itself."""

    def force_flush(self) -> None:
        """Do nothing: spans wait for nothing."""

    def _begin(self, of: Any, prefix: str, name: str, attributes: Mapping[str, Any]) -> None:
        known = {a.PLAYHEAD_FRAMEWORK_NAME: NAME, **attributes}
        if conversation := self._conversations.get(of.trace_id):
            known[a.GEN_AI_CONVERSATION_ID] = conversation
        operation = OperationSpan.begin(f"{prefix} {name}".strip(), known)
        if operation is not None:
            self._operations[id(of)] = of, operation

    def _end(self, of: Any) -> None:
        found = self._operations.pop(id(of), None)
        if found is not None:
            found[1].end()


PROCESSOR: Final = Processor()
