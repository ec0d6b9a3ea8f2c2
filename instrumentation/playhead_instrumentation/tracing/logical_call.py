"""A logical call: from the caller's request to the end of the answer, over all attempts."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from opentelemetry import trace
from opentelemetry.context import Context

from playhead_instrumentation.patching.unpatched import REAL
from playhead_instrumentation.tracing.attempts import Attempt


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

    def attempt_opened(self, attempt: Attempt) -> None:
        """Another attempt of this call."""
        attempt.resend_count = len(self.attempts)
        self.attempts.append(attempt)

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
