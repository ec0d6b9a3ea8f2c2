"""Collects the spans of a file. Ids and bytes follow from the file, so importing twice adds nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, cast

from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.facts import Fact, digest_of
from playhead_core.otlp import set_attributes
from playhead_core.untrusted.shown_text import without_halves
from playhead_genai.other_tools.values import json_text
from playhead_semconv import attributes as a

INTERNAL, SERVER, CLIENT = 1, 2, 3
"""Kinds of spans in OTLP."""
_HEX = re.compile(r"[0-9a-fA-F]+\Z")


def trace_id_of(id: str) -> bytes:
    """Return a trace id: a UUID or 32 hexadecimal digits as they are, anything else by its digest."""
    bare = id.replace("-", "")
    return bytes.fromhex(bare) if len(bare) == 32 and _HEX.match(bare) else digest_of(id.encode())[:16]


def span_id_of(trace: bytes, id: str) -> bytes:
    """Return a span id: 16 hexadecimal digits as they are, anything else by its digest."""
    if len(id) == 16 and _HEX.match(id) and any(bytes.fromhex(id)):
        return bytes.fromhex(id)
    return digest_of(trace + id.encode())[:8]


class ImportedEvent(NamedTuple):
    """An event of a span."""

    name: str
    time_ns: int
    attributes: Mapping[str, Any] = {}


@dataclass(slots=True)
class Converted:
    """What a file became."""

    tool: str
    """Name of the format; the scope of the spans."""
    spans: list[bytes] = field(default_factory=list[bytes])
    """OTLP `ResourceSpans` with one span each."""
    facts: list[Fact] = field(default_factory=list[Fact])
    """Facts of a tape, for HTTP traffic."""
    trace_ids: set[str] = field(default_factory=set[str])
    problems: Counter[str] = field(default_factory=Counter[str])
    """What was not understood, and how often."""

    def not_understood(self, why: str) -> None:
        """Count something that was left out."""
        self.problems[why] += 1

    def span(
        self,
        *,
        trace: str,
        id: str,
        name: str,
        started_ns: int,
        ended_ns: int,
        attributes: Mapping[str, Any],
        parent: str = "",
        kind: int = INTERNAL,
        error: str | None = None,
        events: Iterable[ImportedEvent] = (),
        service: str = "",
        resource: Mapping[str, Any] | None = None,
    ) -> None:
        """Add a span. ``error``: message of a failure; None: it did not fail."""
        if not trace or not id:
            return self.not_understood("spans without an id")
        if not started_ns:
            return self.not_understood("spans without a start")
        trace_id = trace_id_of(trace)
        made = ResourceSpans()
        about = {a.SERVICE_NAME: service or self.tool, **(resource or {})}
        set_attributes(made.resource.attributes, _plain(about))
        scope = made.scope_spans.add()
        scope.scope.name = f"playhead.import.{self.tool}"
        span = scope.spans.add(kind=cast("Any", kind), name=without_halves(name or "span"))
        span.trace_id, span.span_id = trace_id, span_id_of(trace_id, id)
        if parent and parent != id:
            span.parent_span_id = span_id_of(trace_id, parent)
        span.start_time_unix_nano, span.end_time_unix_nano = started_ns, max(ended_ns, started_ns)
        set_attributes(span.attributes, _plain(attributes))
        for event in events:
            kept = span.events.add(name=without_halves(event.name), time_unix_nano=event.time_ns)
            set_attributes(kept.attributes, _plain(event.attributes))
        if error is not None:
            span.status.code, span.status.message = cast("Any", 2), without_halves(error)
        self.spans.append(made.SerializeToString())
        self.trace_ids.add(trace_id.hex())


def _plain(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Attributes as OTLP may have them; objects and mixed lists become JSON text."""
    return {
        without_halves(name): without_halves(kept) if isinstance(kept, str) else kept
        for name, value in attributes.items()
        if value is not None and value != "" and (kept := _value(value)) is not None
    }


def _value(value: Any) -> Any:
    if isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, list | tuple):
        items = cast("Sequence[Any]", value)
        if all(isinstance(one, str) for one in items):
            return [without_halves(one) for one in items]
        if all(isinstance(one, int | float) and not isinstance(one, bool) for one in items):
            return list(items)
    return json_text(value)


def flat(value: Any, prefix: str = "") -> dict[str, Any]:
    """Return nested objects as attributes with dotted names, and lists of objects with their indexes.

    >>> flat({"llm": {"messages": [{"role": "user"}], "n": [1, 2]}})
    {'llm.messages.0.role': 'user', 'llm.n': [1, 2]}
    """
    found: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [(prefix, value)]
    while waiting:
        name, value = waiting.pop()
        start = f"{name}." if name else ""
        if isinstance(value, dict):
            named = cast("dict[str, Any]", value)
            waiting += [(f"{start}{key}", one) for key, one in reversed(named.items())]
        elif isinstance(value, list) and any(isinstance(one, dict) for one in cast("list[Any]", value)):
            items = cast("list[Any]", value)
            waiting += [(f"{start}{at}", one) for at, one in reversed(list(enumerate(items)))]
        elif value is not None:
            found[name] = value
    return found
