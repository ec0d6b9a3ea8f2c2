"""Traces in Jaeger's JSON, as its page downloads them and its query API returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from playhead_genai.other_tools.values import object_in, objects_in
from playhead_receiver.importers.documents import items_of, text
from playhead_receiver.importers.spans import CLIENT, INTERNAL, SERVER, Converted, ImportedEvent

_KINDS = {"client": CLIENT, "server": SERVER, "producer": 4, "consumer": 5}
_STATUS = ("otel.status_code", "otel.status_description", "span.kind")
"""Tags that OTLP has as fields."""


def is_jaeger(item: dict[str, Any]) -> bool:
    """Whether an object is a trace of Jaeger."""
    return "traceID" in item and isinstance(item.get("spans"), list)


def convert(document: Any, found: Converted) -> None:
    """Add the traces of a document to ``found``."""
    for trace in items_of(document):
        processes = object_in(trace, "processes")
        for span in objects_in(trace, "spans"):
            _span(span, processes, found)


def _span(span: dict[str, Any], processes: dict[str, Any], found: Converted) -> None:
    process = object_in(processes, text(span, "processID")) or object_in(span, "process")
    tags = _tags(span, "tags")
    trace = _trace_of(span)
    started = _us(span.get("startTime"))
    links = objects_in(span, "references")
    parents = [one for one in links if one.get("refType") == "CHILD_OF" and _trace_of(one) == trace]
    parent = text(parents[0], "spanID") if parents else text(span, "parentSpanID")
    failed = str(tags.get("otel.status_code", "")).upper() == "ERROR" or tags.get("error") is True
    events: list[ImportedEvent] = []
    for log in objects_in(span, "logs"):
        fields = _tags(log, "fields")
        name = str(fields.pop("event", "") or fields.pop("message", "") or "log")
        events.append(ImportedEvent(name, _us(log.get("timestamp")), fields))
    found.span(
        trace=trace,
        id=text(span, "spanID").zfill(16),
        parent=parent.zfill(16) if parent else "",
        name=text(span, "operationName"),
        started_ns=started,
        ended_ns=started + _us(span.get("duration")),
        attributes={name: value for name, value in tags.items() if name not in _STATUS},
        kind=_KINDS.get(str(tags.get("span.kind")), INTERNAL),
        error=str(tags.get("otel.status_description", "")) if failed else None,
        events=events,
        service=text(process, "serviceName") or "jaeger",
        resource=_tags(process, "tags"),
    )


def _trace_of(holder: dict[str, Any]) -> str:
    return text(holder, "traceID").zfill(32)


def _tags(holder: dict[str, Any], name: str) -> dict[str, Any]:
    return {text(one, "key"): _typed(one) for one in objects_in(holder, name) if text(one, "key")}


def _typed(tag: Mapping[str, Any]) -> Any:
    """The value of a tag; an int64 may be there as text."""
    value = tag.get("value")
    if (
        tag.get("type") == "int64"
        and isinstance(value, str)
        and value.lstrip("-").isdigit()
        and len(value) < 20
    ):
        return int(value)
    return value


def _us(value: Any) -> int:
    """A count of microseconds in nanoseconds."""
    is_count = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1 << 53
    return int(value * 1000) if is_count else 0
