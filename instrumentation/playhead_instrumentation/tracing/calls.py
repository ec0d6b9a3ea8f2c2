"""The logical calls of a process: begun on the caller's path, finished by the worker.

A logical call lasts from the caller's request to the end of the answer, over all attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context

from playhead_instrumentation.patching import at_fork
from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.tracing.attempts import Attempt
from playhead_instrumentation.tracing.processor import end_span
from playhead_instrumentation.tracing.worker import Worker
from playhead_semconv import attributes as a


class Failure(msgspec.Struct, frozen=True):
    """What the caller got instead of an answer."""

    kind: str
    """Module and qualified name of the exception; a builtin without its module."""
    message: str


def failure_of(error: BaseException) -> Failure:
    """Return ``error`` as a failure. Keeps neither the exception nor its frames."""
    cls = type(error)
    name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
    try:
        return Failure(name, str(error))
    except Exception:
        return Failure(name, "")


class LogicalCall:
    """Collects the data of one call on the caller's path, and hands itself over when the call is over.

    The call is over when the funnel has raised, or has returned and the last attempt is closed. A stream
    that is not read to its end is over when it is closed or collected, or when the process ends.
    """

    __slots__ = (
        "__weakref__",
        "_baton",
        "_finisher",
        "_hand_over",
        "attempts",
        "context",
        "ended_ns",
        "failure",
        "left_ns",
        "span",
        "started_ns",
        "unnamed",
        "wire",
    )

    def __init__(
        self,
        span: trace.Span,
        wire: str,
        unnamed: bool,
        started_ns: int,
        hand_over: Callable[[LogicalCall], None],
        finisher: Callable[[LogicalCall], None],
    ) -> None:
        """``hand_over``: called when the call is over. ``finisher``: what `finish` does."""
        self.span = span
        self.context: Context = trace.set_span_in_context(span)
        self.wire = wire
        self.unnamed = unnamed
        """Whether the span could not be named after the model that a request asks."""
        self.started_ns = started_ns
        self.attempts: list[Attempt] = []
        self.failure: Failure | None = None
        self.left_ns: int | None = None
        """When the funnel returned or raised; nanoseconds since the epoch."""
        self.ended_ns: int | None = None
        """When the call was over; nanoseconds since the epoch."""
        self._hand_over = hand_over
        self._finisher = finisher
        self._baton = [None]

    def attempt_closed(self, attempt: Attempt) -> None:
        """The call is over if the caller has its result and this was the last attempt."""
        if self.left_ns is not None and attempt is self.attempts[-1]:
            self._over(attempt.ended_ns or REAL.time_ns())

    def returned(self) -> None:
        """The caller has its result: an answer, or a stream that is still to be read."""
        self.left_ns = REAL.time_ns()
        if not self.attempts or self.attempts[-1].end is not None:
            self._over(self.left_ns)

    def raised(self, error: BaseException) -> None:
        """The caller got an exception instead."""
        self.failure = failure_of(error)
        self.left_ns = REAL.time_ns()
        self._over(self.left_ns)

    def abandon(self) -> None:
        """The process ends, or its provider is shut down, while the call is still open."""
        self._over(REAL.time_ns())

    def finish(self) -> None:
        """End the span, off the caller's path."""
        self._finisher(self)

    def disown(self) -> None:
        """This process is a fork, and the call belongs to its parent: never hand it over here."""
        self._baton.clear()

    def _over(self, at_ns: int) -> None:
        try:
            self._baton.pop()
        except IndexError:
            return
        self.ended_ns = at_ns
        self._hand_over(self)


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
