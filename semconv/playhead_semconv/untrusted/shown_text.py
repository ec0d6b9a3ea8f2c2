"""Text that others have written, as it is shown: what moves a terminal or hides text is spelt out."""

from __future__ import annotations

import re
from typing import Final

_HIDDEN: Final = re.compile(
    "["
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls of C0 but tab and newline, DEL, controls of C1
    "\xad\u061c\u180e\u200b\u200e\u200f"  # signs without a width, marks of direction
    "\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"  # separators, embeddings, overrides, isolates
    "\ud800-\udfff"  # halves of a pair, which no terminal takes
    "\U000e0000-\U000e007f"  # tags
    "]"
)
_HIDDEN_OR_LINES: Final = re.compile(f"{_HIDDEN.pattern}|\n")


def visible(text: str) -> str:
    r"""``text`` with such characters as ``\u001b``, which in JSON means the same. Newlines stay.

    >>> visible("a\x1b]0;b\x07")
    'a\\u001b]0;b\\u0007'
    """
    return _HIDDEN.sub(_spelt, text) if _HIDDEN.search(text) else text


def in_one_line(text: str) -> str:
    r"""As `visible`; newlines are spelt out, too.

    >>> in_one_line("a\nb")
    'a\\u000ab'
    """
    return _HIDDEN_OR_LINES.sub(_spelt, text)


def hidden_at(text: str, *, lines: bool = False) -> list[tuple[int, str]]:
    """The places of such characters, ascending, and what stands for each. ``lines``: newlines, too."""
    pattern = _HIDDEN_OR_LINES if lines else _HIDDEN
    return [(found.start(), _spelt(found)) for found in pattern.finditer(text)]


def _spelt(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 1 << 16:
        return f"\\u{code:04x}"
    high, low = divmod(code - (1 << 16), 1 << 10)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
