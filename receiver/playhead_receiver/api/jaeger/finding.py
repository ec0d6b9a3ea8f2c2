"""Jaeger's queries over traces: search, summaries, and dependencies between services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.otlp import attributes_of
from playhead_receiver.api.compatibility.reading import Traces
from playhead_receiver.api.compatibility.spans import NO_SERVICE, Seen, SeenTrace, service_of
from playhead_receiver.storage.runs import attribute_keys as keys
from playhead_receiver.storage.spans.span_view import LONGEST_WORD
from playhead_receiver.storage.values.run_summaries import Need
from playhead_semconv import attributes as a

DEPTH = 20
"""Default number of traces in an answer."""
DEEPEST = 1500

KINDS = ("", "internal", "server", "client", "producer", "consumer")
"""Span kinds as Jaeger writes them, by OTLP's number."""
OF_SPANS = ("span.kind", "otel.status_code", "otel.scope.name", "otel.scope.version")
"""Attributes in Jaeger that are not attributes in OTLP."""


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Conditions on a span of a trace. Fields that are empty or None do not count."""

    service: str = ""
    operation: str = ""
    attributes: dict[str, str] = {}
    """Attributes of the span, its resource, scope or events, as text; ``error``: whether it failed."""
    start_min_ns: int | None = None
    start_max_ns: int | None = None
    duration_min_ns: int | None = None
    duration_max_ns: int | None = None
    depth: int = DEPTH


class Summary(msgspec.Struct, frozen=True):
    """Summary of a trace in a list."""

    trace_id: bytes
    root_service: str
    root_operation: str
    start_ns: int
    end_ns: int
    spans: int
    errors: int
    orphans: int
    """Spans whose parent is missing."""
    services: dict[str, tuple[int, int]]
    """Number of spans and of errors by service."""


def find(traces: Traces, wanted: Wanted) -> Iterator[SeenTrace]:
    """Matching traces, newest first."""
    left = min(wanted.depth if wanted.depth > 0 else DEPTH, DEEPEST)
    names = wanted.attributes.keys()
    window = wanted.start_min_ns, wanted.start_max_ns
    for trace in traces.looked_through(*window, names, list(needs_of_wanted(wanted))):
        if any(matches(span, wanted) for span in trace.spans):
            yield trace
            left -= 1
            if not left:
                return


def needs_of_wanted(wanted: Wanted) -> Iterator[Need]:
    """Attributes that a trace must have to be considered."""
    if wanted.service not in ("", NO_SERVICE):
        yield keys.equals(a.SERVICE_NAME, wanted.service)
    if wanted.operation:
        yield keys.equals(keys.SPAN_NAME, wanted.operation)
    for name, value in wanted.attributes.items():
        if name == "error":
            if value == "true":
                yield keys.has(keys.FAILED)
        elif name in OF_SPANS or name == a.PLAYHEAD_COST_USD:
            continue
        elif value.startswith(("[", "{")):
            yield keys.has(name)
        else:
            yield keys.equals(name, value, *_number(value))


def _number(text: str) -> list[float]:
    try:
        return [float(text)]
    except ValueError:
        return []


def matches(span: Seen, wanted: Wanted) -> bool:
    """Whether a span matches."""
    return (
        wanted.service in ("", span.service)
        and wanted.operation in ("", span.name)
        and (wanted.start_min_ns is None or span.start_ns >= wanted.start_min_ns)
        and (wanted.start_max_ns is None or span.start_ns <= wanted.start_max_ns)
        and (wanted.duration_min_ns is None or span.duration_ns >= wanted.duration_min_ns)
        and (not wanted.duration_max_ns or span.duration_ns <= wanted.duration_max_ns)
        and all(_has(span, name, value) for name, value in wanted.attributes.items())
    )


def _has(span: Seen, name: str, value: str) -> bool:
    if name == "error":
        return span.failed == (value == "true")
    if name == "span.kind":
        return KINDS[span.kind if 0 <= span.kind < len(KINDS) else 0] == value.lower()
    if name == "otel.status_code":
        return ("", "OK", "ERROR")[span.status if 0 <= span.status < 3 else 0] == value.upper()
    if name in ("otel.scope.name", "otel.scope.version"):
        return span.scope[name.rpartition(".")[2]] == value
    holders = (span.attributes, span.resource, span.scope, *(one.attributes for one in span.events))
    return any(name in holder and text_of(holder[name]) == value for holder in holders)


def text_of(value: Any) -> str:
    """A value as text, in the form in which searches write it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return value
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int | float):
        return format(value, "g") if isinstance(value, float) else str(value)
    return msgspec.json.encode(value, enc_hook=lambda one: one.hex()).decode()


def summary_of(trace: SeenTrace) -> Summary:
    """The summary of a trace."""
    root = trace.root
    services: dict[str, tuple[int, int]] = {}
    for span in trace.spans:
        count, errors = services.get(span.service, (0, 0))
        services[span.service] = (count + 1, errors + span.failed)
    return Summary(
        trace_id=trace.trace_id,
        root_service=root.service if root else "",
        root_operation=root.name if root else "",
        start_ns=trace.start_ns,
        end_ns=trace.end_ns,
        spans=len(trace.spans),
        errors=sum(span.failed for span in trace.spans),
        orphans=sum(bool(span.parent) and span.parent not in trace.by_id for span in trace.spans),
        services=dict(sorted(services.items())),
    )


def services(traces: Traces) -> list[str]:
    """All services that have a span, sorted."""
    resources = (ResourceSpans.FromString(data).resource for data in traces.store.resources())
    return sorted({service_of(attributes_of(resource.attributes)) for resource in resources})


def operations(traces: Traces, service: str, kind: str = "") -> list[tuple[str, str]]:
    """Names and kinds of the spans of a service in the newest traces; empty: of all services."""
    found = {
        (span.name[:LONGEST_WORD], KINDS[span.kind if 0 <= span.kind < len(KINDS) else 0])
        for trace in traces.looked_through(None, None)
        for span in trace.spans
        if service in ("", span.service)
    }
    return sorted(one for one in found if kind in ("", one[1]))


def dependencies(traces: Traces, start_ns: int | None, end_ns: int | None) -> list[tuple[str, str, int]]:
    """Calls between services: caller, callee and number of calls."""
    calls: Counter[tuple[str, str]] = Counter()
    for trace in traces.looked_through(start_ns, end_ns):
        for span in trace.spans:
            parent = trace.by_id.get(span.parent)
            if parent is not None and parent.service != span.service:
                calls[parent.service, span.service] += 1
    return [(parent, child, count) for (parent, child), count in sorted(calls.items())]
