"""Searchable words in stored bytes: JSON without its escapes, protobuf without its framing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from playhead_core.otlp.log_records import event_of
from playhead_core.reports import NAMES
from playhead_receiver.storage.content.cut_points import LEAST_BYTES, fields
from playhead_receiver.storage.spans.span_view import open_frame, parse_span
from playhead_semconv import attributes as a

_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_PLAIN = {'"': '"', "\\": "\\", "/": "/"}
_ATTRIBUTE_TAGS = (0x0A, 0x12, 0x2A, 0x32, 0x3A, 0x4A)
DEEPEST = 12


def plain_text(data: bytes) -> str:
    """The readable text in ``data``, which is text, JSON, or pieces of OTLP."""
    if data[:1] and data[0] in _ATTRIBUTE_TAGS:
        found = list(_strings(data, 0))
        if found:
            return " ".join(_unescaped(one) for one in found)
    return _unescaped(data)


def words_of_span(otlp: bytes) -> str:
    """Name, status message, event names and small values of a span. Large values are separate texts."""
    span: Any = parse_span(open_frame(otlp)[1])
    found: list[str] = [span.name, span.status.message]
    found += (event.name for event in span.events)
    if a.PLAYHEAD_INSTANCE.encode() not in open_frame(otlp)[0]:  # else a tape has the reports
        reports = (event for event in span.events if event.name in NAMES)
        found += (word for one in reports for pair in one.attributes for word in _small(pair.value))
    for key in sorted(span.attributes):
        value = span.attributes[key]
        if value.HasField("string_value") and len(value.string_value) <= LEAST_BYTES:
            found.append(_unescaped_text(value.string_value))
    return " ".join(one for one in found if one)


def words_of_log(otlp: bytes) -> str:
    """Event name, level and small values of a log record. Large values are separate texts."""
    record = LogRecord.FromString(open_frame(otlp)[1])
    found = [event_of(record), record.severity_text, *_small(record.body)]
    for pair in record.attributes:
        found += _small(pair.value)
    return " ".join(one for one in found if one)


def _small(value: AnyValue, depth: int = 0) -> Iterator[str]:
    """The texts in a value that are not stored separately."""
    kind = value.WhichOneof("value")
    inner: list[AnyValue] = []
    if kind == "string_value":
        if depth or len(value.string_value.encode()) <= LEAST_BYTES:
            yield _unescaped(value.string_value.encode())
    elif kind == "array_value" and (depth or value.array_value.ByteSize() <= LEAST_BYTES):
        inner = [*value.array_value.values]
    elif kind == "kvlist_value" and (depth or value.kvlist_value.ByteSize() <= LEAST_BYTES):
        inner = [pair.value for pair in value.kvlist_value.values]
    elif kind == "int_value":
        yield str(value.int_value)
    elif kind == "double_value":
        yield str(value.double_value)
    for one in inner if depth < DEEPEST else ():
        yield from _small(one, depth + 1)


def _strings(data: bytes, depth: int) -> Iterator[bytes]:
    """Texts in protobuf messages of unknown type; nothing if ``data`` is not protobuf."""
    try:
        parts = [(begin, stop) for _, begin, stop, _ in fields(data, 0, len(data))]
    except (IndexError, ValueError):
        return
    for begin, stop in parts:
        part = data[begin:stop]
        inner = list(_strings(part, depth + 1)) if depth < DEEPEST and len(part) > 2 else []
        if inner and part[0] in _ATTRIBUTE_TAGS:
            yield from inner
        elif len(part) > 1:
            yield part


def _unescaped(data: bytes) -> str:
    return _unescaped_text(data.decode("utf-8", "replace"))


def _unescaped_text(text: str) -> str:
    if "\\" not in text:
        return text
    plain = _ESCAPE.sub(_unescape_match, text)
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _unescape_match(found: re.Match[str]) -> str:
    escaped = found[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    return _PLAIN.get(escaped, " ")
