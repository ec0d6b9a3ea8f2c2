"""How values of the standard library and of numpy are split into parts and restored."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import Any, Final, NamedTuple, cast
from uuid import UUID


class TypeShape(NamedTuple):
    """How one type is stored.

    ``together`` may raise any error for parts that do not fit.
    """

    name: str
    apart: Callable[[Any], Any]
    together: Callable[[Any], Any]


class Unsorted(list[Any]):
    """Parts without an order; they are stored sorted by their bytes."""


_ZONE: Final = re.compile(r"[A-Za-z0-9_+-]+(?:/[A-Za-z0-9_+-]+)*")
_DTYPE: Final = re.compile(r"[<>|=](?:[biufcSU][0-9]{1,9}|[mM]8(?:\[[0-9]{0,9}[A-Za-z]{1,2}\])?|b1)")


def _parts(parts: Any, length: int) -> Any:
    if not isinstance(parts, list) or len(cast(list[Any], parts)) != length:
        raise ValueError(f"not {length} parts")
    return cast(list[Any], parts)


def _pairs_together(parts: Any) -> Any:
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _zone_apart(zone: tzinfo | None) -> Any:
    if zone is None:
        return None
    if isinstance(zone, timezone):
        offset = zone.utcoffset(None) // timedelta(microseconds=1)
        name = zone.tzname(None)
        return offset if timezone(zone.utcoffset(None)).tzname(None) == name else [offset, name]
    key = getattr(zone, "key", None)
    if isinstance(key, str) and type(zone).__module__.startswith("zoneinfo"):
        return key
    raise TypeError(f"a time zone of type {type(zone).__module__}.{type(zone).__qualname__}")


def _zone_together(parts: Any) -> tzinfo | None:
    match parts:
        case None:
            return None
        case int(offset):
            return UTC if not offset else timezone(timedelta(microseconds=offset))
        case [int(offset), str(name)]:
            return timezone(timedelta(microseconds=offset), name)
        case str(key) if len(key) < 100 and _ZONE.fullmatch(key):
            from zoneinfo import ZoneInfo  # few times have a zone

            return ZoneInfo(key)
        case _:
            raise ValueError("no time zone")


def _clock_apart(value: Any) -> Any:
    return [value.replace(tzinfo=None, fold=0).isoformat(), value.fold, _zone_apart(value.tzinfo)]


def _clock_together(cls: Any) -> Callable[[Any], Any]:
    def together(parts: Any) -> Any:
        text, fold, zone = _parts(parts, 3)
        return cls.fromisoformat(text).replace(fold=fold, tzinfo=_zone_together(zone))

    return together


def _int_together(parts: Any) -> int:
    if len(parts) > 1 << 20:
        raise ValueError("too long")
    return int.from_bytes(parts, "big", signed=True)


def _int_apart(value: int) -> bytes:
    return value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True)


def _text_apart(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _text_together(parts: Any) -> str:
    return parts.decode("utf-8", "surrogatepass")


def _complex_apart(value: complex) -> list[float]:
    return [value.real, value.imag]


def _complex_together(parts: Any) -> complex:
    return complex(*_parts(parts, 2))


def _span_apart(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _span_together(parts: Any) -> timedelta:
    return timedelta(*_parts(parts, 3))


def _uuid_apart(value: UUID) -> bytes:
    return value.bytes


def _uuid_together(parts: Any) -> UUID:
    return UUID(bytes=parts)


STANDARD: Final[dict[type[Any], TypeShape]] = {
    int: TypeShape("int", _int_apart, _int_together),
    str: TypeShape("str", _text_apart, _text_together),
    dict: TypeShape("dict", dict.items, _pairs_together),
    tuple: TypeShape("tuple", list, tuple),
    set: TypeShape("set", Unsorted, set),
    frozenset: TypeShape("frozenset", Unsorted, frozenset),
    bytearray: TypeShape("bytearray", bytes, bytearray),
    complex: TypeShape("complex", _complex_apart, _complex_together),
    date: TypeShape("date", date.isoformat, date.fromisoformat),
    datetime: TypeShape("datetime", _clock_apart, _clock_together(datetime)),
    time: TypeShape("time", _clock_apart, _clock_together(time)),
    timedelta: TypeShape("timedelta", _span_apart, _span_together),
    Decimal: TypeShape("decimal", str, Decimal),
    UUID: TypeShape("uuid", _uuid_apart, _uuid_together),
}
"""Includes values that MessagePack lacks: integers of more than 64 bits, texts with lone surrogates, and
dicts with keys other than text."""


@dataclass(frozen=True, slots=True)
class WellKnown:
    """A type of a library that is not imported here, only recognized once the program imported it."""

    module: str
    cls: str
    shape: TypeShape

    def of(self, cls: type[Any]) -> TypeShape | None:
        """Return the shape if ``cls`` is that type."""
        module = sys.modules.get(self.module)
        return self.shape if module is not None and cls is getattr(module, self.cls, None) else None


def _array_apart(value: Any) -> Any:
    if not _DTYPE.fullmatch(value.dtype.str):
        raise TypeError(f"an array of {value.dtype}")
    return [value.dtype.str, list(value.shape), value.tobytes()]


def _array_together(parts: Any) -> Any:
    import numpy

    kind, shape, data = _parts(parts, 3)
    if not _DTYPE.fullmatch(kind) or len(shape) > 64:
        raise ValueError("no array")
    return numpy.frombuffer(data, numpy.dtype(kind)).reshape(shape).copy()


WELL_KNOWN: Final = (WellKnown("numpy", "ndarray", TypeShape("ndarray", _array_apart, _array_together)),)
