"""Options of a session: the tape that answers its requests, and how it creates spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import msgspec
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.trace import Tracer

from playhead_instrumentation.recorder.options import NOTHING, Allowed

if TYPE_CHECKING:
    from playhead_core.rerun.plans import Plan
    from playhead_core.tape.indexed_tapes import IndexedTape


class Rerun(msgspec.Struct, frozen=True):
    """A replay of a tape; with a plan, a fork or a resume, which continues live after the tape."""

    tape: IndexedTape
    """The tape whose exchanges answer."""
    origin: str = ""
    """Run id of the recorded run."""
    allowed: Allowed = NOTHING
    """What a replay may do for real."""
    scratch: str = ""
    """An empty folder for the writes of a replay; by default one that is deleted with the process."""
    plan: Plan | None = None
    """Plan of a fork or a resume."""
    is_warm: bool = False
    """Whether this is a warm process: it runs no program, and replays begin in forks of it."""
    report: Callable[[str], None] = lambda message: None
    """Called with a message when a fork leaves its tape."""

    @property
    def mode(self) -> str:
        """``replay``, ``fork`` or ``resume``."""
        return "replay" if self.plan is None else self.plan.mode


def start_of(tape: IndexedTape) -> Mapping[str, Any]:
    """Return the attributes of a tape's process-start fact; empty if the tape is empty."""
    start = next(tape.facts(), None)
    return {} if start is None else start.attributes


class Job(Protocol):
    """Work that is done once, not in the caller's path."""

    def finish(self) -> None:
        """Do the work."""
        ...


def _at_once(job: Job) -> None:
    job.finish()


def _continued(headers: Mapping[str, str]) -> Context:
    return propagate.extract(headers, context=Context())


class Tracing(msgspec.Struct, frozen=True):
    """How a session creates spans."""

    tracer: Tracer = msgspec.field(default_factory=lambda: trace.get_tracer("playhead"))
    """Starts the spans of attempts; by default that of the global provider."""
    submit: Callable[[Job], None] = _at_once
    """Submits work to be done later, not in the caller's path. Safe in a finalizer."""
    context_of: Callable[[Mapping[str, str]], Context] = _continued
    """Returns the context in which a request with these headers (lower case) is served.

    By default it continues the trace that the headers name.
    """
