"""The spans of a trace as the compatibility APIs search them: values without payloads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, cast

import msgspec
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_core.otlp import attributes_of
from playhead_genai.other_conventions import attributes_in_our_words, says_messages
from playhead_receiver.storage.spans.span_view import LONGEST_WORD
from playhead_semconv import attributes as a

LARGE_BYTES = 1024
"""Larger values are read only if a query refers to them."""

ERROR = 2
"""OTLP's status code."""

NO_SERVICE = "unknown_service"


class Event(msgspec.Struct, frozen=True):
    """An event of a span."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


class LinkedSpan(msgspec.Struct, frozen=True):
    """A link of a span."""

    trace_id: bytes
    span_id: bytes
    attributes: dict[str, Any]


class Seen(msgspec.Struct, frozen=True):
    """A span."""

    span_id: bytes
    parent: bytes
    """Parent span id; empty for a root."""
    name: str
    kind: int
    start_ns: int
    end_ns: int
    """For a span that has not ended, the last sign of life of its trace."""
    status: int
    message: str
    attributes: dict[str, Any]
    resource: dict[str, Any]
    scope: dict[str, Any]
    """Attributes of the scope, with its ``name`` and ``version``."""
    events: list[Event]
    links: list[LinkedSpan]
    left_out: frozenset[str]
    """Names of attributes that are missing here because they are too large or are derived."""

    @property
    def service(self) -> str:
        """``service.name``."""
        return service_of(self.resource)

    @property
    def failed(self) -> bool:
        """Ended with status ERROR."""
        return self.status == ERROR

    @property
    def duration_ns(self) -> int:
        """0 if it ends before it begins."""
        return max(self.end_ns - self.start_ns, 0)


def service_of(resource: Mapping[str, Any]) -> str:
    """The name of the service in the attributes of a resource, at most `LONGEST_WORD` characters."""
    return str(resource.get(a.SERVICE_NAME) or NO_SERVICE)[:LONGEST_WORD]


class SeenTrace:
    """The spans of a trace, in order of their start."""

    def __init__(self, trace_id: bytes, spans: Iterable[Seen]) -> None:
        self.trace_id = trace_id
        self.spans = sorted(spans, key=lambda span: (span.start_ns, span.span_id))

    @cached_property
    def by_id(self) -> dict[bytes, Seen]:
        """By span id."""
        return {span.span_id: span for span in self.spans}

    @cached_property
    def root(self) -> Seen | None:
        """The first span without a parent; None if it has not arrived."""
        return next((span for span in self.spans if not span.parent), None)

    @cached_property
    def children(self) -> dict[bytes, list[Seen]]:
        """Spans by the id of their parent."""
        found: dict[bytes, list[Seen]] = {}
        for span in self.spans:
            if span.parent:
                found.setdefault(span.parent, []).append(span)
        return found

    @property
    def start_ns(self) -> int:
        """The first start."""
        return self.spans[0].start_ns

    @cached_property
    def end_ns(self) -> int:
        """The last end."""
        return max(max(span.start_ns, span.end_ns) for span in self.spans)

    @property
    def duration_ns(self) -> int:
        """From the first start to the last end."""
        return self.end_ns - self.start_ns

    @cached_property
    def left_out(self) -> frozenset[str]:
        """Names of attributes that are left out of any span."""
        return frozenset[str]().union(*(span.left_out for span in self.spans))


def seen_of(envelope: ResourceSpans, *, whole: bool = False) -> Seen:
    """The single span of an envelope; ``whole``: including its large values.

    Attributes of other dialects are also available under the name of the semantic conventions.
    """
    scoped = envelope.scope_spans[0]
    span = scoped.spans[0]
    resource = attributes_of(envelope.resource.attributes)
    left_out: set[str] = set()
    if whole:
        found = attributes_of(span.attributes)
    else:
        kept = [pair for pair in span.attributes if pair.ByteSize() <= LARGE_BYTES]
        found = attributes_of(kept)
        left_out = {pair.key for pair in span.attributes} - found.keys()
        derived: Any = found.get(a.PLAYHEAD_DERIVED)
        if isinstance(derived, list):
            named = {name for name in cast("list[Any]", derived) if isinstance(name, str)}
            left_out |= named - found.keys()
    if a.PLAYHEAD_INSTANCE not in resource:  # otherwise our own spans describe its calls
        if says_messages(left_out):
            left_out |= {a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES}
        for name, value in attributes_in_our_words(found).items():
            if isinstance(value, list):  # messages; elsewhere they are text
                value = msgspec.json.encode(value).decode()
            if not whole and isinstance(value, str) and len(value) > LARGE_BYTES:
                left_out.add(name)
            if name not in left_out:
                found[name] = value
    return Seen(
        span_id=span.span_id,
        parent=span.parent_span_id,
        name=span.name,
        kind=span.kind,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        status=span.status.code,
        message=span.status.message,
        attributes=found,
        resource=resource,
        scope=attributes_of(scoped.scope.attributes)
        | {"name": scoped.scope.name, "version": scoped.scope.version},
        events=[
            Event(event.name, event.time_unix_nano, attributes_of(event.attributes))
            for event in span.events
        ],
        links=[
            LinkedSpan(link.trace_id, link.span_id, attributes_of(link.attributes))
            for link in span.links
        ],
        left_out=frozenset(left_out),
    )
