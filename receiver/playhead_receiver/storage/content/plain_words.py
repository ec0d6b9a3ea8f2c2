"""Searchable words in stored bytes: JSON without its escapes, protobuf without its framing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from playhead_core.otlp.log_records import event_of
from playhead_receiver.storage.content.cut_points import LEAST_BYTES, fields
from playhead_receiver.storage.spans.span_view import open_frame

_DIGITS = re.compile("[0-9a-fA-F]{4}")
_ATTRIBUTE_TAGS = (0x0A, 0x12, 0x2A, 0x32, 0x3A, 0x4A)
DEEPEST = 12


def plain_text(data: bytes) -> str:
    """The readable text in ``data``, which is text, JSON, or pieces of OTLP."""
    if data[:1] and data[0] in _ATTRIBUTE_TAGS:
        found = list(_strings(data, 0))
        if found:
            return " ".join(_unescaped(one) for one in found)
    return _unescaped(data)


def words_of_log(otlp: bytes) -> str:
    """Event name, level and small values of a log record. Large values are separate texts."""
    record = LogRecord.FromString(open_frame(otlp)[1])
    found = [event_of(record), record.severity_text, *small_texts(record.body)]
    for pair in record.attributes:
        found += small_texts(pair.value)
    return " ".join(one for one in found if one)


def small_texts(value: AnyValue, depth: int = 0) -> Iterator[str]:
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
        yield from small_texts(one, depth + 1)


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
    return unescaped_text(data.decode("utf-8", "replace"))


def unescaped_text(text: str) -> str:
    """A text without the escapes of JSON: ``\\u00e9`` is é, and what is no character is a space."""
    if "\\" not in text:
        return text
    begin, *parts = text.split("\\")
    found = [begin]
    is_plain = False
    for part in parts:
        if is_plain or part[:1] in ('"', "/"):
            is_plain = False
            found.append(part)
        elif not part:  # two backslashes: what follows is no escape
            is_plain = True
            found.append("\\")
        elif part[0] == "u" and (character := _character_of(part[1:5])):
            found += (character, part[5:])
        else:
            found += (" ", part[1:])
    plain = "".join(found)
    if "\\ud" in text or "\\uD" in text:  # perhaps halves of a character
        return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return plain


@lru_cache(4096)
def _character_of(digits: str) -> str:
    return chr(int(digits, 16)) if _DIGITS.fullmatch(digits) else ""
