"""Attribute values as OTLP's AnyValue, and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

from playhead_core.facts import Value
from playhead_core.otlp_bytes.protobuf import INT64_MAX, INT64_MIN


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
