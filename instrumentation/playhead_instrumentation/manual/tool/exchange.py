"""Record one call of a tool: its span, its facts, and its answer from a tape."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import Any, Final, Literal, Protocol

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import SpanKind

from playhead_core.errors import ExchangeUnmatched
from playhead_core.facts import RETURNS, Delivery, EndedHow, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.libraries.common.recording import end_span
from playhead_instrumentation.patching.notices import Notices
from playhead_instrumentation.recorder.exceptions import again, record_of
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.span_budget import SpanOnTape, fit
from playhead_instrumentation.tracing.tool_span import take_tool_span
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

log = Log(__name__)


class ToolUnanswered(ExchangeUnmatched):
    """The tape holds that a tool answered, but not its answer."""


class Tool(Protocol):
    """The tool that is called."""

    @property
    def name(self) -> str:
        """Name of the tool, as the program calls it."""
        ...

    @property
    def description(self) -> str:
        """Description of the tool; empty if there is none."""
        ...

    @property
    def effect(self) -> Literal["read", "write"]:
        """Whether the tool changes something outside the program."""
        ...

    @property
    def returns(self) -> str:
        """Name of the type that the tool says it returns; empty if it says none."""
        ...

    @property
    def said(self) -> set[str]:
        """Messages about the tool that the user has been shown."""
        ...


class ToolExchange:
    """State of one open call."""

    __slots__ = (
        "_owns_span",
        "_part",
        "_result",
        "_session",
        "_span",
        "_tool",
        "asked",
        "at_end",
        "call",
    )

    def __init__(
        self, session: Session, tool: Tool, form: str, asked: bytes, details: dict[str, Any]
    ) -> None:
        """``form``: as ``playhead.tool.form``. ``asked``: the arguments, as `values` writes them.

        ``details``: further attributes of the request fact.
        """
        session.settle()
        attributes: dict[str, Any] = {
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.EXECUTE_TOOL,
            a.GEN_AI_TOOL_NAME: tool.name,
            a.GEN_AI_TOOL_TYPE: "function",
        }
        if tool.description:
            attributes[a.GEN_AI_TOOL_DESCRIPTION] = tool.description
        around = take_tool_span(tool.name)
        self._owns_span = around is None
        """Whether the span is of this call alone, and not a framework's, which ends it."""
        self._span = around or session.tracer.start_span(
            f"execute_tool {tool.name}", kind=SpanKind.INTERNAL, attributes=attributes
        )
        self.call = session.driver.open(
            "tool",
            tool.name,
            asked,
            details,
            effect=tool.effect,
            span=self._span.get_span_context(),
            about={a.PLAYHEAD_TOOL_FORM: form, RETURNS: tool.returns},
        )
        self._session: Final = session
        self._tool: Final = tool
        self.asked = asked
        """The arguments with which the tool is called."""
        self._part = 0
        self._result: bytes | None = None
        self.at_end: Final[dict[str, Any]] = {}
        """Further attributes of the end fact and of the span."""
        self.call.scrub = session.redactor.response("application/json", "")
        session.open_exchanges.add(self)
        self.call.head({a.PLAYHEAD_TOOL_FORM: form}, None)

    @contextlib.contextmanager
    def within(self) -> Generator[None]:
        """Context manager: the span of the call is current."""
        outer = otel_context.attach(trace.set_span_in_context(self._span))
        try:
            yield
        finally:
            otel_context.detach(outer)

    def sent(self, asked: bytes) -> None:
        """The tool is called with these arguments instead."""
        self.asked = asked

    def changed(self, asked: bytes) -> bool:
        """Return whether the arguments have changed since the call began."""
        return asked != self.asked

    def say(self, text: str) -> None:
        """Tell the user ``text``, once."""
        if text not in self._tool.said:
            self._tool.said.add(text)
            Notices().problem(text)

    def returned(self, value: Any, at: Delivery | None) -> None:
        """The tool has returned ``value``."""
        self._answered("return", value, at)
        self._end("complete", at, None)

    def yielded(self, value: Any, at: Delivery | None) -> None:
        """The tool has yielded ``value``."""
        self._answered("yield", value, at)

    def raised(self, error: BaseException, at: Delivery | None) -> None:
        """The tool itself has raised ``error``."""
        self._answered("raise", error, at)
        self._end("error", at, self._recorded(error))

    def failed(self, error: BaseException) -> None:
        """The program gets ``error``, wherever it comes from; no effect if the call is over."""
        if isinstance(error, GeneratorExit):
            self._end("abandoned", None, None)
        elif self.call.ended is None:
            self._end("error", None, self._recorded(error))

    def abandoned(self) -> None:
        """The program reads no further."""
        self._end("abandoned", None, None)

    def again(self, played: PlayedExchange, at: Delivery | None) -> tuple[str, Any]:
        """Return ``yield`` or ``return`` and the next recorded value; raises the recorded exception."""
        end = played.exchange.end
        error = None if end is None else end.error
        if self._part >= len(played.exchange.parts):
            if error is None:
                raise self._unanswered("nothing")
            self._end("error", at, error)
            raise self._raised(error)
        data = played.part(self._part)
        self._part += 1
        self.call.part(data, at)
        try:
            ((how, value),) = values.read(data).items()
        except Exception as problem:
            if not data.startswith(b'{"raise"') or error is None:
                raise self._unanswered(str(problem)) from problem
            self._end("error", at, error)
            raise self._raised(error) from None
        self._result = data
        if how == "raise":
            self._end("error", at, error)
            raise value
        if how == "return":
            self._end("complete", at, None)
        return how, value

    def finish(self) -> None:
        """End the span, off the caller's path."""
        span, end = self._span, self.call.ended
        content = self._content() if end is not None and span.is_recording() else None
        end_span(span, end, self.call.time_ns, content)

    def _content(self) -> dict[str, Any]:
        found: dict[str, Any] = {a.PLAYHEAD_EXCHANGE_ID: str(self.call.id), **self.at_end}
        if self._session.redactor.content:
            found[a.GEN_AI_TOOL_CALL_ARGUMENTS] = self.call.body.decode("utf-8", "replace")
            result = self._result or b""
            if result.startswith(b'{"return":'):
                text = result[len(b'{"return":') : -1].decode("utf-8", "replace")
                found[a.GEN_AI_TOOL_CALL_RESULT] = text
        return fit(
            found,
            self._session.settings.span_budget_bytes,
            self._session.sink,
            span=SpanOnTape(lane=self.call.id.lane),
        )

    def _answered(self, how: str, value: Any, at: Delivery | None) -> None:
        try:
            kept = values.kept(value)
        except Exception as problem:
            kept = values.written(value, stubs=[])
            if how != "raise":
                self.say(
                    f"a replay cannot answer {self._tool.name}: "
                    f"its result cannot be kept on a tape ({problem or type(problem).__name__})"
                )
        try:
            self._result = self.call.part(b'{"%s":%s}' % (how.encode(), kept), at)
        except Exception:
            log.debug("playhead could not record an answer of a tool", exc_info=True)

    def _recorded(self, error: BaseException) -> ErrorRecord:
        return record_of(error, self._session.redactor.text)

    def _raised(self, error: ErrorRecord) -> BaseException:
        try:
            return again(error, RuntimeError)
        except Exception:
            return self._unanswered(f"{error.qualname}: {error.message}")

    def _unanswered(self, what: str) -> ToolUnanswered:
        return ToolUnanswered(
            f"the tape does not hold what {self._tool.name} answered",
            cause=f"it cannot be kept on a tape: {what}",
            hint=f"run it for real: playhead replay RUN --live {self._tool.name}",
        )

    def _end(self, how: EndedHow, at: Delivery | None, error: ErrorRecord | None) -> None:
        try:
            if not self.call.end(how, at, error, values=self.at_end):
                return
            self._session.open_exchanges.discard(self)
            if not self._owns_span:
                note(self._span, self._content())  # now: the framework ends the span when this returns
            elif not self.call.inherited:  # else the span is also the parent's
                self._session.submit(self)
        except Exception:
            log.debug("playhead could not record the end of a call of a tool", exc_info=True)
