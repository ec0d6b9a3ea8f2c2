"""Values of uncertain form in what other tools store: JSON, or JSON as text inside JSON."""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec


def decoded(value: Any) -> Any:
    """Text that holds a JSON object, list or string, decoded; anything else as it is."""
    try:
        return msgspec.json.decode(value) if isinstance(value, str) and value[:1] in '[{"' else value
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return value


def json_text(value: Any) -> str:
    """Return ``value`` as compact JSON, and text as it is."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def object_in(holder: dict[str, Any], name: str) -> dict[str, Any]:
    """Return the object under ``name``, also if it is there as JSON text; empty if there is none."""
    value = decoded(holder.get(name))
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_in(holder: dict[str, Any], name: str) -> list[Any]:
    """Return the list under ``name``, also if it is there as JSON text; empty if there is none."""
    value = decoded(holder.get(name))
    return cast("list[Any]", value) if isinstance(value, list) else []


def objects_in(holder: dict[str, Any], name: str) -> list[dict[str, Any]]:
    """Return the objects in a list under ``name``."""
    return [cast("dict[str, Any]", one) for one in list_in(holder, name) if isinstance(one, dict)]
