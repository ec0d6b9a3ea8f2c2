"""Reads protobuf messages by a table of their fields, where no descriptor of theirs is at hand.

Source: https://protobuf.dev/programming-guides/encoding/
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from playhead_core.otlp_bytes import read_varint
from playhead_genai.providers.reading import Object, mapping

VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5


class ProtoField(NamedTuple):
    """One field of a message."""

    name: str
    kind: str | Mapping[int, str] | Schema = "string"
    """``string``, ``bytes``, ``int``, ``bool``, ``float``; names of an enum's numbers; a message."""
    many: bool = False
    """Whether it is repeated."""


class Schema:
    """The fields of a message by their numbers."""

    def __init__(self, fields: Mapping[int, ProtoField]) -> None:
        self.fields: Final = fields


Value: TypeAlias = int | bytes


def read(data: bytes, schema: Schema) -> Object:
    """Return the message in ``data``, without fields that ``schema`` lacks. ValueError: it is none.

    Bytes become base64; numbers of an enum that have no name stay numbers. Several messages one after
    the other are one: repeated fields are joined, of others the last counts.
    """
    found: Object = {}
    for number, value in _fields(data):
        field = schema.fields.get(number)
        if field is None:
            continue
        if not field.many:
            said, before = _value(value, field), found.get(field.name)
            found[field.name] = mapping(before) | mapping(said) if isinstance(said, dict) else said
        else:
            found.setdefault(field.name, []).append(_value(value, field))
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Value]]:
    """Yield the number of each field, and its value as it is encoded."""
    at = 0
    while at < len(data):
        tag, at = read_varint(data, at)
        kind = tag & 7
        if kind == VARINT:
            value, at = read_varint(data, at)
            yield tag >> 3, value
            continue
        if kind == BYTES:
            size, at = read_varint(data, at)
        elif kind in (FIXED64, FIXED32):
            size = 8 if kind == FIXED64 else 4
        else:
            raise ValueError(f"byte {at}: no field begins here")
        if size > len(data) - at:
            raise ValueError(f"byte {at}: a field of {size} bytes is longer than the message")
        yield tag >> 3, data[at : at + size]
        at += size


def _value(value: Value, field: ProtoField) -> Any:
    kind = field.kind
    if isinstance(value, int):
        if isinstance(kind, Mapping):
            return kind.get(value, value)
        if kind == "bool":
            return bool(value)
        if kind == "int":
            return value - (1 << 64) if value >> 63 else value
    elif isinstance(kind, Schema):
        return read(value, kind)
    elif kind == "string":
        return value.decode("utf-8", "replace")
    elif kind == "bytes":
        return base64.b64encode(value).decode()
    elif kind == "float" and len(value) == 4:
        (number,) = struct.unpack("<f", value)
        return float(f"{number:.7g}")
    raise ValueError(f"the field {field.name} is of another type")
