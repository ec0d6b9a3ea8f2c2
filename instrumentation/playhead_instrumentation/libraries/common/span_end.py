"""The end of the span of an exchange, off the caller's path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.trace import Span, Status, StatusCode

from playhead_core.facts import End
from playhead_instrumentation.recorder.exceptions import name_of
from playhead_instrumentation.tracing.light import note
from playhead_semconv import attributes as a


def end_span(
    span: Span, end: End | None, ended_ns: int | None, more: Mapping[str, Any] | None = None
) -> None:
    """End ``span`` as its exchange has ended. ``end`` None: it has not.

    ``more``: attributes, which come before what the end says.
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
