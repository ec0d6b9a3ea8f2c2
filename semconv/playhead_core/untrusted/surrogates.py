"""Halves of surrogate pairs: JSON may hold them, UTF-8 may not."""

from __future__ import annotations

import re
from typing import Any, Final, cast

HALF: Final = re.compile("[\ud800-\udfff]")


def without_halves(text: str) -> str:
    """Return ``text`` with adjacent halves of a surrogate pair joined, and others as U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def whole_text(value: Any) -> Any:
    """Return a JSON value in which all texts are `without_halves`."""
    if isinstance(value, str):
        return without_halves(value) if HALF.search(value) else value
    if isinstance(value, dict):
        fields = cast(dict[str, Any], value)
        return {whole_text(name): whole_text(item) for name, item in fields.items()}
    if isinstance(value, list):
        return [whole_text(item) for item in cast(list[Any], value)]
    return value
