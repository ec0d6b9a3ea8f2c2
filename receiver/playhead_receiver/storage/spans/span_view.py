"""Reads OTLP spans without a full decode.

The messages here describe the same bytes as OTLP's, with different types. Resources, scopes and spans
of a request stay bytes, so that one bad span does not spoil its request, and a good one is kept byte
for byte. A span's attributes are a map, so that a few can be looked up without a loop over all of them
in Python.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import Any

import msgspec
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1 import trace_pb2

from playhead_core.errors import MalformedOtlp
from playhead_core.otlp import attributes_of, value_of
from playhead_core.otlp_bytes import field, varint
from playhead_core.reports import NAMES, words_in
from playhead_core.untrusted.spans import MOST
from playhead_genai.messages import tools_called
from playhead_genai.other_conventions import counts_in_our_words, in_our_words
from playhead_genai.run_fields import FIELD_OF, values_in
from playhead_genai.steps import CALLS, FRAMES, counted_key
from playhead_genai.tool_reports import sources_in
from playhead_receiver.storage.values.span_labels import Label, Usage
from playhead_semconv import attributes as a
from playhead_semconv.values import GenAiOperationName as Operation

STEPS = frozenset(
    value for name, value in vars(Operation).items() if name.isupper() and value not in FRAMES
)
"""Known operations that count as steps of a run: logical calls and tool executions."""

PARENT_IS_REMOTE = 0x300
"""The two bits of a span's flags that together say that its parent is in another process."""
PARENT_IS_LOCAL = 0x100
"""These two bits if the parent is known to be in the same process. Older SDKs set neither."""

SERVED = (trace_pb2.Span.SPAN_KIND_SERVER, trace_pb2.Span.SPAN_KIND_CONSUMER)
"""Kinds of spans whose parents are usually in another process."""

LONGEST_WORD = 600
"""Most characters of a name in a list: of an agent, a model, a span. The span itself has all of it."""

MOST_CALLED, LONGEST_NAME = 64, 200
"""Most tools of one answer that are listed, and most characters of their names."""

MOST_VALUES = 64
"""Most values of one attribute, such as tags, by which a run is found."""

UNNAMED_ERROR = "_OTHER"
"""The error type of a failed span that names none."""

_Field = descriptor_pb2.FieldDescriptorProto
_TYPES = {
    "bytes": _Field.TYPE_BYTES,
    "string": _Field.TYPE_STRING,
    "int32": _Field.TYPE_INT32,
    "uint32": _Field.TYPE_UINT32,
    "fixed32": _Field.TYPE_FIXED32,
    "fixed64": _Field.TYPE_FIXED64,
}
_MESSAGES: dict[str, list[tuple[str, int, str]]] = {
    "Envelope": [("entries", 1, "*.playhead.view.Entry")],
    "Entry": [
        ("resource", 1, "bytes"),
        ("scopes", 2, "*.playhead.view.Scoped"),
        ("schema_url", 3, "string"),
        ("libraries", 1000, "*.playhead.view.Scoped"),  # scopes, in OTLP before 0.16
    ],
    "Scoped": [("scope", 1, "bytes"), ("items", 2, "*bytes"), ("schema_url", 3, "string")],
    "Span": [
        ("trace_id", 1, "bytes"),
        ("span_id", 2, "bytes"),
        ("trace_state", 3, "string"),
        ("parent_span_id", 4, "bytes"),
        ("name", 5, "string"),
        ("kind", 6, "int32"),
        ("start_time_unix_nano", 7, "fixed64"),
        ("end_time_unix_nano", 8, "fixed64"),
        ("attributes", 9, "*.playhead.view.Span.AttributesEntry"),
        ("dropped_attributes_count", 10, "uint32"),
        ("events", 11, "*.opentelemetry.proto.trace.v1.Span.Event"),
        ("dropped_events_count", 12, "uint32"),
        ("links", 13, "*.opentelemetry.proto.trace.v1.Span.Link"),
        ("dropped_links_count", 14, "uint32"),
        ("status", 15, ".opentelemetry.proto.trace.v1.Status"),
        ("flags", 16, "fixed32"),
    ],
    "RawSpan": [
        ("name", 5, "string"),
        ("attributes", 9, "*bytes"),
        ("events", 11, "*.opentelemetry.proto.trace.v1.Span.Event"),
        ("links", 13, "*.opentelemetry.proto.trace.v1.Span.Link"),
        ("status", 15, ".opentelemetry.proto.trace.v1.Status"),
    ],
}


def _describe() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(
        name="playhead/receiver/view.proto", package="playhead.view", syntax="proto3"
    )
    file.dependency.extend((AnyValue.DESCRIPTOR.file.name, trace_pb2.DESCRIPTOR.name))
    for name, members in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for member, number, kind in members:
            plain = kind.lstrip("*")
            label = _Field.LABEL_REPEATED if kind != plain else _Field.LABEL_OPTIONAL
            added = message.field.add(name=member, number=number, label=label)
            if plain.startswith("."):
                added.type, added.type_name = _Field.TYPE_MESSAGE, plain
            else:
                added.type = _TYPES[plain]
        if name == "Span":
            entry = message.nested_type.add(name="AttributesEntry")
            entry.options.map_entry = True
            entry.field.add(name="key", number=1, type=_Field.TYPE_STRING, label=_Field.LABEL_OPTIONAL)
            entry.field.add(
                name="value",
                number=2,
                type=_Field.TYPE_MESSAGE,
                type_name=f".{AnyValue.DESCRIPTOR.full_name}",
                label=_Field.LABEL_OPTIONAL,
            )
    pool = descriptor_pool.Default()
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"playhead.view.{name}"))
        for name in _MESSAGES
    }


_CLASSES = _describe()
Envelope: Any = _CLASSES["Envelope"]
"""An export request of traces or logs: resources, scopes, and spans or log records as bytes."""
Entry: Any = _CLASSES["Entry"]
"""`ResourceSpans` or `ResourceLogs` whose spans or log records are bytes."""
SpanView: Any = _CLASSES["Span"]
"""A span whose attributes are a map."""
RawSpan: Any = _CLASSES["RawSpan"]
"""What the search index reads of a span; its attributes are bytes."""


class SpanSummary(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """What lists and summaries need to know about a span."""

    trace_id: bytes
    span_id: bytes
    parent: bytes
    """Empty for a root."""
    name: str
    start_ns: int
    end_ns: int
    failed: bool
    """Ended with status ERROR."""
    local_root: bool
    """No parent, or one in another process, as its flags or its kind say."""
    agent: str
    words: tuple[tuple[str, str], ...]
    """Fields of the run (`playhead_genai.run_fields`) that its attributes name, with their values."""
    label: Label
    usage: Usage


class ResourceSummary(msgspec.Struct, frozen=True, array_like=True):
    """What lists and summaries need to know about a resource."""

    service: str
    """``service.name``; empty if it is unset or OTel's default."""
    host: str
    instance: bytes
    """The process instance that playhead recorded; empty for other processes."""
    version: str
    environment: str
    words: tuple[tuple[str, str], ...] = ()
    """As `SpanSummary.words`."""


@lru_cache(maxsize=256)
def resource_summary(resource: bytes) -> ResourceSummary:
    """Summarize an OTLP `Resource`. `MalformedOtlp` if it cannot be decoded."""
    try:
        found = attributes_of(Resource.FromString(resource).attributes)
    except DecodeError as problem:
        raise MalformedOtlp(f"resource cannot be decoded: {problem}") from None

    def word(name: str) -> str:
        return str(found.get(name) or "")[:LONGEST_WORD]

    service = word(a.SERVICE_NAME)
    return ResourceSummary(
        service="" if service.startswith("unknown_service") else service,
        host=word(a.HOST_NAME),
        instance=_hex(word(a.PLAYHEAD_INSTANCE), 16),
        version=word(a.SERVICE_VERSION),
        environment=next((named for name in _ENVIRONMENTS if (named := word(name))), ""),
        words=_words_in(found, lambda value: value),
    )


_ENVIRONMENTS = (a.DEPLOYMENT_ENVIRONMENT_NAME, "deployment.environment", "langfuse.environment")


def _words_in(at: Any, plain: Callable[[Any], Any]) -> tuple[tuple[str, str], ...]:
    """The fields of the run in attributes; ``plain`` turns one of their values into a Python value."""
    return tuple(
        {
            (field, word[:LONGEST_WORD]): None
            for name, field in FIELD_OF.items()
            if name in at
            for word in islice(values_in(field, plain(at[name])), MOST_VALUES)
        }
    )


def _reported_in(events: Any) -> Iterator[tuple[str, str]]:
    """Yield the words of reports among the events of a span."""
    for event in events:
        if event.name in NAMES:
            yield from words_of_report(event.name, event.attributes)


def words_of_report(
    name: str, attributes: Iterable[KeyValue], body: AnyValue | None = None
) -> Iterator[tuple[str, str]]:
    """Yield the words by which a report finds its run, each with its field."""
    yield from words_in(name, attributes_of(attributes), None if body is None else value_of(body))


def words_of(span: Any, recorded: bool) -> Any:
    """The attributes of a `SpanView`, translated to the GenAI conventions if it follows others.

    ``recorded``: its process was recorded by playhead, so foreign conventions only repeat what our own
    spans say, and are not translated.
    """
    at = span.attributes
    if recorded:
        return at
    if a.GEN_AI_OPERATION_NAME in at:
        found = counts_in_our_words(at, _value_text, _any_value)
    else:
        found = in_our_words(at, _value_text, _any_value)
    if not found:
        return at
    return {**found, **{name: at[name] for name in _READ if name in at}}


_READ = (
    a.GEN_AI_OPERATION_NAME,
    a.OPENAI_API_TYPE,
    a.GEN_AI_RESPONSE_ID,
    a.GEN_AI_RESPONSE_MODEL,
    a.GEN_AI_REQUEST_MODEL,
    a.GEN_AI_PROVIDER_NAME,
    a.GEN_AI_SYSTEM,
    a.GEN_AI_TOOL_NAME,
    a.GEN_AI_AGENT_NAME,
    a.GEN_AI_AGENT_VERSION,
    a.GEN_AI_USAGE_INPUT_TOKENS,
    a.GEN_AI_USAGE_OUTPUT_TOKENS,
    a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS,
    a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS,
    a.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS,
    a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS,
    a.ERROR_TYPE,
    a.HTTP_REQUEST_METHOD,
    a.RPC_SYSTEM_NAME,
    a.RPC_SYSTEM,
    a.GEN_AI_OUTPUT_MESSAGES,
)
"""The attributes that `summarize` reads."""


def _value_text(value: Any) -> str:
    return value.string_value


def _any_value(value: str | int) -> Any:
    return AnyValue(string_value=value) if isinstance(value, str) else AnyValue(int_value=value)


def summarize(span: Any, recorded: bool = False) -> SpanSummary:
    """Summarize a `SpanView`. ``recorded``: as in `words_of`."""
    at = words_of(span, recorded)
    operation, usage = _word(at, a.GEN_AI_OPERATION_NAME), _usage(at)
    failed = span.status.code == trace_pb2.Status.STATUS_CODE_ERROR
    model, asked = _word(at, a.GEN_AI_RESPONSE_MODEL), _word(at, a.GEN_AI_REQUEST_MODEL)
    whereabouts = span.flags & PARENT_IS_REMOTE if span.parent_span_id else PARENT_IS_REMOTE
    served = span.kind in SERVED
    return SpanSummary(
        trace_id=span.trace_id,
        span_id=span.span_id,
        parent=span.parent_span_id,
        name=span.name,
        start_ns=span.start_time_unix_nano,
        end_ns=span.end_time_unix_nano,
        failed=failed,
        local_root=whereabouts == PARENT_IS_REMOTE or (served and whereabouts != PARENT_IS_LOCAL),
        agent=_word(at, a.GEN_AI_AGENT_NAME),
        words=(*_words_in(span.attributes, value_of), *_reported_in(span.events)),
        label=_label(
            not operation
            and span.kind != trace_pb2.Span.SPAN_KIND_SERVER
            and (a.HTTP_REQUEST_METHOD in at or a.RPC_SYSTEM_NAME in at or a.RPC_SYSTEM in at),
            bool(operation) and operation not in FRAMES,
            model or asked,
            asked if model and model != asked else "",
            _word(at, a.GEN_AI_PROVIDER_NAME) or _word(at, a.GEN_AI_SYSTEM),
            _word(at, a.GEN_AI_TOOL_NAME) if operation == Operation.EXECUTE_TOOL else "",
            (_word(at, a.ERROR_TYPE) or UNNAMED_ERROR) if failed else "",
            _word(at, a.GEN_AI_AGENT_VERSION),
            bool(_word(at, a.PLAYHEAD_FIDELITY)),
            "",
            0,
            _called(at),
            False,
            span.kind != trace_pb2.Span.SPAN_KIND_SERVER
            and "grpc" in (_word(at, a.RPC_SYSTEM_NAME), _word(at, a.RPC_SYSTEM)),
            operation in CALLS,
            a.PLAYHEAD_WIRE in at,
            served,
            span.status.code == trace_pb2.Status.STATUS_CODE_OK,
            whereabouts == PARENT_IS_LOCAL,
            _counted_key(operation, at)[:LONGEST_NAME] if usage else "",
            sources_in(span.attributes) if operation == Operation.EXECUTE_TOOL else (),
        ),
        usage=usage,
    )


def _counted_key(operation: str, at: Any) -> str:
    return counted_key(operation, _text(at, a.GEN_AI_RESPONSE_ID), _text(at, a.OPENAI_API_TYPE))


def _called(at: Any) -> tuple[str, ...]:
    """The tools that a model calls, each once, as its span says, else its messages."""
    told, messages = at.get(a.PLAYHEAD_TOOL_CALLED), _text(at, a.GEN_AI_OUTPUT_MESSAGES)
    names: list[str] = []
    if told is not None:
        names = [one.string_value for one in told.array_value.values]
    elif _CALL in messages:
        with suppress(ValueError, RecursionError):
            names = tools_called(messages)
    return tuple(dict.fromkeys(name[:LONGEST_NAME] for name in names))[:MOST_CALLED]


_CALL = '"tool_call"'
"""Occurs in messages that call a tool."""


@lru_cache(maxsize=4096)
def _label(*found: Any) -> Label:
    return Label(*found)


_NO_USAGE = Usage()


def _usage(at: Any) -> Usage:
    given = _number(at, a.GEN_AI_USAGE_INPUT_TOKENS)
    taken = _number(at, a.GEN_AI_USAGE_OUTPUT_TOKENS)
    if not given and not taken:
        return _NO_USAGE
    written = _number(at, a.GEN_AI_USAGE_CACHE_WRITE_INPUT_TOKENS)
    return Usage(
        given,
        _number(at, a.GEN_AI_USAGE_CACHE_READ_INPUT_TOKENS),
        written or _number(at, a.GEN_AI_USAGE_CACHE_CREATION_INPUT_TOKENS),
        taken,
        _number(at, a.GEN_AI_USAGE_REASONING_OUTPUT_TOKENS),
    )


class AroundSpan(msgspec.Struct, frozen=True):
    """The bytes around a span in `ResourceSpans` that hold only this span; shared by many spans."""

    resource: bytes
    """The resource, as a field; it comes first."""
    head: bytes
    """The scope, as a field. ``tail`` and ``end``: the schema URLs of scope and resource."""
    tail: bytes
    end: bytes

    def front_of(self, size: int) -> bytes:
        """The bytes between the resource and the single span, which has ``size`` bytes."""
        lead = varint(size)
        inner = varint(len(self.head) + 1 + len(lead) + size + len(self.tail))
        return b"".join((b"\x12", inner, self.head, b"\x12", lead))

    @property
    def back(self) -> bytes:
        """The bytes after the span."""
        return self.tail + self.end


def surroundings(entry: Any, scoped: Any) -> AroundSpan:
    """The bytes around the spans of a scope."""
    return AroundSpan(
        field(1, entry.resource) if entry.resource else b"",
        field(1, scoped.scope) if scoped.scope else b"",
        _text_field(3, scoped.schema_url),
        _text_field(3, entry.schema_url),
    )


def open_frame(otlp: bytes) -> tuple[bytes, bytes]:
    """Resource and span of `ResourceSpans`. `MalformedOtlp` if it does not hold exactly one span."""
    resource, _, span = open_envelope(otlp)
    return resource, span


def open_envelope(otlp: bytes) -> tuple[bytes, bytes, bytes]:
    """Resource, scope and span of `ResourceSpans`. `MalformedOtlp` if it does not hold one span."""
    try:
        entry = Entry.FromString(otlp)
    except DecodeError as problem:
        raise MalformedOtlp(f"ResourceSpans cannot be decoded: {problem}") from None
    spans = [(scoped.scope, item) for scoped in entry.scopes for item in scoped.items]
    if len(spans) != 1:
        raise MalformedOtlp(f"ResourceSpans holds {len(spans)} spans instead of one")
    return entry.resource, *spans[0]


def parse_span(span: bytes) -> Any:
    """Decode and check a span: a `SpanView`. `MalformedOtlp` says what is wrong with it."""
    try:
        view = SpanView.FromString(span)
    except DecodeError as problem:
        raise MalformedOtlp(f"span cannot be decoded: {problem}") from None
    for name, value, zeros in (
        ("trace_id", view.trace_id, _NO_TRACE),
        ("span_id", view.span_id, _NO_SPAN),
    ):
        if len(value) != len(zeros):
            raise MalformedOtlp(f"{name} has {len(value)} bytes instead of {len(zeros)}")
        if value == zeros:
            raise MalformedOtlp(f"{name} is all zeros")
    if len(view.parent_span_id) not in (0, 8):
        raise MalformedOtlp(f"parent_span_id has {len(view.parent_span_id)} bytes instead of 8")
    if max(view.start_time_unix_nano, view.end_time_unix_nano) >= 1 << 63:
        raise MalformedOtlp("a time of the span lies beyond the year 2262")
    return view


_NO_TRACE, _NO_SPAN = bytes(16), bytes(8)

_SPANS, _SPAN, _NAME = 2, 2, 5
"""Fields: of `ResourceSpans`, of `ScopeSpans` with one span, and of `Span`."""


def name_in(head: bytes) -> str | None:
    """The name in the beginning of `ResourceSpans` without its resource, read without decoding the rest.

    None if it is empty, or is not at the usual place.
    """
    try:
        begin, _ = _inside(head, 0, _SPANS)
        begin, _ = _inside(head, begin, _SPAN)
        begin, end = _inside(head, begin, _NAME)
        return head[begin:end].decode() if end <= len(head) else None
    except (IndexError, ValueError):
        return None


def _inside(data: bytes, at: int, wanted: int) -> tuple[int, int]:
    """Begin and end of a field's content; all fields before it must have a length.

    `ValueError`, `IndexError` otherwise.
    """
    while True:
        tag, length = data[at], data[at + 1]
        if tag & 7 != _WITH_LENGTH or tag > 0x7F:
            raise ValueError("a field of another kind")
        at += 2
        if length > 0x7F:
            length, at = _varint(data, at - 1)
        if tag >> 3 == wanted:
            return at, at + length
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while shift < 64:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7
    raise ValueError("a number of more than 64 bits")


_WITH_LENGTH = 2
"""Wire type of texts, bytes and messages."""


def _word(at: Any, name: str) -> str:
    return _text(at, name)[:LONGEST_WORD]


def _text(at: Any, name: str) -> str:
    value = at.get(name)
    return "" if value is None else value.string_value


def _number(at: Any, name: str) -> int:
    value = at.get(name)
    return 0 if value is None else min(max(value.int_value, 0), MOST)


def _hex(text: str, size: int) -> bytes:
    try:
        found = bytes.fromhex(text)
    except ValueError:
        return b""
    return found if len(found) == size else b""


def request_of(resource_spans: bytes) -> bytes:
    """An export request of traces that holds only this `ResourceSpans`."""
    return field(1, resource_spans)


def _text_field(number: int, text: str) -> bytes:
    return field(number, text.encode()) if text else b""
