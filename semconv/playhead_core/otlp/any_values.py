"""Attribute values as OTLP's AnyValue, and back."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from struct import Struct
from typing import Any, cast

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from playhead_core.facts import Value
from playhead_core.otlp_bytes import INT64_MAX, INT64_MIN, read_varint

_KEY, _VALUE = 1 << 3 | 2, 2 << 3 | 2
_STRING, _INT, _DOUBLE = 1 << 3 | 2, 3 << 3 | 0, 4 << 3 | 1
"""Fields of `KeyValue` and of `AnyValue`, each with its wire type."""
_DOUBLES = Struct("<d")
LONGEST_SHARED, MOST_SHARED, MOST_VALUES = 128, 10_000, 100
"""Bytes of an attribute that `SharedPairs` remembers, how many it remembers, and how many of one key."""


def set_value(target: AnyValue, value: Any) -> None:
    """Write ``value`` into an empty ``target``.

    Integers that do not fit 64 bits become their decimal text; what is not a `Value` becomes its
    ``str``.
    """
    kind = cast(object, type(value))
    if kind is str:
        target.string_value = value
    elif kind is int:
        if INT64_MIN <= value <= INT64_MAX:
            target.int_value = value
        else:
            target.string_value = str(value)
    elif kind is bool:
        target.bool_value = value
    elif kind is float:
        target.double_value = value
    elif kind is bytes:
        target.bytes_value = value
    elif value is None:
        return
    elif kind is list or kind is tuple:
        values = target.array_value.values
        target.array_value.SetInParent()
        for item in value:
            set_value(values.add(), item)
    elif isinstance(value, Mapping):
        target.kvlist_value.SetInParent()
        set_attributes(target.kvlist_value.values, value)  # pyright: ignore[reportUnknownArgumentType]
    else:
        _set_subclass(target, value)


def _set_subclass(target: AnyValue, value: Any) -> None:
    """Write a value of a subclass of a basic type, such as an enum of numbers."""
    if isinstance(value, str):
        target.string_value = value
    elif isinstance(value, int):
        set_value(target, int(value))
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, bytes):
        target.bytes_value = value
    elif isinstance(value, Sequence):
        set_value(target, list(value))  # pyright: ignore[reportUnknownArgumentType]
    else:
        target.string_value = str(value)


def set_attributes(target: Any, attributes: Mapping[str, Any]) -> None:
    """Append ``attributes`` to ``target``, a repeated field of `KeyValue`."""
    for key, value in attributes.items():
        pair = target.add()
        pair.key = key if type(key) is str else str(key)
        if value is None:
            pair.value.SetInParent()
        else:
            set_value(pair.value, value)


def value_of(source: AnyValue) -> Value:
    """The inverse of `set_value`."""
    kind = source.WhichOneof("value")
    if kind is None:
        return None
    if kind == "array_value":
        return [value_of(item) for item in source.array_value.values]
    if kind == "kvlist_value":
        return attributes_of(source.kvlist_value.values)
    return getattr(source, kind)


def attributes_of(source: Iterable[KeyValue]) -> dict[str, Any]:
    """Return attributes as a dict; for a key that occurs twice, the last value."""
    return {pair.key: value_of(pair.value) for pair in source}


def short_pair(data: bytes) -> tuple[str, Value] | None:
    """Return key and value of the bytes of a `KeyValue`; None if they must be left to protobuf.

    Reads text and numbers in at most 127 bytes as every SDK writes them: a long run has hundreds of
    thousands, and protobuf takes five times as long.
    """
    size = len(data)
    if not 6 < size < 128 or data[0] != _KEY:
        return None
    at = data[1] + 2
    if at + 3 >= size or data[at] != _VALUE or data[at + 1] != size - at - 2:
        return None
    kind = data[at + 2]
    try:
        if kind == _STRING and data[at + 3] == size - at - 4:
            return sys.intern(data[2:at].decode()), data[at + 4 :].decode()
        if kind == _INT:
            number, end = read_varint(data, at + 3)
            if end == size:
                number -= 1 << 64 if number > INT64_MAX else 0
                return sys.intern(data[2:at].decode()), number
        if kind == _DOUBLE and size == at + 11:
            return sys.intern(data[2:at].decode()), _DOUBLES.unpack_from(data, at + 3)[0]
    except ValueError:
        pass
    return None


class SharedPairs(dict[bytes, tuple[str, Any]]):
    """Attributes by the bytes of their `KeyValue`, each decoded once.

    A known attribute is found without a Python call. Only the first values of each key are cached,
    because ids and durations rarely repeat.
    """

    def __init__(self) -> None:
        super().__init__()
        self._values: dict[str, int] = {}
        """Number of cached values, by key."""

    def __missing__(self, data: bytes) -> tuple[str, Any]:
        found = short_pair(data)
        if found is None:
            pair = KeyValue.FromString(data)
            found = sys.intern(pair.key), value_of(pair.value)
        values = self._values.get(found[0], 0)
        if values < MOST_VALUES and len(data) <= LONGEST_SHARED and len(self) < MOST_SHARED:
            self._values[found[0]] = values + 1
            self[data] = found
        return found
