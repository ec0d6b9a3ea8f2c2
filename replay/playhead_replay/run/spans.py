"""Spans in one shape, whether stored (OTLP bytes) or known only from their start (facts)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import SplitResult, urlsplit

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from playhead_core.facts import Fact
from playhead_core.otlp import attributes_of
from playhead_core.otlp.any_values import SharedPairs
from playhead_core.tape.span_starts import starts_among
from playhead_core.untrusted.spans import opened_rings
from playhead_genai.other_conventions import attributes_in_our_words
from playhead_semconv import attributes as a

KIND_INTERNAL, KIND_SERVER, KIND_CLIENT, KIND_CONSUMER = 1, 2, 3, 5
"""Span kinds, as in OTLP."""

SpanStatus: TypeAlias = Literal["unset", "ok", "error"]
_RAW_PACKAGE: Final = "playhead.raw"
_RawField: Final = descriptor_pb2.FieldDescriptorProto
_RAW_MESSAGES: Final = {
    "ResourceSpans": {
        "resource": (1, _RawField.TYPE_BYTES, _RawField.LABEL_OPTIONAL),
        "scope_spans": (2, "ScopeSpans", _RawField.LABEL_REPEATED),
    },
    "ScopeSpans": {"spans": (2, "Span", _RawField.LABEL_REPEATED)},
    "Span": {
        "trace_id": (1, _RawField.TYPE_BYTES, _RawField.LABEL_OPTIONAL),
        "span_id": (2, _RawField.TYPE_BYTES, _RawField.LABEL_OPTIONAL),
        "parent_span_id": (4, _RawField.TYPE_BYTES, _RawField.LABEL_OPTIONAL),
        "name": (5, _RawField.TYPE_STRING, _RawField.LABEL_OPTIONAL),
        "kind": (6, _RawField.TYPE_INT32, _RawField.LABEL_OPTIONAL),
        "start_time_unix_nano": (7, _RawField.TYPE_FIXED64, _RawField.LABEL_OPTIONAL),
        "end_time_unix_nano": (8, _RawField.TYPE_FIXED64, _RawField.LABEL_OPTIONAL),
        "attributes": (9, _RawField.TYPE_BYTES, _RawField.LABEL_REPEATED),
        "events": (11, _RawField.TYPE_BYTES, _RawField.LABEL_REPEATED),
        "links": (13, _RawField.TYPE_BYTES, _RawField.LABEL_REPEATED),
        "status": (15, _RawField.TYPE_BYTES, _RawField.LABEL_OPTIONAL),
    },
}
"""The messages of OTLP's ``trace.proto`` with nested messages as bytes, which they are on the wire."""
MOST_TEXTS = 10_000
"""Names and ids of parents that are remembered, so that equal ones are one object."""
_STATUS: tuple[SpanStatus, ...] = ("unset", "ok", "error")


@dataclass(frozen=True, slots=True)
class SpanEvent:
    """An event of a span, e.g. ``exception``."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


@dataclass(slots=True, eq=False)
class Span:
    """One span of a run, with its place in the tree."""

    trace_id: str
    """32 hex digits."""
    span_id: str
    """16 hex digits."""
    parent_id: str
    """16 hex digits; empty for a root."""
    name: str
    kind: int
    started_ns: int
    ended_ns: int | None
    """None: it has started and its end is not known."""
    attributes: dict[str, Any]
    status: SpanStatus = "unset"
    status_message: str = ""
    events: Sequence[SpanEvent] = ()
    resource: dict[str, Any] = field(default_factory=dict[str, Any])
    links: Sequence[str] = ()
    """Trace ids of linked spans, hex."""
    seq: int = -1
    """Number of its start on the tape; -1 if unknown."""
    instance: str = ""
    """Process instance, hex; empty if unknown."""
    children: list[Span] = field(default_factory=list["Span"])

    @property
    def pending(self) -> bool:
        """Whether it has started and not ended."""
        return self.ended_ns is None

    @property
    def duration_ns(self) -> int | None:
        """None while it is pending."""
        return None if self.ended_ns is None else self.ended_ns - self.started_ns

    @property
    def operation(self) -> str:
        """``gen_ai.operation.name``: ``chat``, ``execute_tool``, …; empty for other spans."""
        operation = self.attributes.get(a.GEN_AI_OPERATION_NAME)
        return operation if isinstance(operation, str) else ""

    @property
    def url(self) -> SplitResult:
        """``url.full`` split into its parts; all empty if it is not a URL."""
        try:
            return urlsplit(str(self.attributes.get(a.URL_FULL, "")))
        except ValueError:
            return urlsplit("")

    @property
    def failed(self) -> bool:
        """Whether its status is an error."""
        return self.status == "error"

    @property
    def error(self) -> str:
        """The error in one line; empty if there was none."""
        if not self.failed:
            return ""
        kind = str(self.attributes.get(a.ERROR_TYPE, ""))
        message = self.status_message.strip().splitlines()
        if not message:  # some frameworks only record the exception
            raised = next((one for one in reversed(self.events) if one.name == "exception"), None)
            if raised is not None:
                kind = kind or str(raised.attributes.get(a.EXCEPTION_TYPE, ""))
                message = str(raised.attributes.get(a.EXCEPTION_MESSAGE, "")).strip().splitlines()
        if message and kind and not message[0].startswith(kind):
            return f"{kind}: {message[0]}"
        return message[0] if message else kind or "error"

    def walk(self) -> Iterator[Span]:
        """This span and everything under it, depth first, in order of start."""
        waiting: list[Span] = [self]
        while waiting:
            span = waiting.pop()
            yield span
            waiting.extend(reversed(span.children))


def walked(roots: Sequence[Span]) -> list[Span]:
    """The spans of a forest, depth first, in order of start."""
    found: list[Span] = []
    waiting = list(reversed(roots))
    while waiting:
        span = waiting.pop()
        found.append(span)
        if span.children:
            waiting.extend(reversed(span.children))
    return found


class SpanReader:
    """Reads the spans of a run from OTLP `ResourceSpans` bytes.

    Equal attributes, names and resources of its spans are decoded once and are one object each: a run
    may have 50,000 spans.
    """

    def __init__(self) -> None:
        self._parse = _raw_type().FromString
        self._resources: dict[bytes, dict[str, Any]] = {}
        self._texts: dict[str, str] = {}
        """Texts that were seen before, one object each."""
        self._pairs = SharedPairs()

    def spans(self, otlp: bytes) -> Iterator[Span]:
        """The spans of one entry. `DecodeError` of protobuf."""
        message = self._parse(otlp)
        resource = self._resources.get(message.resource)
        if resource is None:
            resource = attributes_of(Resource.FromString(message.resource).attributes)
            self._resources[message.resource] = resource
        instance = str(resource.get(a.PLAYHEAD_INSTANCE, ""))
        recorded = a.PLAYHEAD_INSTANCE in resource
        shared, pair_of = self._texts.setdefault, self._pairs.__getitem__
        if len(self._texts) > MOST_TEXTS:
            self._texts.clear()
        for scope in message.scope_spans:
            for span in scope.spans:
                at = dict(map(pair_of, span.attributes))
                if not recorded and (translated := attributes_in_our_words(at)):
                    at = translated | at
                trace_id, parent_id, name = span.trace_id.hex(), span.parent_span_id.hex(), span.name
                status, said = _status_of(data) if (data := span.status) else ("unset", "")
                yield Span(
                    shared(trace_id, trace_id),
                    span.span_id.hex(),
                    shared(parent_id, parent_id),
                    shared(name, name),
                    span.kind,
                    span.start_time_unix_nano,
                    span.end_time_unix_nano,
                    at,
                    status,
                    said,
                    tuple(map(_event_of, events)) if (events := span.events) else (),
                    resource,
                    tuple(map(_trace_of_link, links)) if (links := span.links) else (),
                    instance=instance,
                )


def _event_of(data: bytes) -> SpanEvent:
    event = trace_pb2.Span.Event.FromString(data)
    return SpanEvent(event.name, event.time_unix_nano, attributes_of(event.attributes))


def _trace_of_link(data: bytes) -> str:
    return trace_pb2.Span.Link.FromString(data).trace_id.hex()


def _status_of(data: bytes) -> tuple[SpanStatus, str]:
    """The status and its message."""
    status = Status.FromString(data)
    return _STATUS[status.code] if 0 <= status.code < len(_STATUS) else "unset", status.message


def spans_of(otlp: bytes) -> Iterator[Span]:
    """The spans of OTLP `ResourceSpans` bytes."""
    return SpanReader().spans(otlp)


@cache
def _raw_type() -> Any:
    """OTLP `ResourceSpans` with attributes, events and links as bytes, as in `_RAW_MESSAGES`.

    An attribute that was seen before is looked up and not decoded again.
    """
    file = descriptor_pb2.FileDescriptorProto(
        name="playhead/raw_spans.proto", package=_RAW_PACKAGE, syntax="proto3"
    )
    for name, fields in _RAW_MESSAGES.items():
        message = file.message_type.add(name=name)
        for one, (number, kind, label) in fields.items():
            added = message.field.add(name=one, number=number, label=label)
            if isinstance(kind, str):
                added.type, added.type_name = _RawField.TYPE_MESSAGE, f".{_RAW_PACKAGE}.{kind}"
            else:
                added.type = kind
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_RAW_PACKAGE}.ResourceSpans"))


def started_span(fact: Fact) -> Span:
    """The pending span that a span-start fact announces."""
    at = dict(fact.attributes)
    name = str(at.pop(a.PLAYHEAD_SPAN_NAME, ""))
    kind = int(at.pop(a.PLAYHEAD_SPAN_KIND, KIND_INTERNAL))
    parent = str(at.pop(a.PLAYHEAD_SPAN_PARENT, ""))
    return Span(
        trace_id=fact.trace_id.hex(),
        span_id=fact.span_id.hex(),
        parent_id=parent,
        name=name,
        kind=kind,
        started_ns=fact.time_ns,
        ended_ns=None,
        attributes=at,
        seq=fact.seq,
        instance=fact.instance.hex(),
    )


def grow(finished: Iterable[Span], facts: Iterable[Fact]) -> list[Span]:
    """The roots of the forest of finished spans and span-start facts, children in order of start.

    A finished span replaces the fact of its start, and takes over its number on the tape. A span with an
    unknown parent is a root; in a ring of spans, the one that started first is.
    """
    known: dict[str, Span] = {}
    for fact in starts_among(facts):
        if fact.span_id:
            known.setdefault(fact.span_id.hex(), started_span(fact))
    for span in finished:
        start = known.get(span.span_id)
        if start is not None:
            span.seq, span.instance = start.seq, start.instance
        known[span.span_id] = span
    in_order = sorted(known.values(), key=lambda span: (span.started_ns, span.seq, span.span_id))
    opened = opened_rings({span.span_id: span.parent_id for span in in_order})
    roots: list[Span] = []
    for span in in_order:
        parent = known.get(span.parent_id)
        (roots if parent is None or span.span_id in opened else parent.children).append(span)
    return roots
