"""Search in Tempo's format: traces with matching spans, and names and values of tags."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from playhead_receiver.api.compatibility.reading import Traces
from playhead_receiver.api.compatibility.spans import Seen, SeenTrace
from playhead_receiver.api.tempo.traceql import Field, Matcher, SpanQuery, Spanset
from playhead_receiver.api.tempo.traceql.needs import field_needs, needs_of
from playhead_receiver.api.tempo.traceql.tree import Select
from playhead_receiver.api.tempo.traceql.values import Typed, Values
from playhead_receiver.api.tempo.traceql.words import INTRINSICS, KINDS, SCOPED, SCOPES, STATUSES
from playhead_receiver.storage.values.run_summaries import Need
from playhead_semconv import attributes as a

LIMIT = 20
SPANS_OF_SET = 3
MOST = 5000
"""Largest number of traces, tags or values in one answer."""

NAMES = {
    kind: {number: word for word, number in words.items()}
    for kind, words in (("status", STATUSES), ("kind", KINDS))
}


class TimeRange(msgspec.Struct, frozen=True):
    """A time range; None: unbounded."""

    start_ns: int | None = None
    end_ns: int | None = None


def search(
    traces: Traces, query: SpanQuery, window: TimeRange, limit: int = LIMIT, spss: int = SPANS_OF_SET
) -> dict[str, Any]:
    """Tempo's SearchResponse, newest traces first."""
    found: list[dict[str, Any]] = []
    inspected = 0
    for trace in matching(traces, query, window):
        inspected += 1
        sets = Matcher(trace).find(query)
        if sets:
            found.append(_trace(trace, sets, query, spss))
            if len(found) >= limit:
                break
    return {"traces": found, "metrics": {"inspectedTraces": inspected}}


def matching(traces: Traces, query: SpanQuery, window: TimeRange) -> Iterator[SeenTrace]:
    """The traces that a query has to search, including the values that it refers to."""
    names = {field.name for field in query.fields() if field.scope in ("", "span")}
    return traces.looked_through(window.start_ns, window.end_ns, names, list(needs_of(query)))


def tags(
    traces: Traces, window: TimeRange, scope: str = "", query: SpanQuery | None = None
) -> dict[str, list[str]]:
    """Names of attributes by scope, taken from the spans that match a query; sorted."""
    found: dict[str, set[str]] = {one: set() for one in (*SCOPES, "intrinsic")}
    found["intrinsic"] = {*INTRINSICS - {"parent"}, *SCOPED}
    for _, spans in _found(traces, window, query):
        for span in spans:
            found["span"] |= span.attributes.keys() | span.left_out
            found["resource"] |= span.resource.keys()
            found["instrumentation"] |= span.scope.keys() - {"name", "version"}
            for event in span.events:
                found["event"] |= event.attributes.keys()
            for link in span.links:
                found["link"] |= link.attributes.keys()
    if a.GEN_AI_USAGE_INPUT_TOKENS in found["span"]:
        found["span"].add(a.PLAYHEAD_COST_USD)
    wanted = {one: names for one, names in found.items() if scope in ("", "none", one) and names}
    return {one: sorted(names)[:MOST] for one, names in wanted.items()}


def tag_values(
    traces: Traces, field: Field, window: TimeRange, query: SpanQuery | None = None, limit: int = MOST
) -> list[tuple[str, str]]:
    """Type and text of the values of a field in the spans that match a query; sorted."""
    words = NAMES.get(field.name) if field.scope == "intrinsic" else None
    if words is not None:
        return [("keyword", word) for word in sorted(words.values())]
    found: set[tuple[str, str]] = set()
    for matcher, spans in _found(traces, window, query, field):
        for span in spans:
            found |= {tag_value(one) for one in matcher.values.of(field, span)}
        if len(found) >= limit:
            break
    return sorted(found)[:limit]


def _found(
    traces: Traces, window: TimeRange, query: SpanQuery | None, field: Field | None = None
) -> Iterator[tuple[Matcher, Sequence[Seen]]]:
    """The spans that match a query (None: all); ``field``: another field whose values are needed."""
    fields = [*(query.fields() if query else ()), *([field] if field else ())]
    needs = (field_needs(field) if field else set[Need]()) | (needs_of(query) if query else set[Need]())
    names = {one.name for one in fields}
    for trace in traces.looked_through(window.start_ns, window.end_ns, names, list(needs)):
        matcher = Matcher(trace)
        yield matcher, trace.spans if query is None else matcher.spans(query.spans)


def tag_value(typed: Typed) -> tuple[str, str]:
    """Type and text of a value."""
    kind, value = typed
    if kind in NAMES:
        return "keyword", NAMES[kind].get(value, str(value))
    if kind == "number":
        return ("int" if isinstance(value, int) else "float"), str(value)
    if kind == "duration":
        return "duration", f"{value}ns"
    return kind, str(value).lower() if kind == "bool" else str(value)


def _trace(trace: SeenTrace, sets: list[Spanset], query: SpanQuery, spss: int) -> dict[str, Any]:
    selected = [field for one in query.stages if isinstance(one, Select) for field in one.fields]
    context = {field.text: field for field in (*query.fields(), *selected)}
    values = Values(trace)
    shown = [_spanset(one, values, context, spss) for one in sets]
    services: dict[str, dict[str, int]] = {}
    for span in trace.spans:
        stats = services.setdefault(span.service, {"spanCount": 0})
        stats["spanCount"] += 1
        if span.failed:
            stats["errorCount"] = stats.get("errorCount", 0) + 1
    return {
        "traceID": trace.trace_id.hex(),
        "rootServiceName": trace.root.service if trace.root else "<root span not yet received>",
        "rootTraceName": trace.root.name if trace.root else "",
        "startTimeUnixNano": str(trace.start_ns),
        "durationMs": trace.duration_ns // 10**6,
        "spanSet": shown[0],
        "spanSets": shown,
        "serviceStats": services,
    }


def _spanset(one: Spanset, values: Values, context: dict[str, Field], spss: int) -> dict[str, Any]:
    spans = one.spans[:spss] if spss else one.spans
    said: dict[str, Any] = {
        "spans": [_span(span, values, context) for span in spans],
        "matched": len(one.spans),
    }
    if one.group is not None:
        name, value = one.group
        said["attributes"] = [{"key": name, "value": any_value(value)}]
    return said


_OWN = frozenset(("name", "duration", "spanID"))


def _span(span: Seen, values: Values, context: dict[str, Field]) -> dict[str, Any]:
    attributes: list[dict[str, Any]] = []
    for text, field in context.items():
        if field.scope == "intrinsic" and field.name in _OWN:
            continue
        for typed in values.of(field, span)[:1]:
            shown = NAMES[typed[0]].get(typed[1], "") if typed[0] in NAMES else typed[1]
            attributes.append({"key": _key(text, field), "value": any_value(shown)})
    return {
        "spanID": span.span_id.hex(),
        "name": span.name,
        "startTimeUnixNano": str(span.start_ns),
        "durationNanos": str(span.duration_ns),
        "attributes": attributes,
    }


def _key(text: str, field: Field) -> str:
    """Name of an attribute without its scope, as in a trace."""
    return text if field.scope == "intrinsic" else field.name


def any_value(value: Any) -> dict[str, Any]:
    """A value as an OTLP AnyValue in JSON."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    return {"stringValue": "nil" if value is None else str(value)}
