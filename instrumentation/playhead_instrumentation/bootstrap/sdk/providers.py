"""Records every `TracerProvider` of the process, at any time and from any code.

The classes of the SDK are patched, not one provider: a program may set its own provider, make several,
or keep one for itself. The patches and their purposes:

==================================  ================================================================
``TracerProvider.__init__``         the recording processor comes first, the sampler records all
``TracerProvider.shutdown``         drains spans that end late, then ends open spans
``TracerProvider.force_flush``      drains spans that end late
``Tracer.start_span``               a span without a parent is the run root's child
``trace._set_tracer_provider``      the program's own provider takes the place of ours
==================================  ================================================================
"""

from __future__ import annotations

import atexit
import functools
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any, Final, Protocol

import opentelemetry.metrics._internal as metrics
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk import trace as sdk_trace
from opentelemetry.sdk.trace.sampling import (
    ALWAYS_ON,
    Decision,
    ParentBased,
    Sampler,
    SamplingResult,
)
from opentelemetry.trace import Link, SpanKind, TraceState
from opentelemetry.util._once import Once
from opentelemetry.util.types import Attributes

from playhead_core.process.own_messages import Log
from playhead_instrumentation.bootstrap.sdk.adjustments import bound_existing
from playhead_instrumentation.patching.patches import Patches
from playhead_instrumentation.tracing.light import LightTracer
from playhead_instrumentation.tracing.processor import RecordingProcessor


class RecordAll(Sampler):
    """Asks another sampler and turns its DROP into RECORD_ONLY.

    So the recorder sees every span. Exporters, which take only sampled spans, see the same spans as
    without it.
    """

    def __init__(self, sampler: Sampler, recording: Callable[[], bool] = lambda: True) -> None:
        """``recording``: whether there is a recorder; if not, the other sampler decides alone."""
        self.sampler = sampler
        self._recording = recording
        self.follows_sampled = (
            type(sampler) is ParentBased and getattr(sampler, "_local_parent_sampled", None) is ALWAYS_ON
        )
        """Whether a span below a sampled one of this process is sampled too, as it is by default."""

    def should_sample(
        self,
        parent_context: Context | None,
        trace_id: int,
        name: str,
        kind: SpanKind | None = None,
        attributes: Attributes = None,
        links: Sequence[Link] | None = None,
        trace_state: TraceState | None = None,
    ) -> SamplingResult:
        """The other sampler's decision, DROP turned into RECORD_ONLY with the given attributes."""
        result = self.sampler.should_sample(
            parent_context, trace_id, name, kind, attributes, links, trace_state
        )
        if result.decision is Decision.DROP and self._recording():
            # Samplers return no attributes with a DROP, although the span has some.
            return SamplingResult(Decision.RECORD_ONLY, attributes, result.trace_state)
        return result

    def get_description(self) -> str:
        """The description of both samplers."""
        return f"RecordAll{{{self.sampler.get_description()}}}"


log = Log(__name__)

DRAIN_S = 30.0
"""Seconds that a shutdown waits for spans that end late; the SDK's own limit for its exporters."""


class Keeper(Protocol):
    """Callbacks on spans during the life of their provider."""

    def adopt(self, context: Context | None, kind: trace.SpanKind) -> Context | None:
        """The context in which a span starts."""
        ...

    def drain(self, timeout_s: float) -> bool:
        """End spans whose calls are over; False where ``timeout_s`` was too short."""
        ...

    def close(self, provider: sdk_trace.TracerProvider) -> None:
        """End our open spans of a provider that is about to shut down."""
        ...


class Providers:
    """The providers of this process, and the hooks in the SDK."""

    def __init__(self, processor: RecordingProcessor, keeper: Keeper) -> None:
        self._processor = processor
        self._keeper = keeper
        self.tracer: Final = LightTracer(self._sdk_tracer, processor, keeper.adopt)
        """The tracer for our own spans: of the global provider, if that is an SDK provider."""
        self._own: sdk_trace.TracerProvider | None = None
        self._private: sdk_trace.TracerProvider | None = None
        self._patches: Patches | None = None
        self._recording = True

    def install(self, patches: Patches) -> None:
        """Patch the SDK, and attach to a provider that is already set."""
        self._patches = patches
        layers = {"__init__": self._init, "shutdown": self._shutdown, "force_flush": self._force_flush}
        for name, owner, around in (
            ("TracerProvider", sdk_trace.TracerProvider, layers),
            ("Tracer", sdk_trace.Tracer, {"start_span": self._start_span}),
            ("set_tracer_provider", trace, {"_set_tracer_provider": self._set_provider}),
        ):
            patches.attempt(name, functools.partial(patches.around_all, owner, around))
        present = getattr(trace, "_TRACER_PROVIDER", None)
        if isinstance(present, sdk_trace.TracerProvider):
            self.attach_late(present)

    def uninstall(self) -> None:
        """Restore the SDK, including existing providers."""
        if self._patches is not None:
            self._patches.undo()
        self._recording = False

    def ensure(self) -> None:
        """Set a provider if none is set, and take its tracer.

        The SDK changes the filters of warnings then. Later, while the program runs, that would repeat
        what it warns of once per place.

        A provider without other exporters, ours or the configurator's, is replaced when the program sets
        its own.
        """
        if getattr(trace, "_TRACER_PROVIDER", None) is None:
            trace.set_tracer_provider(sdk_trace.TracerProvider())
        provider: Any = trace.get_tracer_provider()
        processors = getattr(provider, "_active_span_processor", None)
        if getattr(processors, "_span_processors", None) == (self._processor,):
            self._own = provider
        self.tracer.follow()

    def _sdk_tracer(self) -> trace.Tracer:
        provider: Any = trace.get_tracer_provider()
        if not isinstance(provider, sdk_trace.TracerProvider):
            if self._private is None:
                self._private = sdk_trace.TracerProvider()
            provider = self._private
        return provider.get_tracer("playhead", _version())

    def attach(self, provider: Any) -> None:
        """Record all spans of ``provider``."""
        if isinstance(provider.sampler, RecordAll):
            return
        provider.sampler = RecordAll(provider.sampler, lambda: self._recording)
        for tracer in getattr(provider, "_tracers", {}).values():
            tracer.sampler = provider.sampler
        provider.add_span_processor(self._processor)

    def attach_late(self, provider: Any) -> None:
        """Record all spans of a provider that was made before its class was patched."""
        if isinstance(provider.sampler, RecordAll):
            return
        self.attach(provider)
        processors = getattr(provider, "_active_span_processor", None)
        for processor in getattr(processors, "_span_processors", ()):
            bound_existing(processor)
        if getattr(provider, "_atexit_handler", None) is not None:
            # atexit holds the method from before the patch.
            atexit.unregister(provider._atexit_handler)
            provider._atexit_handler = atexit.register(provider.shutdown)

    def _start_span(
        self,
        start_span: Any,
        tracer: Any,
        name: str,
        context: Context | None = None,
        kind: trace.SpanKind = trace.SpanKind.INTERNAL,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        try:
            context = self._keeper.adopt(context, kind)
        except Exception:
            log.debug("playhead could not open the run root", exc_info=True)
        return start_span(tracer, name, context, kind, *args, **kwargs)

    def _set_provider(self, set_provider: Any, tracer_provider: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            self._make_way(tracer_provider)
            if isinstance(tracer_provider, sdk_trace.TracerProvider):
                self.attach_late(tracer_provider)
        except Exception:
            log.debug("playhead could not make way for a provider", exc_info=True)
        return set_provider(tracer_provider, *args, **kwargs)

    def _init(self, init: Any, provider: Any, *args: Any, **kwargs: Any) -> None:
        init(provider, *args, **kwargs)
        self.attach(provider)

    def _shutdown(self, shutdown: Any, provider: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            self._keeper.close(provider)
            self._keeper.drain(DRAIN_S)
        except Exception:
            log.debug("playhead could not end what was open", exc_info=True)
        return shutdown(provider, *args, **kwargs)

    def _force_flush(self, force_flush: Any, provider: Any, timeout_millis: int = 30000) -> Any:
        started = time.monotonic()
        try:
            self._keeper.drain(timeout_millis / 1000)
        except Exception:
            log.debug("playhead could not drain", exc_info=True)
        spent_ms = int((time.monotonic() - started) * 1000)
        return force_flush(provider, max(1, timeout_millis - spent_ms))

    def _make_way(self, successor: Any) -> None:
        """Make ``successor`` the global provider in place of ours, also for existing tracers."""
        own: Any = self._own
        if own is None or successor is own or getattr(trace, "_TRACER_PROVIDER", None) is not own:
            return
        self._own = None
        module: Any = trace
        module._TRACER_PROVIDER = None
        module._TRACER_PROVIDER_SET_ONCE = Once()
        heir: Any = successor
        if not isinstance(successor, sdk_trace.TracerProvider):
            return
        self.attach_late(heir)
        for tracer in list(getattr(own, "_tracers", {}).values()):
            tracer.sampler = heir.sampler
            tracer.resource = heir.resource
            tracer.span_processor = heir._active_span_processor
            tracer.id_generator = heir.id_generator
            tracer._span_limits = heir._span_limits
        self._processor.move(own._active_span_processor, heir._active_span_processor)


@functools.cache
def _version() -> str:
    return version("playhead-instrumentation")


def unset_idle() -> None:
    """Unset configured providers of metrics and logs that nothing reads.

    The API allows a provider to be set only once, so a program that sets its own would be refused.
    """
    import opentelemetry._logs._internal as logs

    for module, name, used in ((metrics, "METER", _is_read), (logs, "LOGGER", _is_processed)):
        provider = getattr(module, f"_{name}_PROVIDER", None)
        if provider is not None and not used(provider):
            setattr(module, f"_{name}_PROVIDER", None)
            setattr(module, f"_{name}_PROVIDER_SET_ONCE", Once())
            proxy: Any = getattr(module, f"_PROXY_{name}_PROVIDER", None)
            if hasattr(proxy, "_real_meter_provider"):
                proxy._real_meter_provider = None


def _is_read(provider: Any) -> bool:
    readers = getattr(provider, "_metric_readers", None)
    if readers is None:
        readers = getattr(getattr(provider, "_sdk_config", None), "metric_readers", None)
    return readers is None or bool(readers)  # an SDK without this attribute is left alone


def _is_processed(provider: Any) -> bool:
    processor = getattr(provider, "_multi_log_record_processor", None)
    processors = getattr(processor, "_log_record_processors", None)
    return processors is None or bool(processors)
