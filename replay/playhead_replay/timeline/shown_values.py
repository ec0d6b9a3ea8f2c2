"""Converts values of stored states to JSON, without the classes of the program."""

from __future__ import annotations

import base64
import math
from typing import Any, Final, cast

import msgspec

from playhead_checkpoint.tree.types import Unregistered

_MODEL: Final = frozenset(("fields", "set", "extra", "private"))
"""The parts of a pydantic model."""
_PLAIN: Final = frozenset((str, int, bool, type(None)))


def shown_value(value: Any) -> Any:
    """Return a JSON value: fields of models, name and parts of other classes, bytes as base64.

    >>> shown_value([(1, 2), b"ab", Unregistered("app.Order", {"number": 81})])
    [[1, 2], 'YWI=', {'type': 'app.Order', 'value': {'number': 81}}]
    """
    kind = cast("type[Any]", type(value))
    if kind in _PLAIN:
        return value
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if kind is Unregistered:
        return _parts(value)
    if kind is dict:
        return {str(name): shown_value(one) for name, one in value.items()}
    if kind in (list, tuple):
        return [shown_value(one) for one in value]
    if kind in (set, frozenset):
        return sorted(map(shown_value, value), key=repr)
    if kind in (bytes, bytearray):
        return base64.b64encode(value).decode()
    if hasattr(value, "tolist"):
        return shown_value(value.tolist())
    return value.isoformat() if hasattr(value, "isoformat") else str(value)


def _parts(value: Unregistered) -> Any:
    parts = value.parts
    if _dict(parts).keys() == _MODEL:
        return shown_value(_dict(parts["fields"]) | _dict(parts["extra"]))
    if type(parts) is list and len(cast("list[Any]", parts)) == 2:
        encoding, data = cast("list[Any]", parts)
        if encoding == "msgpack" and isinstance(data, bytes):
            parts = _unpacked(data)
    return {"type": value.name, "value": shown_value(parts)}


def _dict(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _unpacked(data: bytes | memoryview) -> Any:
    """Decode the output of a framework's serializer; return the bytes if that fails."""
    try:
        return msgspec.msgpack.decode(data, ext_hook=lambda _, inner: _unpacked(inner))
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return bytes(data)
