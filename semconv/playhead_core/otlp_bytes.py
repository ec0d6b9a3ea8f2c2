"""OTLP requests encoded by hand: most agents send nothing else, and never load a protobuf library.

A message is its fields, one after the other. Source: https://protobuf.dev/programming-guides/encoding/
Field numbers are those of opentelemetry-proto, `common/v1/common.proto` and `logs/v1/logs.proto`.
`playhead_core.otlp.windows` reads windows.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, cast

from playhead_core.facts import SCHEMA_VERSION
from playhead_core.zstd_frames import compress
from playhead_semconv import attributes as a
from playhead_semconv import events as e

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5


ONE_BYTE = tuple(bytes((number,)) for number in range(0x80))
"""Encodings of the numbers that `varint` writes as one byte."""


def varint(number: int) -> bytes:
    """Encode a number of at least 0: seven bits per byte, least significant first."""
    if number < 0x80:
        return ONE_BYTE[number]
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(data: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at ``at``, and where it ends. ValueError: it does not end."""
    number = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            break
        byte = data[at]
        at += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number & 0xFFFF_FFFF_FFFF_FFFF, at
    raise ValueError(f"byte {at}: a number does not end")


def field(number: int, data: bytes) -> bytes:
    """Encode a field of bytes, of text as UTF-8, or of a message. ``number``: 1 to 15."""
    return bytes((number << 3 | _BYTES,)) + varint(len(data)) + data


def whole_number(number: int, value: int) -> bytes:
    """Encode a field of an ``int64`` or a ``bool``. ``number``: 1 to 15."""
    return bytes((number << 3 | _VARINT,)) + varint(value & 0xFFFF_FFFF_FFFF_FFFF)


def small(number: int, value: int) -> bytes:
    """As `whole_number`; empty for 0, the default, which need not be written."""
    return whole_number(number, value) if value else b""


def fixed64(number: int, eight: bytes) -> bytes:
    """Encode a field of eight bytes, little-endian, such as a ``double``. ``number``: 1 to 15."""
    return bytes((number << 3 | _FIXED64,)) + eight


def fixed32(number: int, four: bytes) -> bytes:
    """Encode a field of four bytes, little-endian. ``number``: any."""
    return varint(number << 3 | _FIXED32) + four


INT64_MIN = -(1 << 63)
INT64_MAX = (1 << 63) - 1


def attributes(number: int, named: Mapping[Any, Any]) -> bytes:
    """Encode a repeated field of `KeyValue`, as `playhead_core.otlp.set_attributes` does."""
    tag, parts = bytes((number << 3 | 2,)), list[bytes]()
    for key, value in named.items():
        kind = type(value)  # pyright: ignore[reportUnknownVariableType]
        if kind is int or kind is bool or (kind is str and len(value) <= SHORT):
            parts.append(_pair(number, key, value))
            continue
        if kind is list and set(map(type, value)) == _TEXTS and sum(map(len, value)) <= SHORT:
            parts.append(_pair(number, key, tuple(value)))
            continue
        name = _name(key if type(key) is str else str(key))
        held = value_bytes(value)
        size, whole = len(held), len(name) + 2 + len(held)
        if whole < 128:
            parts += (tag, ONE_BYTE[whole], name, b"\x12", ONE_BYTE[size], held)
        else:
            long = varint(size)
            parts += (tag, varint(whole - 1 + len(long)), name, b"\x12", long, held)
    return b"".join(parts)


SHORT = 64
"""Maximum length, in characters, of cached values. Most spans share short values."""
_TEXTS = {str}


@lru_cache(1024, typed=True)
def _pair(number: int, key: Any, value: Any) -> bytes:
    """Encode a field that is a `KeyValue`."""
    return field(number, field(1, text_bytes(str(key))) + field(2, value_bytes(value)))


@lru_cache(1024)
def _name(key: str) -> bytes:
    """Encode the first field of a `KeyValue`."""
    return field(1, text_bytes(key))


def value_bytes(value: Any) -> bytes:
    """Encode an `AnyValue`, as `playhead_core.otlp.any_values.set_value` does."""
    if isinstance(value, str):
        data = value.encode("utf-8", "replace")  # as `text_bytes`
        size = len(data)
        return b"\n" + (ONE_BYTE[size] if size < 128 else varint(size)) + data
    if value is None:
        return b""
    if isinstance(value, bool):
        return whole_number(2, value)
    if isinstance(value, int):
        fits = INT64_MIN <= value <= INT64_MAX
        return whole_number(3, int(value)) if fits else field(1, str(int(value)).encode())
    if isinstance(value, float):
        return fixed64(4, struct.pack("<d", value))
    if isinstance(value, bytes):
        return field(7, value)
    if isinstance(value, Mapping):
        return field(6, attributes(1, cast("Mapping[Any, Any]", value)))
    if isinstance(value, Sequence):
        return field(5, b"".join(field(1, value_bytes(one)) for one in cast("Sequence[Any]", value)))
    return field(1, text_bytes(str(value)))


def text(number: int, said: str) -> bytes:
    """Encode a field of text; empty for empty text, the default, which need not be written."""
    return field(number, text_bytes(said)) if said else b""


def text_bytes(text: str) -> bytes:
    """Return ``text`` as UTF-8. Characters of a name or path that cannot be encoded are replaced."""
    return text.encode("utf-8", "replace")


VERSION = 1
"""Version of the window format; a receiver states the version that it reads."""
WINDOW_BYTES = 1024 * 1024
"""Largest window: bytes of its tape file, including the first line."""
LEVEL = 3
"""Compression level of zstd."""
SCOPE = "playhead"


def window_request(
    tape: bytes, first: int, last: int, instance: bytes, resource: Mapping[str, Any]
) -> bytes:
    """Return an `ExportLogsServiceRequest` with one window of the instance that ``resource`` describes.

    ``tape``: at most `WINDOW_BYTES`. ``first``, ``last``: numbers of its first and last fact.
    """
    own = {a.PLAYHEAD_INSTANCE: instance.hex(), a.PLAYHEAD_SCHEMA: SCHEMA_VERSION}
    names = {**resource, **{name: value for name, value in own.items() if name not in resource}}
    scope = field(1, field(1, SCOPE.encode()))
    logs = field(1, attributes(1, names)) + field(2, scope + field(2, window_record(tape, first, last)))
    return field(1, logs)


def window_record(tape: bytes, first: int, last: int) -> bytes:
    """Return the `LogRecord` of a window."""
    numbers = {a.PLAYHEAD_WINDOW_FIRST: first, a.PLAYHEAD_WINDOW_LAST: last}
    body = field(5, field(7, compress(tape, LEVEL)))
    return body + attributes(6, numbers) + field(12, e.PLAYHEAD_WINDOW.encode())


def scope_logs(
    scope: str,
    *,
    time_ns: int,
    level: int,
    level_text: str,
    body: str | None,
    named: Mapping[str, Any],
    trace_id: bytes,
    span_id: bytes,
) -> bytes:
    """Return `ScopeLogs` bytes of one log record.

    ``scope``: the logger. ``level``: severity number of OTLP. ``named``: attributes.
    """
    when = time_ns.to_bytes(8, "little")
    record = (
        fixed64(1, when),
        small(2, level),
        text(3, level_text),
        b"" if body is None else field(5, value_bytes(body)),
        attributes(6, named),
        field(9, trace_id),
        field(10, span_id),
        fixed64(11, when),
    )
    return field(1, text(1, scope)) + field(2, b"".join(record))
