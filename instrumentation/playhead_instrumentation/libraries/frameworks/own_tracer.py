"""A tracer for frameworks that make OpenTelemetry spans themselves: all but their spans of model calls.

A framework and the SDK below it would each have a span for one model call, and the framework would
store all messages of the conversation with each. The SDK's span is derived from the bytes of the call.
So the framework gets a span that records nothing for the call, and whose children belong to its parent.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import NonRecordingSpan, Span, Tracer, TracerProvider
from opentelemetry.util._decorator import _agnosticcontextmanager  # pyright: ignore[reportPrivateUsage]

from playhead_genai.steps import CALLS
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.tracing.tool_span import ToolSpan, entered
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName


class FrameworkTracers(TracerProvider):
    """Provider of a `FrameworkTracer`, in the form in which frameworks take tracers."""

    def __init__(self, framework: str) -> None:
        self._framework: Final = framework

    def get_tracer(self, *_: Any, **__: Any) -> Tracer:
        """Return the tracer, whatever the framework calls itself."""
        return FrameworkTracer(self._framework)


class FrameworkTracer(Tracer):
    """Starts spans of a framework in the trace of this process."""

    def __init__(self, framework: str) -> None:
        self._framework: Final = framework

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Span:
        """Start a span; one without a record for a model call, and where nothing is recorded."""
        session = recording()
        known = attributes or {}
        if session is None or known.get(a.GEN_AI_OPERATION_NAME) in CALLS:
            return NonRecordingSpan(trace.get_current_span(context).get_span_context())
        known = {a.PLAYHEAD_FRAMEWORK_NAME: self._framework, **known}
        return session.tracer.start_span(name, context, kind, known, *args, **kwargs)

    @_agnosticcontextmanager
    def start_as_current_span(
        self,
        name: str,
        context: Context | None = None,
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
        attributes: Mapping[str, Any] | None = None,
        links: Any = None,
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
        end_on_exit: bool = True,
    ) -> Iterator[Span]:
        """Start a span and make it the current one; that of a tool also for what is recorded inside."""
        span = self.start_span(
            name, context, kind, attributes, links, start_time, record_exception, set_status_on_exception
        )
        with trace.use_span(span, end_on_exit, record_exception, set_status_on_exception):
            known = attributes or {}
            if known.get(a.GEN_AI_OPERATION_NAME) != GenAiOperationName.EXECUTE_TOOL:
                yield span
                return
            tool = ToolSpan(str(known.get(a.GEN_AI_TOOL_NAME, "")), span)
            token = otel_context.attach(entered(otel_context.get_current(), tool))
            try:
                yield span
            finally:
                otel_context.detach(token)
