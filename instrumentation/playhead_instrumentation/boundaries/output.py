"""What the program prints: text on stdout and stderr, as effects on the tape.

The stream objects stay what they are; their `write` is covered on the instance, so that a program that
puts another object in the place of `sys.stdout` prints there, and not on the tape.
"""

from __future__ import annotations

import functools
import logging
import sys
import time
from typing import Any

from opentelemetry import trace

from playhead_instrumentation import lanes
from playhead_instrumentation.patches import Patches, required
from playhead_instrumentation.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.facts import Content, Fact

log = logging.getLogger(__name__)


def watch(patches: Patches) -> None:
    """Cover both streams, where the process has them."""
    for name in ("stdout", "stderr"):
        stream: Any = getattr(sys, name, None)
        if stream is not None:
            patches.attempt(name, functools.partial(_cover, stream, name))


def _cover(stream: Any, name: str) -> None:
    write = required(stream, "write")
    if hasattr(write, "__playhead__"):
        return
    encoding = getattr(stream, "encoding", None) or "utf-8"

    @functools.wraps(write)
    def recorded(text: Any, /) -> Any:
        session = current()
        if session is not None and isinstance(text, str) and text:
            _record(session, name, text, encoding)
        return write(text)

    recorded.__dict__["__playhead__"] = True
    stream.write = recorded


def _record(session: Session, name: str, text: str, encoding: str) -> None:
    try:
        lane = lanes.current()
        if lane is lanes.SHADOW:
            return
        if lane.declared_on != session.sink.instance:
            session.driver.declare(lane)
        scrubbed = session.redactor.text(text)
        data = scrubbed.encode(encoding, "backslashreplace")
        attributes: dict[str, Any] = {a.PLAYHEAD_EFFECT_KIND: name}
        if scrubbed != text:
            attributes[a.PLAYHEAD_REDACTED_COUNT] = 1
        span = trace.get_current_span().get_span_context()
        session.sink.append(
            Fact(
                time.time_ns(),
                lane.hash,
                e.PLAYHEAD_EFFECT,
                span.trace_id.to_bytes(16) if span.is_valid else b"",
                span.span_id.to_bytes(8) if span.is_valid else b"",
                attributes=attributes,
                body=Content(b"", len(data), data if session.redactor.content else None),
            )
        )
    except Exception:
        log.debug("playhead could not record what was printed", exc_info=True)
