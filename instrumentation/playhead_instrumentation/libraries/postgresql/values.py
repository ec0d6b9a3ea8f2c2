"""Parameters in the binary form of PostgreSQL, as JSON that a person can read.

A value of a type that is not known here stays as it is, in base64.
https://www.postgresql.org/docs/current/protocol-overview.html#PROTOCOL-FORMAT-CODES
"""

from __future__ import annotations

import datetime as dt
import struct
import uuid
from collections.abc import Callable
from typing import Any, Final

from playhead_instrumentation.libraries.postgresql.statement import text_of

EPOCH: Final = dt.datetime(2000, 1, 1)


def plain(type: int, value: bytes) -> Any:
    """Return a value of the type with this number, as JSON. Never raises."""
    try:
        read = READ.get(type)
        if read is not None:
            return read(value)
        if type in ARRAYS:
            return _array(value)
    except (ValueError, struct.error, OverflowError):
        pass
    return text_of(value)


def _integer(value: bytes) -> int:
    return int.from_bytes(value, signed=True)


def _numeric(value: bytes) -> str:
    count, weight, sign, scale = struct.unpack_from("!HhHH", value)
    if sign not in (0, 0x4000):
        raise ValueError("no finite number")
    digits = struct.unpack_from(f"!{count}H", value, 8)
    whole = "".join(f"{_digit(digits, place):04}" for place in range(weight + 1)).lstrip("0") or "0"
    rest = "".join(
        f"{_digit(digits, place):04}" for place in range(weight + 1, weight + 2 + (scale + 3) // 4)
    )
    return ("-" if sign else "") + whole + ("." + rest[:scale] if scale else "")


def _digit(digits: tuple[int, ...], place: int) -> int:
    return digits[place] if 0 <= place < len(digits) else 0


def _moment(value: bytes) -> str:
    return (EPOCH + dt.timedelta(microseconds=_integer(value))).isoformat()


def _array(value: bytes) -> Any:
    dimensions, _, element = struct.unpack_from("!iiI", value)
    if dimensions == 0:
        return []
    if dimensions != 1:
        raise ValueError("not one dimension")
    count, place = struct.unpack_from("!i", value, 12)[0], 20
    found: list[Any] = []
    for _ in range(count):
        (size,) = struct.unpack_from("!i", value, place)
        place += 4
        found.append(None if size < 0 else plain(element, value[place : place + size]))
        place += max(size, 0)
    return found


READ: Final[dict[int, Callable[[bytes], Any]]] = {
    16: lambda value: value != b"\0",  # bool
    20: _integer,  # int8
    21: _integer,  # int2
    23: _integer,  # int4
    26: int.from_bytes,  # oid
    700: lambda value: struct.unpack("!f", value)[0],  # float4
    701: lambda value: struct.unpack("!d", value)[0],  # float8
    1082: lambda value: (EPOCH.date() + dt.timedelta(days=_integer(value))).isoformat(),  # date
    1083: lambda value: (EPOCH + dt.timedelta(microseconds=_integer(value))).time().isoformat(),  # time
    1114: _moment,  # timestamp
    1184: lambda value: _moment(value) + "+00:00",  # timestamptz
    1700: _numeric,  # numeric
    2950: lambda value: str(uuid.UUID(bytes=value)),  # uuid
    3802: lambda value: text_of(value[1:]),  # jsonb, behind the number of its version
}
"""By number of a type: how its binary form is read."""

ARRAYS: Final = frozenset(
    (1000, 1005, 1007, 1009, 1015, 1016, 1021, 1022, 1028, 1115, 1182, 1183, 1185, 1231, 2951, 3807)
)
"""Numbers of the types of arrays of these, and of texts."""
