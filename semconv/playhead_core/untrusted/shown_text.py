"""Untrusted text, made safe to show and to store.

Characters that control a terminal or hide text are escaped. Halves of surrogate pairs, which JSON may
hold and UTF-8 may not, are replaced.
"""

from __future__ import annotations

import functools
import re
from typing import Any, Final, cast

from playhead_core.lazy_patterns import lazy

_HIDDEN: Final = lazy(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 controls except tab and newline, DEL, C1 controls
    "\xad\u061c\u180e\u200b\u200e\u200f"  # characters without width, marks of direction
    "\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"  # separators, embeddings, overrides, isolates
    "\ud800-\udfff"  # lone surrogates, which terminals reject
    "\U000e0000-\U000e007f"  # tags
    "]"
)


def visible(text: str) -> str:
    r"""Return ``text`` with such characters escaped as in JSON: ``\u001b``. Newlines stay.

    >>> visible("a\x1b]0;b\x07")
    'a\\u001b]0;b\\u0007'
    """
    return _HIDDEN.sub(_spelt, text) if _HIDDEN.search(text) else text


def in_one_line(text: str) -> str:
    r"""As `visible`; newlines are escaped, too.

    >>> in_one_line("a\nb")
    'a\\u000ab'
    """
    return _hidden_or_lines().sub(_spelt, text)


def hidden_at(text: str, *, lines: bool = False) -> list[tuple[int, str]]:
    """Return the positions of such characters, ascending, and their escapes.

    ``lines``: newlines, too.
    """
    pattern = _hidden_or_lines() if lines else _HIDDEN
    return [(found.start(), _spelt(found)) for found in pattern.finditer(text)]


@functools.cache
def _hidden_or_lines() -> re.Pattern[str]:
    return lazy(f"{_HIDDEN.pattern}|\n")


def _spelt(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 1 << 16:
        return f"\\u{code:04x}"
    high, low = divmod(code - (1 << 16), 1 << 10)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"


HALF: Final = lazy("[\ud800-\udfff]")


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
