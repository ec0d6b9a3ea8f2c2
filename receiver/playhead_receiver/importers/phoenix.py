"""Spans of Phoenix: as its API returns them, or its data frame as JSON (records or columns)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

from playhead_genai.other_tools.values import object_in, objects_in
from playhead_receiver.importers.documents import items_of, ns_of, text
from playhead_receiver.importers.spans import CLIENT, INTERNAL, Converted, ImportedEvent, flat

_PREFIX = "attributes."
_SPAN_ID, _TRACE_ID = "context.span_id", "context.trace_id"


def is_phoenix(item: dict[str, Any]) -> bool:
    """Whether an object is a span of Phoenix, or a data frame of spans by column."""
    around = item.get("context")
    nested = isinstance(around, dict) and "span_id" in around and "trace_id" in around
    return (nested and "start_time" in item) or _TRACE_ID in item


def convert(document: Any, found: Converted) -> None:
    """Add the spans of a document to ``found``."""
    for item in items_of(document):
        for span in _rows(item):
            if is_phoenix(span):
                _span(span, found)
            else:
                found.not_understood("objects that are no spans")


def _rows(item: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The spans of a data frame by column, ``{column: {row: value}}``; any other object as it is."""
    column = item.get(_TRACE_ID)
    if not isinstance(column, dict):
        yield item
        return
    columns = {name: cast("dict[str, Any]", one) for name, one in item.items() if isinstance(one, dict)}
    for row in cast("dict[str, Any]", column):
        cells = {name: values.get(row) for name, values in columns.items()}
        yield {**cells, _SPAN_ID: cells.get(_SPAN_ID) or row}


def _span(item: dict[str, Any], found: Converted) -> None:
    around = object_in(item, "context")
    attributes = flat(object_in(item, "attributes"))
    attributes |= flat(
        {name[len(_PREFIX) :]: value for name, value in item.items() if name.startswith(_PREFIX)}
    )
    kind = text(item, "span_kind")
    if kind and kind != "UNKNOWN":
        attributes.setdefault("openinference.span.kind", kind)
    started = ns_of(item.get("start_time"))
    events = [
        ImportedEvent(text(one, "name"), ns_of(one.get("timestamp")), flat(object_in(one, "attributes")))
        for one in objects_in(item, "events")
    ]
    failed = text(item, "status_code").upper() == "ERROR"
    found.span(
        trace=text(around, "trace_id") or text(item, _TRACE_ID),
        id=text(around, "span_id") or text(item, _SPAN_ID),
        parent=text(item, "parent_id"),
        name=text(item, "name"),
        started_ns=started,
        ended_ns=ns_of(item.get("end_time")) or started,
        attributes=attributes,
        kind=CLIENT if kind in ("LLM", "EMBEDDING") else INTERNAL,
        error=text(item, "status_message") if failed else None,
        events=events,
        service=text(attributes, "openinference.project.name") or "phoenix",
    )
