"""Reads JSON of uncertain shape: returns a value of the expected kind, or nothing."""

from __future__ import annotations

import json
import math
from typing import Any, TypeAlias, cast

import msgspec

from playhead_core.untrusted.shown_text import HALF, without_halves

Object: TypeAlias = dict[str, Any]

_INT64 = range(-(2**63), 2**63)
_LONGEST_INT = 400
"""Digits beyond which a number is kept as a string."""


def parse(data: bytes) -> Any:
    """Return the JSON value in ``data``. ValueError or RecursionError if there is none.

    What the strict decoder rejects (bad UTF-8, lone surrogates, numbers out of range) is replaced. A
    byte order mark is skipped.
    """
    try:
        return msgspec.json.decode(data)
    except ValueError:
        written = json.dumps(_loads(data), ensure_ascii=False)
        return msgspec.json.decode(without_halves(written).encode())


def parse_piece(data: bytes) -> tuple[Any, bool]:
    """As `parse`, for an event of a stream; also return whether it has halves of surrogate pairs.

    A server may cut a character between two events. The halves stay, so that they can be joined; then
    `whole_text` replaces those that stayed alone.
    """
    try:
        return msgspec.json.decode(data), False
    except ValueError:
        value = _loads(data)
        written = json.dumps(value, ensure_ascii=False)
        if HALF.search(written):
            return value, True
        return msgspec.json.decode(written.encode()), False


def _loads(data: bytes) -> Any:
    written = data.decode(json.detect_encoding(data), "replace")
    return json.loads(written, parse_constant=str, parse_float=_float, parse_int=_int)


_RAW = msgspec.json.Decoder(dict[str, msgspec.Raw])


def outline(data: bytes | bytearray | str) -> Object | None:
    """Return the object in ``data`` with its arrays and objects empty; None if it is not one.

    Of a long history that takes a fraction of the time of `parse`.
    """
    try:
        bare = data.removeprefix("\ufeff" if isinstance(data, str) else b"\xef\xbb\xbf")  # type: ignore[arg-type]
        return {name: _outlined(bytes(value)) for name, value in _RAW.decode(bare).items()}
    except (ValueError, RecursionError):
        return None


def _outlined(value: bytes) -> Any:
    first = value[:1]
    return [] if first == b"[" else {} if first == b"{" else parse(value)


def _float(digits: str) -> float | str:
    value = float(digits)
    return value if math.isfinite(value) else digits


def _int(digits: str) -> int | str:
    return int(digits) if len(digits) < _LONGEST_INT else digits


def parsed_arguments(text: str) -> Any:
    """Return the arguments of a tool call as parsed JSON, or ``text`` itself if it is not JSON."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return parse(without_halves(text).encode())
    except (ValueError, RecursionError):
        return text


def text(value: Any) -> str | None:
    """Return a non-empty string; else None."""
    return value if isinstance(value, str) and value else None


def integer(value: Any) -> int | None:
    """Return a 64-bit integer, else None; a float without a fraction counts as one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value in _INT64:
        return value
    return None


def number(value: Any) -> float | None:
    """Return a number as a float; else None."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return float(value) if abs(value) < 1e308 else None
    return None


def strings(value: Any) -> list[str] | None:
    """Return a string, or an array's strings, as a non-empty list; else None."""
    if isinstance(value, str):
        return [value]
    return [item for item in sequence(value) if isinstance(item, str)] or None


def mapping(value: Any) -> Object:
    """Return an object; else an empty one."""
    return cast(Object, value) if isinstance(value, dict) else {}


def sequence(value: Any) -> list[Any]:
    """Return an array; else an empty one."""
    return cast(list[Any], value) if isinstance(value, list) else []


def rest(value: Object, *consumed: str) -> Object:
    """Return what of ``value`` is not in ``consumed``, not null and not an empty array."""
    return {
        name: item
        for name, item in value.items()
        if item is not None and item != [] and name not in consumed
    }


def without_none(values: dict[str, Any]) -> dict[str, Any]:
    """Return ``values`` without those that are None."""
    return {name: value for name, value in values.items() if value is not None}
