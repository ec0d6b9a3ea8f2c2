"""Set arguments, results and other content on a span, within its budget and without credentials."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from opentelemetry import trace

from playhead_core.process.own_messages import Log
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.session.session import Session
from playhead_instrumentation.tracing.light import note
from playhead_instrumentation.tracing.span_budget import fit

log = Log(__name__)


def set_content(session: Session, span: trace.Span, content: Mapping[str, Any]) -> None:
    """Set ``content`` as text, other values as JSON. Nothing if no content is recorded. Never raises."""
    if not session.redactor.content or not span.is_recording():
        return
    try:
        with Shadow():  # a value's own `__str__` is not part of the program
            texts = {
                name: session.redactor.text(
                    value
                    if isinstance(value, str)
                    else json.dumps(value, ensure_ascii=False, default=str)
                )
                for name, value in content.items()
            }
        note(span, fit(texts, session.settings.span_budget_bytes, session.sink))
    except Exception:
        log.debug("playhead could not describe an operation", exc_info=True)
