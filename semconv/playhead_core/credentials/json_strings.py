"""Where a string of JSON, or of a program, ends; also one that is nested in other strings."""

from __future__ import annotations

import re
from typing import Final

_IN_STRING: Final = {
    b'"': re.compile(rb'(?:[^"\\]|\\.)*\\?', re.DOTALL),
    b"'": re.compile(rb"(?:[^'\\]|\\.)*\\?", re.DOTALL),
}


def end_of_string(data: bytes, at: int, escape: bytes, quote: bytes) -> tuple[int, bool]:
    """Return where the string ends that begins at ``at``, and whether its end is in ``data``.

    ``escape``: the backslashes before its quotes.
    """
    if not escape:
        found = _IN_STRING[quote].match(data, at)
        end = at if found is None else found.end()
        return end, data[end : end + 1] == quote
    end = string_end(data, at, escape + quote)
    return (len(data), False) if end is None else (end, True)


def string_end(data: bytes, at: int, closing: bytes, escapes: int = 0) -> int | None:
    """Return where a string ends that ``closing`` ends: a quote, after backslashes in a nested string.

    None: its end is not in ``data``. ``escapes``: backslashes of the string directly before ``at``,
    where it may end. A level of JSON doubles each backslash and puts one before a quote, so the number
    of backslashes before a quote tells to which level it belongs.
    """
    depth, quote = len(closing) - 1, closing[-1:]
    end = data.find(quote, at)
    while end >= 0:
        begin = end
        while begin > at and data[begin - 1] == 0x5C:
            begin -= 1
        count = end - begin + (escapes if begin == at else 0)
        if count % (2 * depth + 2) == depth:
            return end - depth
        end = data.find(quote, end + 1)
    return None
