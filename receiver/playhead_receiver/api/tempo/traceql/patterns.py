"""Regular expressions of TraceQL: RE2 syntax, matched against whole values, in linear time."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import re2

from playhead_core.errors import UsageError

_OPTIONS: Any = re2.Options()
_OPTIONS.log_errors = False


@lru_cache(maxsize=256)
def pattern_of(text: str) -> Any:
    """A compiled pattern. `UsageError` if it is not valid."""
    try:
        return re2.compile(text, _OPTIONS)
    except re2.error:
        raise UsageError(f"invalid TraceQL query: {text!r} is no pattern of RE2") from None


def matches(text: str, pattern: str) -> bool:
    """Whether the whole of ``text`` matches."""
    return pattern_of(pattern).fullmatch(text) is not None
