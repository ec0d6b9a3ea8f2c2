"""The logical calls of a process: begun on the caller's path, finished by the worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

from opentelemetry import trace

from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.tracing.logical_call import LogicalCall
from playhead_instrumentation.tracing.processor import end_span
from playhead_instrumentation.tracing.worker import Worker
from playhead_semconv import attributes as a

Finish = Callable[[LogicalCall], None]
"""Derives the attributes of a call that is over, and ends its span."""


class Where(Protocol):
    """The endpoint of a call: a value that can be hashed."""

    @property
    def provider(self) -> str:
        """``gen_ai.provider.name``; empty where it is not known."""
        ...

    @property
    def address(self) -> str:
        """Host."""
        ...

    @property
    def port(self) -> int:
        """Port; 0 where it is not known."""
        ...


_current: Calls | None = None


def current_calls() -> Calls | None:
    """The calls of this process; None where no model call has a span."""
    return _current


def keep_calls(calls: Calls | None) -> None:
    """Use ``calls`` for model calls from now on."""
    global _current
    _current = calls


@lru_cache(256)
def _described(operation: str, model: str, where: Where) -> tuple[str, Mapping[str, Any]]:
    """Return name and attributes with which the span of a call starts."""
    attributes: dict[str, Any] = {a.GEN_AI_OPERATION_NAME: operation}
    if where.provider:
        attributes[a.GEN_AI_PROVIDER_NAME] = where.provider
    if model:
        attributes[a.GEN_AI_REQUEST_MODEL] = model
    if where.address:
        attributes[a.SERVER_ADDRESS] = where.address
        if where.port:
            attributes[a.SERVER_PORT] = where.port
    return f"{operation} {model}" if model else operation, MappingProxyType(attributes)


class Calls:
    """Begins calls, tracks which are open, and has them finished off the caller's path."""

    def __init__(self, tracer: trace.Tracer, finisher: Callable[[], Finish]) -> None:
        """``finisher`` is called once, before the first call: its modules are not needed earlier."""
        self._tracer = tracer
        self._finisher = finisher
        self._finish: Finish | None = None
        self._open: set[LogicalCall] = set()
        self.worker = Worker()
        self.before: Callable[[], object] | None = None
        """Called before each call begins."""
        at_fork.in_child(self._forget)

    def prepare(self) -> None:
        """A client has been imported: load what finishes its calls."""
        if self._finish is None:
            self._finish = self._finisher()

    def begin(self, operation: str, wire: str, model: str, where: Where) -> LogicalCall:
        """Start the span of a call, with the attributes that a sampler may need.

        ``wire`` empty: its last request will tell.
        """
        self.prepare()
        if self.worker.thread is None:  # in the child of a fork
            self.worker.start()
        if self.before is not None:
            self.before()
        name, attributes = _described(operation, model, where)
        started_ns = REAL.time_ns()
        span = self._tracer.start_span(
            name,
            kind=trace.SpanKind.CLIENT,
            attributes=attributes,
            start_time=started_ns,
        )
        unnamed = not (model and wire)
        call = LogicalCall(span, wire, unnamed, started_ns, self.worker.submit, self.finish)
        self._open.add(call)
        return call

    def open_calls(self) -> list[LogicalCall]:
        """Calls that are not over yet."""
        return list(self._open)

    def abandon(self, of: Callable[[LogicalCall], bool] = lambda _: True) -> None:
        """End the open calls for which ``of`` is true, since nothing else will."""
        for call in self.open_calls():
            if of(call):
                call.abandon()

    def finish(self, call: LogicalCall) -> None:
        """Finish one call; its span is ended whatever happens."""
        try:
            if self._finish is not None:
                self._finish(call)
        finally:
            self._open.discard(call)
            if call.span.is_recording():
                end_span(call.span, call.ended_ns)

    def _forget(self) -> None:
        # The parent ends its own calls; ending a copy here would record the same span twice.
        for call in self._open:
            call.disown()
        self._open = set()
