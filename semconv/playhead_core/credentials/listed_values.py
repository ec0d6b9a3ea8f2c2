"""Finds all values of a list that the name of a credential introduces: JSON, code, YAML, TOML."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

from playhead_core.credentials.named_values import (
    HARMLESS,
    CredentialSpan,
    Kind,
    is_plausible,
    pattern,
    string_value,
    value_under,
)

MOST_ITEMS: Final = 1000
"""Limit of the items of a list that are searched."""

_OPENS: Final = pattern(rb"<SIGN>(?:\[\s{0,64}|<LINE>[ \t]{0,64}- <TAG>)()(\\*)([\"'])")
"""What follows the name of a setting with a list of strings. Groups as `string_value` needs them."""
_PLAIN: Final = rb"([^\s\"'\\,\[\]{}]{1,512})(?=[ \t]{0,8}(?:[],\r\n\\]|\Z))"
_OPENS_PLAIN: Final = pattern(rb":[ \t]{0,8}(?:\[[ \t]{0,8}|<LINE>[ \t]{0,64}- <TAG>)" + _PLAIN)
"""What follows a name with a list in YAML whose items have no quotes."""
_BEFORE: Final = pattern(rb"(?:\[\s{0,64}|[\rn\n][ \t]{0,64}- <TAG>)[bru]?(?:<Q>)?\Z")
"""What precedes the first item of a list."""
_NEXT: Final = pattern(rb"(?:<Q>)?(?:[ \t]{0,8},\s{0,64}|<LINE>[ \t]{0,64}- <TAG>)[bru]?()(\\*)([\"'])")
_NEXT_PLAIN: Final = pattern(rb"[ \t]{0,8}(?:,[ \t]{0,8}|<LINE>[ \t]{0,64}- <TAG>)" + _PLAIN)


def values_under(data: bytes, begin: int, end: int, alone: bool) -> list[CredentialSpan]:
    """Return the credentials under the name ``data[begin:end]``: one, or the items of a list.

    ``alone``: see `value_under`.
    """
    first = value_under(data, begin, end, alone) or _first_item(data, end, alone)
    if first is None:
        return []
    if not _BEFORE.search(data, max(0, first.begin - 128), first.begin):
        return [first]
    return [first, *islice(_further_items(data, first, data[begin:end], alone), MOST_ITEMS)]


def _first_item(data: bytes, end: int, alone: bool) -> CredentialSpan | None:
    """Return the first item of a list that is a setting."""
    if data[end : end + 1] not in (b":", b"=", b" ", b"\t"):
        return None
    opening = _OPENS.match(data, end)
    if opening is not None:
        return string_value(data, opening, b"", alone)
    return None if alone else _plain(data, _OPENS_PLAIN, end)


def _further_items(
    data: bytes, item: CredentialSpan, name: bytes, alone: bool
) -> Iterator[CredentialSpan]:
    """Yield the items after ``item`` that are credentials, up to one that is not."""
    quoted = data[item.end : item.end + 1] in (b'"', b"'", b"\\")
    following: CredentialSpan | None = item
    while following is not None and not following.rest:
        if quoted:
            opening = _NEXT.match(data, following.end)
            following = None if opening is None else string_value(data, opening, name, alone)
        else:
            following = _plain(data, _NEXT_PLAIN, following.end)
        if following is not None:
            yield following


def _plain(data: bytes, which: re.Pattern[bytes], at: int) -> CredentialSpan | None:
    found = which.match(data, at)
    if (
        found is None
        or found[1].endswith(b":")
        or HARMLESS.match(found[1])
        or not is_plausible(found[1])
    ):
        return None
    return CredentialSpan(*found.span(1), Kind.FIELD)
