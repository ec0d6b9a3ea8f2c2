"""What the index keeps of a span, read in one pass: its words, and the keys of its attributes.

The attributes of a span are read as bytes. Most of them occur in thousands of spans, so what one of
them gives is remembered by its bytes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple, TypeAlias

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from playhead_core.errors import MalformedOtlp
from playhead_core.otlp_bytes import varint
from playhead_core.reports import NAMES
from playhead_receiver.storage.content.cut_points import LEAST_BYTES
from playhead_receiver.storage.content.plain_words import small_texts, unescaped_text
from playhead_receiver.storage.runs.attribute_keys import (
    FAILED,
    RESOURCES,
    SPAN_NAME,
    keys_of_pair,
    keys_of_resource,
    keys_of_value,
    more_key,
    name_key,
)
from playhead_receiver.storage.spans.span_view import Entry, RawSpan, open_envelope
from playhead_receiver.storage.writing.recent_bundles import ShortSpan
from playhead_semconv import attributes as a

REMEMBERED = 16_384
REMEMBERED_BYTES = 512
"""Larger attributes are not remembered."""
LARGE_BYTES = 1024
"""The text of an attribute of at least this size adds no words, and no key for its value."""

_LONG_TEXT = re.compile(rb"\x12[\x80-\xff]+[\x01-\x7f]\x0a([\x80-\xff]+[\x01-\x7f])")
"""Tags and sizes between the name of an attribute and its text."""
_FAILED = frozenset((name_key(FAILED),))
_REFERS = name_key(a.PLAYHEAD_WIRE)


class SearchedSpan(NamedTuple):
    """What the index keeps of a span, its resource and scope included."""

    words: str
    """Name, status message, event names and small values. Large values are separate texts."""
    keys: frozenset[bytes]
    """Keys of its name, status and attributes, those of events and links included."""
    refers: bool
    """Whether its messages are on a tape."""


_Attribute: TypeAlias = tuple[str, tuple[bytes, ...], str]
"""Name, keys, and words, which are empty for a value that is no text, or a large one."""


def searched_span(otlp: bytes) -> SearchedSpan:
    """Read `ResourceSpans` that hold one span. `MalformedOtlp`."""
    return _read(*open_envelope(otlp), ())


def searched_short_span(resource: bytes, span: ShortSpan) -> SearchedSpan:
    """Read a recent span. ``resource``: encoded as a field. `MalformedOtlp`."""
    return _read(_resource_in(resource), span.scope, span.otlp, span.long_texts)


@lru_cache(RESOURCES)
def _resource_in(field: bytes) -> bytes:
    return Entry.FromString(field).resource


def _read(resource: bytes, scope: bytes, data: bytes, long_texts: Sequence[bytes]) -> SearchedSpan:
    try:
        return _searched(resource, scope, RawSpan.FromString(data), long_texts)
    except DecodeError as problem:
        raise MalformedOtlp(f"span cannot be decoded: {problem}") from None


def _searched(resource: bytes, scope: bytes, span: Any, long_texts: Sequence[bytes]) -> SearchedSpan:
    attributes = [
        _remembered(data) if len(data) <= REMEMBERED_BYTES else _large_attribute(data)
        for data in span.attributes
    ]
    attributes += map(_large_text, long_texts)
    keys = keys_of_resource(resource).union(
        _keys_of_scope(scope), _keys_of_name(span.name), *[of_one for _, of_one, _ in attributes]
    )
    if span.status.code == Status.STATUS_CODE_ERROR:
        keys |= _FAILED
    words = [span.name, span.status.message]
    if span.events or span.links:
        pairs = (pair for holder in (*span.events, *span.links) for pair in holder.attributes)
        keys = keys.union(*map(keys_of_pair, pairs))
        words += (event.name for event in span.events)
        if a.PLAYHEAD_INSTANCE.encode() not in resource:  # else a tape has the reports
            reports = (event for event in span.events if event.name in NAMES)
            words += (
                text for one in reports for pair in one.attributes for text in small_texts(pair.value)
            )
    words += [text for _, _, text in sorted([one for one in attributes if one[2]], key=itemgetter(0))]
    refers = _REFERS in keys and any(name == a.PLAYHEAD_WIRE for name, _, _ in attributes)
    return SearchedSpan(" ".join(filter(None, words)), keys, refers)


def _attribute(data: bytes) -> _Attribute:
    pair = KeyValue.FromString(data)
    text = pair.value.string_value
    words = unescaped_text(text) if len(text) <= LEAST_BYTES else ""
    return pair.key, tuple(keys_of_pair(pair)), words


_remembered = lru_cache(REMEMBERED)(_attribute)


def _large_attribute(data: bytes) -> _Attribute:
    """As `_attribute`. Of a long text, in the usual encoding, only the name is decoded."""
    name_end = 2 + data[1]
    found = _LONG_TEXT.match(data, name_end) if data[0] == 0x0A and data[1] < 0x80 else None
    if found is None or len(data) < LARGE_BYTES or found[1] != varint(len(data) - found.end()):
        return _attribute(data)
    return _large_text(data[2:name_end])


@lru_cache(REMEMBERED)
def _large_text(name: bytes) -> _Attribute:
    text = name.decode("utf-8", "replace")
    return text, (name_key(text), more_key(text)), ""


@lru_cache(REMEMBERED)
def _keys_of_name(name: str) -> tuple[bytes, ...]:
    return tuple(keys_of_value(SPAN_NAME, name))


@lru_cache(64)
def _keys_of_scope(data: bytes) -> frozenset[bytes]:
    pairs = InstrumentationScope.FromString(data).attributes
    return frozenset(key for pair in pairs for key in keys_of_pair(pair))
