"""Keys of attributes: four bytes for each name, and each name with a value, that a span has.

They say where to look, not what is there: a trace that has all keys of a question may answer it, one
that lacks any cannot. A number and its text have one key, and scopes are not told apart.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeAlias, cast

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans

from playhead_semconv import attributes as a
from playhead_semconv.genai.other_conventions import elsewhere
from playhead_semconv.otlp import value_of

SIZE = 4
"""Bytes of a key."""
LONGEST = 128
"""Characters of a text that has a key; who asks for a longer one is led to all spans with that name."""
LARGE_BYTES = 4 * LONGEST
MOST = 32
"""Values of one array that have keys."""
REMEMBERED = 4096

Need: TypeAlias = frozenset[bytes]
"""Keys of which a trace has to have one."""

SPAN_NAME, FAILED = ":name", ":failed"
"""What spans have beside attributes, as names of keys."""
_SMALL = frozenset(("string_value", "bool_value", "int_value", "double_value"))


@lru_cache(maxsize=REMEMBERED)
def name_key(name: str) -> bytes:
    """Of a name that has any value."""
    return _key(f"{name}\0")


@lru_cache(maxsize=REMEMBERED)
def value_key(name: str, text: str) -> bytes:
    """Of a name with a value, as `text_of` writes it."""
    return _key(f"{name}\0={text}")


def more_key(name: str) -> bytes:
    """Of a name with a value that has no key: it is long, composed or derived."""
    return _key(f"{name}\0+")


def has(name: str) -> Need:
    """A span has this name, or what a dialect calls so."""
    return frozenset((name_key(name), *(name_key(theirs) for theirs, _ in elsewhere(name))))


def equals(name: str, *values: Any) -> Need:
    """A span may have this name with one of these values, or what a dialect calls so."""
    found = {more_key(name)}
    for text in map(text_of, values):
        if text is not None:
            found.add(value_key(name, text))
        for theirs, told in elsewhere(name, text):
            found |= {name_key(theirs)} if told is None else {more_key(theirs), value_key(theirs, told)}
    return frozenset(found)


def text_of(value: Any) -> str | None:
    """A value as keys have it; None if it has no key."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return value if len(value) <= LONGEST else None
    if isinstance(value, int | float):
        try:
            return format(float(value), "g")
        except OverflowError:
            return None
    return None


def keys_of(envelope: ResourceSpans) -> Iterator[bytes]:
    """The keys of the one span of an envelope, with those of its resource, scope, events and links."""
    scoped = envelope.scope_spans[0]
    span = scoped.spans[0]
    yield from _keys(SPAN_NAME, [span.name])
    if span.status.code == span.status.STATUS_CODE_ERROR:
        yield name_key(FAILED)
    holders: list[Iterable[KeyValue]] = [
        envelope.resource.attributes,
        scoped.scope.attributes,
        span.attributes,
        *(event.attributes for event in span.events),
        *(link.attributes for link in span.links),
    ]
    for holder in holders:
        for pair in holder:
            yield name_key(pair.key)
            yield from _keys_of_pair(pair)


def _keys_of_pair(pair: KeyValue) -> Iterator[bytes]:
    kind = pair.value.WhichOneof("value")
    if kind in _SMALL:
        yield from _keys(pair.key, [getattr(pair.value, kind)])
    elif kind == "array_value" and pair.ByteSize() <= MOST * LARGE_BYTES:
        values = cast("list[Any]", value_of(pair.value))
        yield from _keys(pair.key, values[:MOST], more=len(values) > MOST)
        if pair.key == a.PLAYHEAD_DERIVED:
            for name in values:
                yield name_key(str(name))
                yield more_key(str(name))
    else:
        yield more_key(pair.key)


def _keys(name: str, values: Collection[Any], *, more: bool = False) -> Iterator[bytes]:
    for value in values:
        text = text_of(value)
        if text is None:
            more = True
        else:
            yield value_key(name, text)
    if more:
        yield more_key(name)


def _key(text: str) -> bytes:
    return zlib.crc32(text.encode("utf-8", "surrogatepass")).to_bytes(SIZE, "big")
