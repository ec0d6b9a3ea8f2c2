"""Send the trace context with recorded requests: ``traceparent``, ``tracestate``, ``baggage``.

The fields are those of the configured propagator (``OTEL_PROPAGATORS``), from the span of the attempt.
They are added after the request is on the tape, and to what goes to the wire instead of to the object of
the program. So a tape, a replay and the program itself do not depend on them.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Container

from opentelemetry import propagate, trace

from playhead_core.process.own_messages import Log
from playhead_instrumentation.session.session import Session

log = Log(__name__)

CLIENTS = ("AIOHTTP_CLIENT", "HTTPX", "REQUESTS", "URLLIB", "URLLIB3")
"""Clients whose instrumentors have a variable of their own for excluded URLs."""


def context_fields(
    session: Session, span: trace.Span, url: str, sent: Container[str]
) -> list[tuple[str, str]]:
    """Return the headers that continue the trace at ``url``. Never raises.

    ``sent``: names of the headers that the request has, found in lower case. If the program or another
    instrumentation already sends the context of a trace, the trace continues there: nothing is added.
    """
    try:
        excluded = _excluded(session.settings.propagation_excluded_urls)
        if excluded is not None and excluded.search(url):
            return []
        fields: dict[str, str] = {}
        propagate.inject(fields, context=trace.set_span_in_context(span))
        new: list[tuple[str, str]] = []
        for name, value in fields.items():
            if name.lower() not in sent and value.isascii():
                new.append((name, value))
            elif name.lower() != "baggage":
                return []
        return [] if "traceparent" in sent else new
    except Exception:
        log.debug("playhead could not add the trace context to a request", exc_info=True)
        return []


@functools.cache
def _excluded(setting: str) -> re.Pattern[str] | None:
    """Return the pattern of excluded URLs: of the setting and of the clients' instrumentors."""
    named = [os.environ.get(f"OTEL_PYTHON_{client}_EXCLUDED_URLS", "") for client in CLIENTS]
    patterns = [one.strip() for one in ",".join([setting, *named]).split(",") if one.strip()]
    return re.compile("|".join(patterns)) if patterns else None
