"""Spans of playhead, made cheaply as long as only the recorder sees them.

To every reader they are spans of the SDK: ids, flags, state, sampler, baggage, parent, and limits on
what the program sets. Once a program adds a processor, the SDK makes the spans itself, starting with the
next.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from opentelemetry import trace
from opentelemetry.attributes import BoundedAttributes
from opentelemetry.context import Context
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.trace.id_generator import IdGenerator
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.trace import SpanContext, SpanKind, Status, StatusCode, TraceFlags

from playhead_core.process.interpreter_threads import make_lock
from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.unpatched import REAL

log = Log(__name__)

_SAMPLED = TraceFlags.SAMPLED
_RANDOM: int = getattr(TraceFlags, "RANDOM_TRACE_ID", 0)
_UNSET = Status(StatusCode.UNSET)
_NO_MORE: Mapping[str, Any] = MappingProxyType({})


class Adopts(Protocol):
    """Gives a parent to a span that has none."""

    def __call__(self, context: Context | None, kind: SpanKind, /) -> Context | None:
        """Return the context in which a span starts."""
        ...


class LightSpan(sdk_trace.Span):
    """A span of the SDK that makes its parts only when they are needed.

    Attributes that the recorder sets are kept as they are, and do not count towards limits; see `note`.
    """

    def __init__(
        self,
        tracer: Any,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        kind: SpanKind,
        attributes: Mapping[str, Any],
        start_time_ns: int,
        counted: Callable[[], None] | None = None,
    ) -> None:
        """``tracer``: the tracer of the SDK. ``counted``: called at the end, for the SDK's metrics.

        The base constructors are not called: they make the parts at once.
        """
        self._name = name
        self._context = context
        self._parent = parent
        self._kind = kind
        self._resource = tracer.resource
        self._instrumentation_info = getattr(tracer, "instrumentation_info", None)
        self._instrumentation_scope = getattr(tracer, "_instrumentation_scope", None)
        self._sampler = tracer.sampler
        self._limits = tracer._span_limits
        self._span_processor = tracer.span_processor
        self._trace_config = None
        self._record_exception = self._set_status_on_exception = True
        self._counted = counted
        self._status = _UNSET
        self._start_time = start_time_ns
        self._end_time = None
        self._lock: Any = make_lock()
        self._noted: dict[str, Any] = dict(attributes)
        self._said: BoundedAttributes | None = None
        self._late_events: Any = None
        self._late_links: Any = None

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the recorder, which are plain values. No effect once the span has ended."""
        with self._lock:
            if self._end_time is not None:
                return
            self._noted.update(attributes)
            if self._said is not None:
                for name in attributes:
                    if name in self._said:
                        del self._said[name]

    def link(self, links: Sequence[trace.Link]) -> None:
        """Set the links with which the span starts."""
        self._late_links = self._new_links(links)

    def set_by_program(self) -> Mapping[str, Any]:
        """Return the attributes that the program set."""
        return _NO_MORE if self._said is None else dict(self._said)

    def started(self, clean: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> dict[str, Any]:
        """Return its start, as a request carries it; see `playhead_core.tape.span_starts`.

        ``clean`` returns attributes of the program without credentials.
        """
        context, parent, noted, said = self._context, self._parent, self._noted, self._said
        return {
            "span_id": f"{context.span_id:016x}",  # pyright: ignore[reportOptionalMemberAccess]
            "parent_id": f"{parent.span_id:016x}" if parent else "",
            "name": self._name,
            "kind": self._kind.value + 1,  # as OTLP numbers it
            "time_ns": self._start_time or 0,
            "attributes": dict(clean({**noted, **said}) if said else noted),
        }

    @property
    def _attributes(self) -> Mapping[str, Any]:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self._noted if self._said is None else {**self._noted, **self._said}

    @property
    def _events(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self._late_events is None:
            self._late_events = self._new_events()
        return self._late_events

    @property
    def _links(self) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        if self._late_links is None:
            self._late_links = self._new_links(())
        return self._late_links

    @property
    def events(self) -> Sequence[Any]:
        """As in the SDK."""
        return () if self._late_events is None else tuple(self._late_events)

    @property
    def links(self) -> Sequence[trace.Link]:
        """As in the SDK."""
        return () if self._late_links is None else tuple(self._late_links)

    @property
    def dropped_attributes(self) -> int:
        """As in the SDK, for attributes that the program set."""
        return 0 if self._said is None else self._said.dropped

    @property
    def dropped_events(self) -> int:
        """As in the SDK."""
        return 0 if self._late_events is None else self._late_events.dropped

    @property
    def dropped_links(self) -> int:
        """As in the SDK."""
        return 0 if self._late_links is None else self._late_links.dropped

    def set_attribute(self, key: str, value: Any) -> None:
        """As the SDK does."""
        self.set_attributes({key: value})

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """As the SDK does."""
        with self._lock:
            if self._end_time is not None:
                sdk_trace.logger.warning("Setting attribute on ended span.")
                return
            if self._said is None:
                self._said = BoundedAttributes(
                    self._limits.max_span_attributes,
                    None,
                    immutable=False,
                    max_value_len=self._limits.max_span_attribute_length,
                )
            for key, value in attributes.items():
                self._said[key] = value

    def end(self, end_time: int | None = None) -> None:
        """As the SDK does."""
        with self._lock:
            if self._end_time is not None:
                sdk_trace.logger.warning("Calling end() on an ended span.")
                return
            self._end_time = REAL.time_ns() if end_time is None else end_time
        if self._counted is not None:
            self._counted()
        processor: Any = self._span_processor
        if hasattr(processor, "_on_ending"):
            processor._on_ending(self)
        processor.on_end(self)

    def _readable_span(self) -> sdk_trace.ReadableSpan:
        """Return the span itself: it does not change after its end."""
        return self


def note(span: trace.Span, attributes: Mapping[str, Any]) -> None:
    """Set ``attributes``, plain values, on a span that playhead started."""
    if isinstance(span, LightSpan):
        span.note(attributes)
    else:
        span.set_attributes(attributes)


class LightTracer(trace.Tracer):
    """Starts spans of playhead; light ones where a provider has no processor but ours."""

    def __init__(
        self, sdk_tracer: Callable[[], Any], processor: sdk_trace.SpanProcessor, adopts: Adopts
    ) -> None:
        """``sdk_tracer`` returns the tracer that starts the spans which others see.

        It is called again whenever the program has set another global provider.
        """
        self.id_generator: IdGenerator | None = None
        """Used instead of the tracer's generator; None: the tracer's."""
        self._sdk_tracer = sdk_tracer
        self._tracer: Any = None
        self._provider: object = None
        """The global provider to which `_tracer` belongs."""
        self._processor = processor
        self._alone = (processor,)
        self._adopts = adopts

    def start_span(
        self,
        name: str,
        context: Context | None = None,
        kind: SpanKind = SpanKind.INTERNAL,
        attributes: Any = None,
        links: Any = (),
        start_time: int | None = None,
        record_exception: bool = True,
        set_status_on_exception: bool = True,
    ) -> trace.Span:
        """As the SDK does."""
        tracer = self._whole()
        processors = getattr(tracer.span_processor, "_span_processors", None)
        if processors == self._alone and record_exception and set_status_on_exception:
            try:
                span = self._light(
                    tracer, name, context, kind, attributes or _NO_MORE, links, start_time
                )
                if span is not None:
                    return span
            except Exception:
                log.debug("playhead could not start a span of its own", exc_info=True)
        return tracer.start_span(name, context, kind, attributes, links, start_time)

    def start_as_current_span(self, *args: Any, **kwargs: Any) -> Any:
        """As the SDK does, with a span of the SDK."""
        return self._whole().start_as_current_span(*args, **kwargs)

    def follow(self) -> Any:
        """Get a tracer from the current global provider. Without this call, the next span does it."""
        provider = getattr(trace, "_TRACER_PROVIDER", None)  # before: another thread may set one
        tracer = self._tracer = self._sdk_tracer()
        self._provider = provider
        return tracer

    def _whole(self) -> Any:
        """Return the tracer of the SDK."""
        tracer = self._tracer
        if tracer is None or self._provider is not getattr(trace, "_TRACER_PROVIDER", None):
            tracer = self.follow()
        if self.id_generator is not None:
            tracer = copy.copy(tracer)
            tracer.id_generator = self.id_generator
        return tracer

    def _light(
        self,
        tracer: Any,
        name: str,
        context: Context | None,
        kind: SpanKind,
        attributes: Mapping[str, Any],
        links: Sequence[trace.Link],
        start_time_ns: int | None,
    ) -> trace.Span | None:
        """Return a light span; None where the SDK must decide.

        As `opentelemetry.sdk.trace.Tracer.start_span`.
        """
        enabled = getattr(tracer, "_is_enabled", None)
        if enabled is not None and not enabled():
            return None
        given = trace.get_current_span(context).get_span_context()
        trace_id, _, remote, around, state, valid = given
        if kind is not SpanKind.CLIENT or not valid:  # else it keeps its parent
            context = self._adopts(context, kind)
            given = trace.get_current_span(context).get_span_context()
            trace_id, _, remote, around, state, valid = given
        parent = given if valid else None
        ids = tracer.id_generator
        if parent is None:
            trace_id = ids.generate_trace_id()
        if (
            valid
            and not remote
            and around & _SAMPLED
            and getattr(tracer.sampler, "follows_sampled", False)
        ):
            decision = Decision.RECORD_AND_SAMPLE
        else:
            sampled = tracer.sampler.should_sample(context, trace_id, name, kind, attributes, links)
            decision, state = sampled.decision, sampled.trace_state
            attributes = sampled.attributes or _NO_MORE
            if not decision.is_recording():
                return None
        flags = _SAMPLED if decision is Decision.RECORD_AND_SAMPLE else TraceFlags.DEFAULT
        if _RANDOM and (ids.is_trace_id_random() if parent is None else around & _RANDOM):
            flags |= _RANDOM
        span_context = SpanContext(trace_id, ids.generate_span_id(), False, TraceFlags(flags), state)
        started_ns = REAL.time_ns() if start_time_ns is None else start_time_ns
        metrics = getattr(tracer, "_tracer_metrics", None)
        counted = None if metrics is None else metrics.start_span(parent, decision)
        span = LightSpan(tracer, name, span_context, parent, kind, attributes, started_ns, counted)
        if links:
            span.link(links)
        self._processor.on_start(span, parent_context=context)
        return span
