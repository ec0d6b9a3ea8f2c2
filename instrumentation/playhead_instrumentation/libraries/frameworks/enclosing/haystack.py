"""Hook of Haystack: the spans of its tracer, next to the tracer that the program has.

Haystack asks one object for the span of each operation, with a name and tags, and sets what the
operation returns as further tags. A layer around that object makes our spans, and passes on these tags.

====================================  ============================================
operation of Haystack                 its span
====================================  ============================================
pipeline                              ``invoke_workflow``
component of a pipeline               the component's name, as a step
retriever in a pipeline               ``retrieval NAME``
agent                                 ``invoke_agent NAME``
tool that an agent calls              ``execute_tool NAME``
others                                none: the SDK below has a span for a model
====================================  ============================================
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import Token
from types import ModuleType, TracebackType
from typing import Any, Final, cast

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

NAME: Final = "haystack"


def hook(_: ModuleType) -> None:
    """Install the hook: `haystack` has been imported."""
    PATCHES.when_imported("haystack.tracing.tracer", NAME, _patch_tracer)
    PATCHES.when_imported("haystack.components.agents.tool_calling", NAME, _patch_tools)


def _patch_tracer(module: ModuleType) -> None:
    PATCHES.around(required(module, "ProxyTracer"), "trace", _trace)


def _patch_tools(module: ModuleType) -> None:
    PATCHES.around(module, "_create_tool_span", _create_tool_span)


def _trace(original: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Layer of the function that returns the context manager of a span."""
    parent = kwargs.get("parent_span")
    if isinstance(parent, SpanWithContent):
        kwargs["parent_span"] = parent.haystack_span
    theirs = original(*args, **kwargs)
    operation = _begun(*args[1:], **kwargs)
    return theirs if operation is None else TracedOperation(theirs, operation)


def _create_tool_span(
    original: Callable[..., Any], tool: Any, tool_call: Any, *args: Any, **kwargs: Any
) -> Any:
    """Layer of the function that asks for the span of a tool, and knows the id of the call."""
    traced = original(tool, tool_call, *args, **kwargs)
    if isinstance(traced, TracedOperation) and getattr(tool_call, "id", None):
        traced.operation.set({a.GEN_AI_TOOL_CALL_ID: str(tool_call.id)})
    return traced


def _begun(
    operation_name: str, tags: Mapping[str, Any] | None = None, *_: Any, **__: Any
) -> OperationSpan | None:
    """Start the span of an operation of Haystack; None if it has none."""
    known = tags or {}
    if operation_name.endswith("pipeline.run"):  # also ``haystack.async_pipeline.run``
        return _frame(GenAiOperationName.INVOKE_WORKFLOW, a.GEN_AI_WORKFLOW_NAME, "pipeline")
    if operation_name == "haystack.agent.run":
        around = OperationSpan.current()
        name = "agent" if around is None or around.tool else around.name
        return _frame(GenAiOperationName.INVOKE_AGENT, a.GEN_AI_AGENT_NAME, name)
    if operation_name == "haystack.agent.step.tool":
        name = str(known.get("haystack.tool.name", ""))
        attributes = tool_attributes(NAME, name)
        attributes[a.GEN_AI_TOOL_DESCRIPTION] = str(known.get("haystack.tool.description", ""))
        return OperationSpan.begin(f"{GenAiOperationName.EXECUTE_TOOL} {name}", attributes)
    if operation_name != "haystack.component.run":
        return None
    name = str(known.get("haystack.component.name", ""))
    if str(known.get("haystack.component.type", "")).endswith("Retriever"):
        return _frame(GenAiOperationName.RETRIEVAL, a.GEN_AI_DATA_SOURCE_ID, name)
    return OperationSpan.begin(name, {a.PLAYHEAD_STEP_NAME: name, a.PLAYHEAD_FRAMEWORK_NAME: NAME})


def _frame(operation: str, attribute: str, name: str) -> OperationSpan | None:
    return OperationSpan.begin(
        f"{operation} {name}",
        {a.GEN_AI_OPERATION_NAME: operation, attribute: name, a.PLAYHEAD_FRAMEWORK_NAME: NAME},
    )


class TracedOperation:
    """Context manager of Haystack's span and of ours."""

    def __init__(self, theirs: Any, operation: OperationSpan) -> None:
        self.operation: Final = operation
        self._theirs: Final = theirs
        self._token: Token[Context] | None = None

    def __enter__(self) -> SpanWithContent:
        try:
            span = self._theirs.__enter__()
        except BaseException as error:
            self.operation.end(error)
            raise
        self._token = otel_context.attach(self.operation.context())
        return SpanWithContent(span, self.operation)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool | None:
        if self._token is not None:
            otel_context.detach(self._token)
        self.operation.end(error)
        return self._theirs.__exit__(kind, error, trace)


class SpanWithContent:
    """Span of Haystack. What Haystack sets on it is also set on ours, if it is content of ours."""

    def __init__(self, haystack_span: Any, operation: OperationSpan) -> None:
        self.haystack_span: Final = haystack_span
        self._operation: Final = operation

    def __getattr__(self, name: str) -> Any:
        return getattr(self.haystack_span, name)

    def set_tag(self, key: str, value: Any) -> None:
        """Set a tag on Haystack's span."""
        self.haystack_span.set_tag(key, value)

    def set_content_tag(self, key: str, value: Any) -> None:
        """Set a tag on Haystack's span, which may drop it, and on ours."""
        self.haystack_span.set_content_tag(key, value)
        _set_content(self._operation, key, value)


@never_raises
def _set_content(operation: OperationSpan, key: str, value: Any) -> None:
    if key == "haystack.agent.step.tool.input":
        operation.set_content({a.GEN_AI_TOOL_CALL_ARGUMENTS: value})
    elif key == "haystack.agent.step.tool.output":
        output = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
        is_error = list(output) == ["error"]
        result = output["error"] if is_error else cast("Any", value)
        operation.set_content({a.GEN_AI_TOOL_CALL_RESULT: result})
        if is_error:
            operation.fail(UNKNOWN_ERROR, str(result))
    elif not operation.name.startswith(GenAiOperationName.RETRIEVAL):
        return
    elif key == "haystack.component.input" and "query" in value:
        operation.set_content({a.GEN_AI_RETRIEVAL_QUERY_TEXT: value["query"]})
    elif key == "haystack.component.output":
        documents = [
            {"id": one.id, "score": one.score, "content": one.content, **one.meta}
            for one in value["documents"]
        ]
        operation.set_content({a.GEN_AI_RETRIEVAL_DOCUMENTS: documents})
