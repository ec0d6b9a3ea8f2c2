"""Regular expressions that are compiled at their first use, because a start needs few of them."""

from __future__ import annotations

import re
from typing import Any, AnyStr, cast


class _LazyPattern:
    """Compiles the pattern when one of its attributes is needed."""

    def __init__(self, text: str | bytes, flags: int) -> None:
        self._text = text
        self._flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self._text, self._flags), name)  # `re` keeps what it has compiled
        setattr(self, name, found)
        return found


def lazy(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return a pattern. If ``text`` is invalid, its first use raises `re.error`."""
    return cast("re.Pattern[AnyStr]", _LazyPattern(text, flags))
