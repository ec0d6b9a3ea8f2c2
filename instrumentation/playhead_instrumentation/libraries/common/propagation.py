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
from typing import Any

from opentelemetry import baggage, propagate, trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

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
        fields = _fields(span)
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


def _fields(span: trace.Span) -> dict[str, str]:
    """Return what the propagator injects; for that of W3C, without the detour over a context."""
    context = span.get_span_context()
    plain = context.is_valid and not context.trace_state and not baggage.get_all()
    if plain and _is_w3c(propagate.get_global_textmap()):
        ids = f"{context.trace_id:032x}-{context.span_id:016x}"
        return {"traceparent": f"00-{ids}-{context.trace_flags:02x}"}
    fields: dict[str, str] = {}
    propagate.inject(fields, context=trace.set_span_in_context(span))
    return fields


@functools.lru_cache(4)
def _is_w3c(propagator: Any) -> bool:
    """Whether a propagator is the default one: trace context and baggage."""
    if type(propagator) is not CompositePropagator:
        return False
    parts: Any = getattr(propagator, "_propagators", ())
    return {type(one) for one in parts} <= {TraceContextTextMapPropagator, W3CBaggagePropagator} and any(
        type(one) is TraceContextTextMapPropagator for one in parts
    )


@functools.cache
def _excluded(setting: str) -> re.Pattern[str] | None:
    """Return the pattern of excluded URLs: of the setting and of the clients' instrumentors."""
    named = [os.environ.get(f"OTEL_PYTHON_{client}_EXCLUDED_URLS", "") for client in CLIENTS]
    patterns = [one.strip() for one in ",".join([setting, *named]).split(",") if one.strip()]
    return re.compile("|".join(patterns)) if patterns else None
