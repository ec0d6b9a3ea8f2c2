"""What the index keeps of a span, read in one pass: its words, and the keys of its attributes.

The attributes of a span are read as bytes. Most of them occur in thousands of spans, so what one of
them gives is remembered by its bytes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from playhead_core.errors import MalformedOtlp
from playhead_core.reports import NAMES
from playhead_receiver.storage.content.cut_points import LEAST_BYTES
from playhead_receiver.storage.content.plain_words import small_texts, unescaped_text
from playhead_receiver.storage.runs.attribute_keys import (
    FAILED,
    SPAN_NAME,
    keys_of_pair,
    keys_of_resource,
    keys_of_value,
    name_key,
)
from playhead_receiver.storage.spans.span_view import RawSpan, open_envelope
from playhead_semconv import attributes as a

REMEMBERED = 16_384
LARGE_BYTES = 512
"""Larger attributes are not remembered."""


class SearchedSpan(NamedTuple):
    """What the index keeps of a span, its resource and scope included."""

    words: str
    """Name, status message, event names and small values. Large values are separate texts."""
    keys: frozenset[bytes]
    """Keys of its name, status and attributes, those of events and links included."""
    refers: bool
    """Whether its messages are on a tape."""


class _Attribute(NamedTuple):
    name: str
    keys: tuple[bytes, ...]
    words: str
    """Empty for a value that is no text, or a large one."""


def searched_span(otlp: bytes) -> SearchedSpan:
    """Read `ResourceSpans` that hold one span. `MalformedOtlp`."""
    resource, scope, data = open_envelope(otlp)
    try:
        return _searched(resource, scope, RawSpan.FromString(data))
    except DecodeError as problem:
        raise MalformedOtlp(f"span cannot be decoded: {problem}") from None


def _searched(resource: bytes, scope: bytes, span: Any) -> SearchedSpan:
    attributes = [
        _remembered(data) if len(data) <= LARGE_BYTES else _attribute(data) for data in span.attributes
    ]
    keys = set(keys_of_resource(resource))
    keys.update(_keys_of_scope(scope))
    keys.update(keys_of_value(SPAN_NAME, span.name))
    if span.status.code == Status.STATUS_CODE_ERROR:
        keys.add(name_key(FAILED))
    for one in attributes:
        keys.update(one.keys)
    for holder in (*span.events, *span.links):
        for pair in holder.attributes:
            keys.update(keys_of_pair(pair))
    words = [span.name, span.status.message]
    words += (event.name for event in span.events)
    if span.events and a.PLAYHEAD_INSTANCE.encode() not in resource:  # else a tape has the reports
        reports = (event for event in span.events if event.name in NAMES)
        words += (word for one in reports for pair in one.attributes for word in small_texts(pair.value))
    words += (one.words for one in sorted(attributes))
    refers = any(one.name == a.PLAYHEAD_WIRE for one in attributes)
    return SearchedSpan(" ".join(filter(None, words)), frozenset(keys), refers)


def _attribute(data: bytes) -> _Attribute:
    pair = KeyValue.FromString(data)
    text = pair.value.string_value
    words = unescaped_text(text) if len(text) <= LEAST_BYTES else ""
    return _Attribute(pair.key, tuple(keys_of_pair(pair)), words)


_remembered = lru_cache(REMEMBERED)(_attribute)


@lru_cache(64)
def _keys_of_scope(data: bytes) -> frozenset[bytes]:
    pairs = InstrumentationScope.FromString(data).attributes
    return frozenset(key for pair in pairs for key in keys_of_pair(pair))
