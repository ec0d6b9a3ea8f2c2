"""Patches the clients in the test's own process, over the real HTTP boundary, with a list as tape."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.starting.running import PATIENCE_S, until
from support.tapes.sessions import tell_imports_once

from playhead_core.facts import Fact
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.bootstrap.compose import open_driver
from playhead_instrumentation.libraries.common import installing
from playhead_instrumentation.patching.patches import PATCHES
from playhead_instrumentation.session import session
from playhead_instrumentation.session.options import Tracing
from playhead_instrumentation.tracing.calls import Calls, keep_calls
from playhead_instrumentation.tracing.finish import Finisher


class ListSink:
    """A tape in memory."""

    def __init__(self) -> None:
        # Its own: a lane that is declared on a sink of the same name is not declared again.
        self.instance = uuid4().bytes
        self.facts: list[Fact] = []
        self._lock = threading.RLock()

    def append(self, fact: Fact) -> int:
        with self._lock:
            seq = len(self.facts)
            self.facts.append(msgspec.structs.replace(fact, instance=self.instance, seq=seq))
            return seq

    @property
    def tape(self) -> MemoryTape:
        return MemoryTape(self.facts, self.instance)


@dataclass
class Recorded:
    """The recording of a test's calls."""

    calls: Calls
    sink: ListSink
    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)

    def spans(self) -> list[ReadableSpan]:
        """All finished spans, in order of their starts."""
        assert self.calls.worker.drain(PATIENCE_S)
        return sorted(self.exporter.get_finished_spans(), key=lambda span: span.start_time or 0)

    def call(self) -> ReadableSpan:
        """The only span of a logical call."""
        (found,) = [span for span in self.spans() if "gen_ai.operation.name" in (span.attributes or {})]
        return found

    def attempts(self) -> list[ReadableSpan]:
        """The spans of HTTP attempts."""
        return [span for span in self.spans() if "http.request.method" in (span.attributes or {})]


def collected(recorded: Recorded) -> None:
    """Wait until no call is open any more because what it was read by is garbage.

    A collection returns at once where another thread is collecting.
    """

    def over() -> bool:
        if recorded.calls.open_calls():
            gc.collect()
        return not recorded.calls.open_calls()

    until(over, "nothing reads from the call any more")


def global_provider() -> TracerProvider:
    """The provider of this process; set only once."""
    provider = trace.get_tracer_provider()
    if not isinstance(provider, TracerProvider):
        provider = TracerProvider(shutdown_on_exit=False)
        trace.set_tracer_provider(provider)
    return provider


@contextmanager
def recorded_calls(**settings: Any) -> Iterator[Recorded]:
    """Patch both SDKs and record; undone on exit."""
    provider, sink = global_provider(), ListSink()
    made = Settings(**settings)
    finisher = Finisher(
        lambda: sink, made.span_budget_bytes, content=made.content != "metadata", scrub=str
    )
    calls = Calls(provider.get_tracer("playhead"), lambda: finisher)
    recorded = Recorded(calls, sink)
    processor = SimpleSpanProcessor(recorded.exporter)
    provider.add_span_processor(processor)
    running = session.start(
        made, sink, tracing=Tracing(submit=calls.worker.submit), open_driver=open_driver
    )
    tell_imports_once(running)
    installing.watch(PATCHES, running)
    keep_calls(calls)
    try:
        yield recorded
    finally:
        running.abandon()
        calls.abandon()
        assert calls.worker.drain(PATIENCE_S)
        keep_calls(None)
        session.stop(0)
        multi: Any = provider._active_span_processor
        multi._span_processors = tuple(one for one in multi._span_processors if one is not processor)
