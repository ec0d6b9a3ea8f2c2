"""How a session makes spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import msgspec
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Tracer


class Job(Protocol):
    """Work that is done once, off the caller's path."""

    def finish(self) -> None:
        """Do it."""
        ...


def _global_tracer() -> Tracer:
    return trace.get_tracer("playhead")


def _at_once(job: Job) -> None:
    job.finish()


def _continued(headers: Mapping[str, str]) -> Context:
    return propagate.extract(headers, context=Context())


class Tracing(msgspec.Struct, frozen=True):
    """How a session makes spans."""

    tracer: Callable[[], Tracer] = _global_tracer
    """Returns the tracer for spans of attempts."""
    submit: Callable[[Job], None] = _at_once
    """Submits work to be done off the caller's path. Safe in a finalizer."""
    context_of: Callable[[Mapping[str, str]], Context] = _continued
    """The context in which a request that came with these headers (lower case) is served.

    By default the trace that the headers name is continued.
    """


GLOBAL_PROVIDER = Tracing()
"""Spans of the global provider, without a worker."""
