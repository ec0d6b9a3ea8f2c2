"""Keys of attributes: a hash of four bytes for each name, and for each name with a value, of a span.

Keys only narrow a search: a trace that has all keys of a query may match it, a trace that lacks any
cannot. A number and its text have the same key, and scopes are not distinguished.
"""

from __future__ import annotations

import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from typing import Any, cast

from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.resource.v1.resource_pb2 import Resource

from playhead_core.otlp import value_of
from playhead_core.otlp.log_records import LogLine, level_name
from playhead_genai.other_conventions import elsewhere
from playhead_receiver.storage.values.run_summaries import Need
from playhead_semconv import attributes as a
from playhead_semconv import events as e

SIZE = 4
"""Bytes of a key."""
LONGEST = 128
"""Most characters of a value that has a key of its own; longer ones share the `more_key` of the name."""
LARGE_BYTES = 4 * LONGEST
MOST = 32
"""Values of one array that get keys."""
REMEMBERED = 4096
RESOURCES = 64
"""Resources whose keys are remembered."""
REMEMBERED_KEYS = 1_000_000
"""Most remembered keys, of the most recent traces; keys of other traces may be indexed twice."""

SPAN_NAME, FAILED, LEVEL = ":name", ":failed", ":level"
"""Names of keys for properties of spans and log records that are not attributes."""
_SMALL = frozenset(("string_value", "bool_value", "int_value", "double_value"))


@lru_cache(maxsize=REMEMBERED)
def name_key(name: str) -> bytes:
    """The key of a name with any value."""
    return _key(f"{name}\0")


def value_key(name: str, text: str) -> bytes:
    """The key of a name with a value, in the form of `text_of`."""
    return _key(f"{name}\0={text}")


@lru_cache(maxsize=REMEMBERED)
def more_key(name: str) -> bytes:
    """The key of a name with some value that has no key of its own: it is long, composed or derived."""
    return _key(f"{name}\0+")


def has(name: str) -> Need:
    """The need that a span has this attribute, or the name that another convention uses for it."""
    return frozenset((name_key(name), *(name_key(theirs) for theirs, _ in elsewhere(name))))


def equals(name: str, *values: Any) -> Need:
    """The need that a span may have this attribute, in any convention, with one of these values."""
    found = {more_key(name)}
    for text in map(text_of, values):
        if text is not None:
            found.add(value_key(name, text))
        for theirs, told in elsewhere(name, text):
            found |= {name_key(theirs)} if told is None else {more_key(theirs), value_key(theirs, told)}
    return frozenset(found)


def text_of(value: Any) -> str | None:
    """A value in the form that keys use; None if it has no key."""
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


@lru_cache(RESOURCES)
def keys_of_resource(data: bytes) -> frozenset[bytes]:
    """The keys of an OTLP resource."""
    pairs = Resource.FromString(data).attributes
    return frozenset(key for pair in pairs for key in keys_of_pair(pair))


def keys_of_log(line: LogLine) -> Iterator[bytes]:
    """The keys of a log record: its level, and the metric if it is a score."""
    yield from _keys(LEVEL, [level_name(line.level)])
    if line.event == e.GEN_AI_EVALUATION_RESULT:
        yield from _keys(a.GEN_AI_EVALUATION_NAME, [line.attributes.get(a.GEN_AI_EVALUATION_NAME)])


def keys_of_value(name: str, value: Any) -> Iterator[bytes]:
    """The keys of a property that is not an attribute, such as `SPAN_NAME`."""
    yield from _keys(name, [value])


def keys_of_pair(pair: KeyValue) -> Iterable[bytes]:
    """The keys of an attribute."""
    value = pair.value
    kind = value.WhichOneof("value")
    if kind in _SMALL:
        small = getattr(value, kind)
        if kind != "string_value" or len(small) <= LONGEST:
            return _small_keys(pair.key, small)
    elif kind == "array_value" and pair.ByteSize() <= MOST * LARGE_BYTES:
        return _keys_of_array(pair.key, cast("list[Any]", value_of(value)))
    return name_key(pair.key), more_key(pair.key)


def _small_keys(name: str, value: Any) -> tuple[bytes, bytes]:
    text = text_of(value)
    return name_key(name), more_key(name) if text is None else value_key(name, text)


def _keys_of_array(name: str, values: list[Any]) -> Iterator[bytes]:
    yield name_key(name)
    yield from _keys(name, values[:MOST], more=len(values) > MOST)
    if name == a.PLAYHEAD_DERIVED:
        for one in values:
            yield name_key(str(one))
            yield more_key(str(one))


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


class RecentKeys:
    """Remembers which keys were indexed recently, so that a bundle's entry has only new keys.

    Used by one thread at a time.
    """

    def __init__(self) -> None:
        self._traces: OrderedDict[bytes, set[bytes]] = OrderedDict()
        self._count = 0

    def fresh(self, trace_id: bytes, keys: Iterable[Iterable[bytes]]) -> bytes:
        """The keys of spans and log records that their trace did not have yet, concatenated."""
        known = self._traces.setdefault(trace_id, set())
        self._traces.move_to_end(trace_id)
        found: set[bytes] = set()
        for some in keys:
            found.update(some)
        found -= known
        known |= found
        self._count += len(found)
        while self._count > REMEMBERED_KEYS and len(self._traces) > 1:
            self._count -= len(self._traces.popitem(last=False)[1])
        return b"".join(sorted(found))

    def forget(self) -> None:
        """Forget all keys: the index did not keep them after all, or has lost them."""
        self._traces.clear()
        self._count = 0
