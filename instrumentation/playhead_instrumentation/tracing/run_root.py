"""The root span of the run: the parent of everything that a process does of its own accord.

Its ids are known from the start, so that the tape's first fact and child processes can name it. The span
itself is opened with the first span that has no parent. Its start time is that of the process.
"""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

import msgspec
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator

from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.processor import UNRECORDED, end_span
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName

ADOPTS_NOT = (trace.SpanKind.SERVER, trace.SpanKind.CONSUMER)
"""Kinds of spans that start a trace of their own, except in a child that `RunRoot.joins`."""

SERVING: ContextVar[trace.Span | None] = ContextVar("playhead_serving", default=None)
"""Root span of the request that is being served. Frameworks begin with an empty context."""

_ROOT = otel_context.create_key("playhead-run-root")


def apart(context: Context) -> Context:
    """Return ``context`` marked so that nothing in it becomes part of the process's run."""
    return otel_context.set_value(_ROOT, True, context)


class _Given(IdGenerator):
    """Generates ids that were chosen before."""

    def __init__(self, trace_id: int, span_id: int) -> None:
        self._trace_id, self._span_id = trace_id, span_id

    def generate_trace_id(self) -> int:
        return self._trace_id

    def generate_span_id(self) -> int:
        return self._span_id


class RunOrigin(msgspec.Struct, frozen=True):
    """Where the run of a process comes from."""

    parent: trace.SpanContext | None = None
    """The span of another process that started this one."""
    joins: bool = False
    """Whether requests from outside that name no parent are part of this run."""
    links: Sequence[trace.Link] = ()
    """To the run that is executed again."""


class RunRoot:
    """The root span of this process: its ids are chosen early; it is opened when needed, ended once."""

    def __init__(
        self,
        tracer: trace.Tracer,
        origin: RunOrigin,
        *,
        ids: IdGenerator | None = None,
        on_open: Callable[[], None] | None = None,
        waits: bool = False,
    ) -> None:
        """``on_open`` is called once. ``waits``: nothing runs here; a run begins in a fork."""
        self.joins = origin.joins
        self._waits = waits
        self.name = "run"
        self.attributes: dict[str, Any] = {}
        self._tracer = tracer
        self._links = origin.links
        self._ids = ids or RandomIdGenerator()
        self._on_open = on_open
        self._lock = threading.RLock()
        self._choose(origin.parent)
        at_fork.before_fork(self._before_fork)
        at_fork.in_child(self._after_fork)

    def _choose(self, parent: trace.SpanContext | None) -> None:
        self.parent = parent
        self.trace_id = parent.trace_id if parent is not None else self._ids.generate_trace_id()
        self.span_id = self._ids.generate_span_id()
        self.span: trace.Span | None = None
        self._started_ns = REAL.time_ns()

    @property
    def ids(self) -> tuple[bytes, bytes]:
        """Trace id, 16 bytes, and span id, 8 bytes."""
        return self.trace_id.to_bytes(16, "big"), self.span_id.to_bytes(8, "big")

    @property
    def run_id(self) -> str:
        """Trace id and span id, hex, joined by a dash."""
        return f"{self.trace_id:032x}-{self.span_id:016x}"

    def open(self, quietly: bool = False) -> trace.Span:
        """Return the root span; start it first if needed. ``quietly``: do not call ``on_open``."""
        span = self.span
        if span is not None:
            return span
        with self._lock:
            if self.span is not None:
                return self.span
            tracer: Any = copy.copy(self._tracer)
            tracer.id_generator = _Given(self.trace_id, self.span_id)
            outside = Context({_ROOT: True})
            if self.parent is not None:
                outside = trace.set_span_in_context(trace.NonRecordingSpan(self.parent), outside)
            self.span = tracer.start_span(
                self.name,
                context=outside,
                kind=trace.SpanKind.INTERNAL,
                attributes={**self.attributes, a.PLAYHEAD_RUN_ID: self.run_id},
                links=self._links,
                start_time=self._started_ns,
            )
            if self._on_open is not None and not quietly:
                self._on_open()
        return self.span  # pyright: ignore[reportReturnType]

    def adopt(self, context: Context | None, kind: trace.SpanKind) -> Context | None:
        """Return the context for a span of ``kind``: ``context``, with the root if it lacks a parent."""
        if (kind in ADOPTS_NOT and not self.joins) or (context is not None and _ROOT in context):
            return context
        if UNRECORDED.get() or trace.get_current_span(context).get_span_context().is_valid:
            return context
        return trace.set_span_in_context(self.open(), context)

    def begin(self, links: Sequence[trace.Link]) -> None:
        """Begin a run in the fork of a process that waited."""
        self._waits, self._links = False, links

    def end(self, attributes: Mapping[str, Any] | None = None, failure: str | None = None) -> None:
        """End the root, if it was opened and is still open. ``failure``: why the process fails."""
        span = self.span
        if span is not None and span.is_recording():
            if attributes:
                note(span, attributes)
            if failure is not None:
                span.set_status(trace.Status(trace.StatusCode.ERROR, failure))
            end_span(span)

    def _before_fork(self) -> None:
        if not self._waits:
            self.open()

    def _after_fork(self) -> None:
        parent = self.span.get_span_context() if self.span is not None else None
        self._lock = threading.RLock()
        self._choose(parent)


def described(agent: str, attributes: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return name and attributes of the root of a process: an agent where one is named, else a script.

    ``attributes``: the ``playhead.run.*`` facts of the process. Text attributes of spans cannot hold
    arbitrary bytes: bytes of the command line that are not UTF-8 are escaped.
    """
    if words := attributes.get(a.PLAYHEAD_RUN_ARGV):
        attributes = {**attributes, a.PLAYHEAD_RUN_ARGV: [_spelt_out(word) for word in words]}
    if agent:
        named = {
            a.GEN_AI_OPERATION_NAME: GenAiOperationName.INVOKE_AGENT,
            a.GEN_AI_AGENT_NAME: agent,
        }
        return f"{GenAiOperationName.INVOKE_AGENT} {agent}", {**attributes, **named}
    script = str(attributes.get(a.PLAYHEAD_RUN_SCRIPT, ""))
    name = script if script.startswith("-m ") else os.path.basename(script)
    return f"run {name}" if name else "run", dict(attributes)


def _spelt_out(word: str | bytes) -> str:
    return word if isinstance(word, str) else word.decode("utf-8", "backslashreplace")
