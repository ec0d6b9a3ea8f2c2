"""The values of a TraceQL field for a span: none, one, or several (events, links, arrays)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any, cast

from playhead_core.errors import UsageError
from playhead_receiver.api.compatibility.spans import Seen, SeenTrace
from playhead_receiver.api.tempo.traceql.tree import Field, Kind

Typed = tuple[Kind, Any]
"""The kind of a value, which decides what it may be compared with, and the value."""


class Nested:
    """Nested-set numbers of a trace: a span's left and right enclose those of all its descendants."""

    def __init__(self, trace: SeenTrace) -> None:
        self._trace = trace

    @cached_property
    def numbers(self) -> dict[bytes, tuple[int, int]]:
        """Left and right by span id; spans in a cycle have none."""
        left: dict[bytes, int] = {}
        found: dict[bytes, tuple[int, int]] = {}
        number = 0
        roots = [span for span in self._trace.spans if span.parent not in self._trace.by_id]
        stack = [(span, False) for span in reversed(roots)]
        while stack:
            span, done = stack.pop()
            number += 1
            if done:
                found[span.span_id] = left[span.span_id], number
                continue
            left[span.span_id] = number
            stack.append((span, True))
            below = self._trace.children.get(span.span_id, [])
            stack += [(child, False) for child in reversed(below) if child.span_id not in left]
        return found

    def parent_of(self, span: Seen) -> int:
        """The parent's left number; -1 for a root."""
        return self.numbers.get(span.parent, (-1, -1))[0]


class Values:
    """Field values of the spans of a trace."""

    def __init__(self, trace: SeenTrace) -> None:
        self.trace = trace
        self.nested = Nested(trace)

    def of(self, field: Field, span: Seen) -> list[Typed]:
        """All values of ``field`` for a span."""
        if field.of_parent:
            parent = self.trace.by_id.get(span.parent)
            if parent is None:
                return []
            span = parent
        if field.scope == "intrinsic":
            return [one for one in self._intrinsic(field, span) if one[1] is not None]
        name = field.name
        if field.scope == "event":
            found = [event.attributes[name] for event in span.events if name in event.attributes]
        elif field.scope == "link":
            found = [link.attributes[name] for link in span.links if name in link.attributes]
        else:
            holders = {
                "span": [span.attributes],
                "resource": [span.resource],
                "instrumentation": [span.scope],
                "": [span.attributes, span.resource],
            }[field.scope]
            found = [holder[name] for holder in holders if name in holder][:1]
        return [one for value in found for one in _typed(value)]

    def _intrinsic(self, field: Field, span: Seen) -> Iterable[Typed]:
        made = _INTRINSICS.get(field.name)
        if made is not None:
            return [made(span)]
        trace = self.trace
        match field.name:
            case "traceID":
                return [("string", trace.trace_id.hex())]
            case "traceDuration":
                return [("duration", trace.duration_ns)]
            case "rootName":
                return [("string", trace.root.name if trace.root else None)]
            case "rootServiceName":
                return [("string", trace.root.service if trace.root else None)]
            case "childCount":
                return [("number", len(trace.children.get(span.span_id, ())))]
            case "nestedSetParent":
                return [("number", self.nested.parent_of(span))]
            case "nestedSetLeft" | "nestedSetRight":
                pair = self.nested.numbers.get(span.span_id, (None, None))
                return [("number", pair[field.name == "nestedSetRight"])]
            case "parent":
                return [("string", span.parent.hex() or None)]
            case "eventName":
                return [("string", event.name) for event in span.events]
            case "eventTimeSinceStart":
                return [("duration", event.time_ns - span.start_ns) for event in span.events]
            case "linkSpanID":
                return [("string", link.span_id.hex()) for link in span.links]
            case "linkTraceID":
                return [("string", link.trace_id.hex()) for link in span.links]
            case _:
                raise UsageError(f"{field.text} is not supported")


_INTRINSICS: dict[str, Callable[[Seen], Typed]] = {
    "name": lambda span: ("string", span.name),
    "kind": lambda span: ("kind", span.kind),
    "status": lambda span: ("status", span.status),
    "statusMessage": lambda span: ("string", span.message),
    "duration": lambda span: ("duration", span.duration_ns),
    "spanID": lambda span: ("string", span.span_id.hex()),
    "parentID": lambda span: ("string", span.parent.hex()),
    "instrumentationName": lambda span: ("string", span.scope["name"]),
    "instrumentationVersion": lambda span: ("string", span.scope["version"]),
}


def _typed(value: Any) -> list[Typed]:
    if isinstance(value, bool):
        return [("bool", value)]
    if isinstance(value, int | float):
        return [("number", value)]
    if isinstance(value, list):
        return [typed for one in cast("list[Any]", value) for typed in _typed(one)]
    return [("string", value)] if isinstance(value, str) else []
