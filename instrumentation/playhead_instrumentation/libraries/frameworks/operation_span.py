"""The span of an operation that a framework reports: an agent, a node, a tool, a retrieval."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Status, StatusCode

from playhead_core.facts import ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.recording import recording
from playhead_instrumentation.libraries.common.span_content import set_content
from playhead_instrumentation.recorder.exceptions import name_of, record_of
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.tool_span import ToolSpan, entered
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName, GenAiToolType

log = Log(__name__)

P = ParamSpec("P")

UNKNOWN_ERROR: Final = "_OTHER"
"""Type of an error of which the framework reports only a text."""

_INSIDE = otel_context.create_key("playhead-framework-operation")


class OperationSpan:
    """The span of one operation, from its start to its end.

    It is the current span only if the framework runs the operation in a separate context: see `context`.
    """

    __slots__ = ("_is_over", "_outer", "_session", "_tool", "span")

    def __init__(
        self, session: Session, span: trace.Span, tool: str, outer: OperationSpan | None
    ) -> None:
        self._session = session
        self._outer = outer
        self._tool = ToolSpan(tool, span) if tool else None
        self.span: Final = span
        self._is_over = False

    @classmethod
    def begin(
        cls,
        name: str,
        attributes: Mapping[str, Any],
        around: OperationSpan | None = None,
        started_ns: int | None = None,
    ) -> OperationSpan | None:
        """Start the span; None if nothing is recorded here.

        ``around``: the operation that the framework calls the parent; None, or if the current span is
        already inside of it: the current span. ``started_ns``: nanoseconds since the epoch.
        """
        session = recording()
        if session is None:
            return None
        redact = session.redactor.text
        span = session.tracer.start_span(
            redact(name),
            context=None if around is None or around.is_entered else around.context(),
            attributes={
                name: redact(value) if isinstance(value, str) else value
                for name, value in attributes.items()
            },
            start_time=started_ns,
        )
        is_tool = attributes.get(a.GEN_AI_OPERATION_NAME) == GenAiOperationName.EXECUTE_TOOL
        tool = str(attributes.get(a.GEN_AI_TOOL_NAME, "")) if is_tool else ""
        return cls(session, span, tool, around or cls.current())

    @staticmethod
    def current() -> OperationSpan | None:
        """Return the operation in which this code runs; None if there is none."""
        current = otel_context.get_value(_INSIDE)
        return current if isinstance(current, OperationSpan) else None

    @property
    def name(self) -> str:
        """Name of the span; empty if it is not recorded."""
        return str(getattr(self.span, "name", ""))

    @property
    def tool(self) -> str:
        """Name of the tool; empty for other operations."""
        return "" if self._tool is None else self._tool.name

    @property
    def is_entered(self) -> bool:
        """Whether this context is that of the operation, or of an operation inside of it."""
        return self.contains(OperationSpan.current())

    def contains(self, operation: OperationSpan | None) -> bool:
        """Whether ``operation`` is this one, or inside of it."""
        while operation is not None and operation is not self:
            operation = operation._outer
        return operation is self

    def context(self) -> Context:
        """Return the current context with the span as the current one, for what the operation calls."""
        inside = otel_context.set_value(_INSIDE, self, trace.set_span_in_context(self.span))
        return inside if self._tool is None else entered(inside, self._tool)

    def set(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes that hold no content."""
        redact = self._session.redactor.text
        note(
            self.span,
            {
                name: redact(value) if isinstance(value, str) else value
                for name, value in attributes.items()
            },
        )

    def rename(self, name: str) -> None:
        """Change the name of the span."""
        self.span.update_name(self._session.redactor.text(name))

    def set_content(self, content: Mapping[str, Any]) -> None:
        """Set attributes that the content level ``metadata`` leaves out: text, or what JSON takes."""
        set_content(self._session, self.span, content)

    def fail(self, kind: str, message: str) -> None:
        """Set the error with which the operation ends."""
        note(self.span, {a.ERROR_TYPE: kind})
        self.span.set_status(Status(StatusCode.ERROR, self._session.redactor.text(message) or None))

    def end(self, error: BaseException | None = None, ended_ns: int | None = None) -> None:
        """End the span, with the error of the operation if there is one. Idempotent.

        ``ended_ns``: nanoseconds since the epoch; None: now.
        """
        if self._is_over:
            return
        self._is_over = True
        if isinstance(error, GeneratorExit):
            note(self.span, {a.PLAYHEAD_END_HOW: "abandoned"})
        elif error is not None:
            record: ErrorRecord = record_of(error, self._session.redactor.text)
            note(self.span, {a.ERROR_TYPE: name_of(record)})
            self.span.set_status(Status(StatusCode.ERROR, record.message or None))
        self.span.end(ended_ns)


def tool_attributes(framework: str, name: str) -> dict[str, Any]:
    """Return the attributes with which the span of a tool starts."""
    return {
        a.GEN_AI_OPERATION_NAME: GenAiOperationName.EXECUTE_TOOL,
        a.GEN_AI_TOOL_NAME: name,
        a.GEN_AI_TOOL_TYPE: GenAiToolType.FUNCTION,
        a.PLAYHEAD_FRAMEWORK_NAME: framework,
    }


def never_raises(callback: Callable[P, object]) -> Callable[P, None]:
    """Decorator for a function that a framework calls: its errors are logged, and do not reach it."""

    @functools.wraps(callback)
    def called(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            callback(*args, **kwargs)
        except Exception:
            log.debug("playhead failed in a hook", exc_info=True)

    return called
