"""Decide whether an exchange that begins now is recorded, and end the spans of exchanges.

Every adapter calls one of the ``recording`` functions first. Each returns the session, or None: then the
adapter does what the library does without playhead. They differ in what they leave out. The lanes are in
`patching.lanes`: internal work of a library runs in the unrecorded lane, a finalizer in the lane of the
garbage collector. No function here raises, waits or takes a lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry import context as otel_context
from opentelemetry.instrumentation.utils import is_http_instrumentation_enabled
from opentelemetry.trace import Span, Status, StatusCode

from playhead_core.facts import End
from playhead_instrumentation.patching import lanes
from playhead_instrumentation.recorder.exceptions import name_of
from playhead_instrumentation.session.session import Session, current
from playhead_instrumentation.tracing.light import note
from playhead_semconv import attributes as a


def recording() -> Session | None:
    """Return the session if this lane is recorded: its processes, tool calls and messages.

    None for what a recorded exchange does internally, and for what a finalizer does.
    """
    session = current()
    if session is None or lanes.current() in (lanes.UNRECORDED, lanes.GC):
        return None
    return session


def recording_requests() -> Session | None:
    """Return the session if a request or a connection that begins now is recorded.

    None for what a recorded exchange does internally, and for what an exporter sends.
    """
    session = current()
    if session is None or lanes.current() is lanes.UNRECORDED:
        return None
    for key in otel_context.get_current():
        if key.startswith("suppress") and not is_http_instrumentation_enabled():
            return None
    return session


def recording_requests_of_program() -> Session | None:
    """As `recording_requests`, but not for the threads of playhead itself.

    For libraries that playhead uses, too: `http.client`, gRPC.
    """
    session = recording_requests()
    if session is not None and lanes.in_own_thread():
        return None
    return session


def end_span(
    span: Span, end: End | None, ended_ns: int | None, more: Mapping[str, Any] | None = None
) -> None:
    """End ``span`` with the outcome of its exchange. ``end`` None: the exchange is still open.

    ``more``: further attributes.
    """
    if end is not None and span.is_recording():
        if end.error is not None:
            note(span, {a.ERROR_TYPE: name_of(end.error)})
            span.set_status(Status(StatusCode.ERROR, end.error.message or None))
        if end.how == "abandoned":
            note(span, {a.PLAYHEAD_END_HOW: "abandoned"})
        if more:
            note(span, dict(more))
    span.end(end_time=ended_ns)
