"""Spellings of a value in texts, and the digest that identifies it without revealing it."""

from __future__ import annotations

import base64
import contextlib
import json
from collections.abc import Collection, Iterator
from typing import Final
from urllib.parse import quote, quote_plus

import blake3

from playhead_core.lazy_patterns import lazy

SHORTEST_CODED = 12
"""A shorter value is not searched for in base64: only a few characters would be unambiguous."""

DIGEST_BYTES = 8
_PART: Final = lazy(r"[^\s\"'<>\\&;,|`(){}\[\]]+")
_EDGES: Final = lazy(r"[=:@]")


def spellings(value: str) -> Iterator[bytes]:
    """Yield ``value`` unchanged, in a URL, in JSON, in nested JSON, and in base64 at any offset."""
    quoted = quote(value, safe="", errors="surrogatepass")
    forms = {value: None, quoted: None, quote_plus(value, errors="surrogatepass"): None}
    written = json.dumps(value)[1:-1]
    forms |= {written: None, json.dumps(value, ensure_ascii=False)[1:-1]: None}
    forms[json.dumps(written)[1:-1]] = None
    for form in forms:
        yield form.encode("utf-8", "surrogatepass")
    with contextlib.suppress(UnicodeEncodeError):
        yield value.encode("utf-8", "surrogateescape")  # bytes of a variable that are not UTF-8
    data = value.encode("utf-8", "surrogatepass")
    if len(data) < SHORTEST_CODED:
        return
    for before in range(3):
        # Characters that share bits with neighbouring bytes are left out.
        padded = b"\0" * before + data
        first, last = (0, 2, 3)[before], len(padded) * 8 // 6
        yield base64.b64encode(padded)[first:last]
        yield base64.urlsafe_b64encode(padded)[first:last]


def keyed_digest(value: str, key: bytes) -> str:
    """Return length and keyed digest of ``value``: only with the key can it be found in a text.

    >>> keyed_digest("a-value", bytes(32))
    '7 13b1338fed719e52'
    """
    digest = blake3.blake3(value.encode("utf-8", "surrogatepass"), key=key)
    return f"{len(value)} {digest.hexdigest(DIGEST_BYTES)}"


def values_with_digest(text: str, wanted: Collection[str], key: bytes) -> Iterator[str]:
    """Yield the values of ``wanted``, as `keyed_digest` writes them, that occur as words in ``text``."""
    return (value for _, value in find_by_digest(text, wanted, key))


def find_by_digest(text: str, wanted: Collection[str], key: bytes) -> Iterator[tuple[int, str]]:
    """Yield the same values, each with its index in ``text``."""
    sizes = {int(one.partition(" ")[0]) for one in wanted if one.partition(" ")[0].isdigit()}
    for found in _PART.finditer(text):
        word = found[0]
        if len(word) < min(sizes, default=1 << 60):
            continue
        starts = [0, *(edge.end() for edge in _EDGES.finditer(word))]
        for start in starts:
            for size in sizes:
                value = word[start : start + size]
                if len(value) == size and keyed_digest(value, key) in wanted:
                    yield found.start() + start, value
