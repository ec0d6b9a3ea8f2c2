"""The recording span processor: starts of spans go to the tape, their ends to the tape exporter."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor
from opentelemetry.trace import SpanKind

from playhead_core.facts import Fact
from playhead_core.process.own_messages import Log
from playhead_core.tape.protocols import Sink
from playhead_core.tape.span_starts import MOST_STARTS
from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.patching.lanes import own_wait
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.redaction.spans import SpanRedactor
from playhead_instrumentation.tracing.light import LightSpan
from playhead_semconv import attributes as a
from playhead_semconv import events as e

log = Log(__name__)

UNRECORDED: ContextVar[bool] = ContextVar("playhead_unrecorded", default=False)
"""Whether what runs in this context is not recorded."""


Check = Callable[[ReadableSpan, int], None]
"""Checks a finished span of a lane. It does not raise."""


def no_check(span: ReadableSpan, lane: int) -> None:
    """Check nothing."""


class RecordingProcessor(SpanProcessor):
    """One per process, attached to every provider.

    Before `connect` it only keeps track of open spans.
    """

    def __init__(self) -> None:
        self._sink: Sink | None = None
        self._lane: Callable[[], int] = lambda: 0
        self._ended: SpanProcessor = SpanProcessor()
        self._redactor: SpanRedactor | None = None
        self._check: Check = no_check
        self._open: dict[int, weakref.ref[Span]] = {}
        self._unrecorded: set[int] = set()
        """Ids of open spans that are not recorded."""
        self._untold: dict[int, LightSpan] = {}
        """Our open client spans whose start is not on the tape yet: the next ask carries it."""
        at_fork.in_child(self._disown)

    def connect(
        self,
        sink: Sink,
        lane: Callable[[], int],
        ended: SpanProcessor,
        redactor: Redactor,
        check: Check = no_check,
    ) -> None:
        """Send facts to ``sink`` in the lane of the caller, and finished spans to ``ended``.

        ``redactor`` removes the credentials from both. ``check`` gets each finished span, and its lane.
        """
        self._lane, self._ended, self._redactor = lane, ended, SpanRedactor(redactor)
        self._check, self._sink = check, sink

    def disconnect(self) -> None:
        """Stop recording."""
        self._sink, self._ended = None, SpanProcessor()
        self._untold.clear()

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Put the start on the tape, for the live view and for processes that die."""
        try:
            span_id = span.context.span_id  # pyright: ignore[reportOptionalMemberAccess]
            if UNRECORDED.get():
                self._unrecorded.add(span_id)
                return
            self._open[span_id] = weakref.ref(span)
            if self._sink is not None:
                if isinstance(span, LightSpan) and span.kind is SpanKind.CLIENT:
                    self._untold[span_id] = span
                else:
                    self._tell(span)
            self._ended.on_start(span, parent_context=parent_context)
        except Exception:
            log.debug("playhead could not record the start of a span", exc_info=True)

    def unreported(self, span_id: int) -> list[dict[str, Any]]:
        """Return the starts of a span and its ancestors that are not on the tape yet, innermost first.

        The caller must put them on the tape.
        """
        found: list[dict[str, Any]] = []
        clean = dict[str, Any] if self._redactor is None else self._redactor.attributes
        while len(found) < MOST_STARTS and (span := self._untold.pop(span_id, None)) is not None:
            found.append(span.started(clean))
            span_id = 0 if span.parent is None else span.parent.span_id
        return found

    def _tell(self, span: Span | LightSpan) -> None:
        """Put the start of ``span`` on the tape, after the starts of its ancestors."""
        if self._sink is None or self._redactor is None:
            return
        around = self._untold.pop(span.parent.span_id, None) if self._untold and span.parent else None
        if around is not None:
            self._tell(around)
        self._sink.append(started(span, self._lane(), self._redactor))

    def on_end(self, span: ReadableSpan) -> None:
        """Pass a finished span on, sampled or not."""
        try:
            context = span.get_span_context()
            if context is not None:
                if context.span_id in self._unrecorded:
                    self._unrecorded.discard(context.span_id)
                    return
                self._open.pop(context.span_id, None)
                unasked = self._untold.pop(context.span_id, None)
                if unasked is not None:
                    self._tell(unasked)
            self._check(span, self._lane())
            if self._redactor is not None:
                light = isinstance(span, LightSpan)
                unsearched = span.set_by_program() if light else span.attributes
                self._ended.on_end(self._redactor.span(span, unsearched or {}))
        except Exception:
            log.debug("playhead could not record the end of a span", exc_info=True)

    def shutdown(self) -> None:
        """No-op: one of several providers may shut down; recording continues until the process ends."""

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        """Deliver what is recorded so far."""
        try:
            with own_wait():
                return self._ended.force_flush(timeout_millis)
        except Exception:
            log.debug("playhead could not flush", exc_info=True)
            return False

    def move(self, old: object, new: object) -> None:
        """Redirect open spans that would be passed to the processor ``old`` at their end to ``new``."""
        for reference in list(self._open.values()):
            span: Any = reference()
            if span is not None and span._span_processor is old:
                span._span_processor = new

    def _disown(self) -> None:
        # After fork: only the process that started a span exports it, never a copy.
        for reference in self._open.values():
            span: Any = reference()
            if span is not None:
                span._span_processor = SpanProcessor()
        self._open, self._unrecorded, self._untold = {}, set(), {}


def started(span: Span, lane: int, redactor: SpanRedactor) -> Fact:
    """Return the fact that ``span`` has started: name, kind (as OTLP numbers it), parent, attributes."""
    context = span.get_span_context()
    parent = span.parent
    attributes: dict[str, Any] = dict(redactor.attributes(span.attributes or {}))
    attributes[a.PLAYHEAD_SPAN_NAME] = redactor.name(span)
    attributes[a.PLAYHEAD_SPAN_KIND] = span.kind.value + 1
    attributes[a.PLAYHEAD_SPAN_PARENT] = f"{parent.span_id:016x}" if parent is not None else ""
    return Fact(
        span.start_time or REAL.time_ns(),
        lane,
        e.PLAYHEAD_SPAN_START,
        context.trace_id.to_bytes(16, "big"),
        context.span_id.to_bytes(8, "big"),
        attributes=attributes,
    )


def end_span(span: Any, end_time_ns: int | None = None) -> None:
    """End ``span`` and record it, even where the program's own processors can no longer take it.

    `ConcurrentMultiSpanProcessor` raises while the interpreter shuts down: its threads are gone.
    """
    try:
        span.end(end_time_ns)
    except RuntimeError:
        for processor in getattr(span._span_processor, "_span_processors", ()):
            if isinstance(processor, RecordingProcessor):
                processor.on_end(span._readable_span())
