"""Replacements of credentials on the tape.

In requests, it is `PLACEHOLDER`. In responses, it is a mask as long as the credential, so that chunks
keep their lengths. A replayed program receives the mask. If it sends the mask, the mask is recognized,
and the same placeholder replaces it. A number without quotes becomes a number of nines in both, so that
JSON stays JSON and parsed values keep their type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final

from playhead_core.lazy_patterns import lazy
from playhead_core.rerun.headers import PLACEHOLDER

BEGINS: Final = b"*redact"
SHORTEST_BYTES: Final = len(BEGINS)
"""A shorter mask consists of stars only, and is not recognized later."""

MARK: Final = BEGINS[1:]
PATTERN: Final = rb"[*1-9]redact~*"
"""A mask. A leading digit is the number of bytes of the credential that precede it."""


def mask(size: int) -> bytes:
    """Return the mask of a credential of ``size`` bytes.

    >>> mask(12), mask(5)
    (b'*redact~~~~~', b'*****')
    """
    return b"*" * size if size < SHORTEST_BYTES else piece(0, size)


def piece(at: int, size: int, leaked: int = 0) -> bytes:
    """Return ``size`` bytes of a long mask, starting at its byte ``at``.

    ``leaked``: bytes of the credential that were passed on before it was recognized.

    >>> piece(0, 4) + piece(4, 6), piece(0, 9, leaked=3)
    (b'*redact~~~', b'3redact~~')
    """
    whole = (BEGINS + b"~" * (at + size))[at : at + size]
    return b"%d" % min(leaked, 9) + whole[1:] if leaked and not at else whole


_NUMBER: Final = lazy(rb"-?[0-9]+(?:\.[0-9]*)?\Z")
_NINES: Final = bytes.maketrans(b"012345678", b"9" * 9)


def is_number(data: bytes, begin: int, end: int) -> bool:
    """Whether ``data[begin:end]`` is a number that is no string and no value in a form.

    >>> is_number(b'{"pin": 1234}', 8, 12), is_number(b'{"pin": "1234"}', 9, 13)
    (True, False)
    """
    return begin > 0 and data[begin - 1] not in b"\"'=" and _NUMBER.match(data, begin, end) is not None


def nines(number: bytes) -> bytes:
    """Return the mask of a number, or of a part of one.

    >>> nines(b"-12.50")
    b'-99.99'
    """
    return number.translate(_NINES)


def united(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the spans in order, with overlapping ones merged.

    >>> united([(5, 9), (0, 2), (7, 12)])
    [(0, 2), (5, 12)]
    """
    found: list[tuple[int, int]] = []
    for begin, end in sorted(spans):
        if found and begin < found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    return found


def replaced(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """Return ``data`` with a placeholder for each span."""
    return _with(data, spans, lambda _: PLACEHOLDER.encode())


def masked(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """Return ``data`` with a mask of the same length for each span."""
    return _with(data, spans, mask)


def _with(data: bytes, spans: Iterable[tuple[int, int]], instead: Callable[[int], bytes]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for begin, end in united(spans):
        number = is_number(data, begin, end)
        parts += (data[at:begin], nines(data[begin:end]) if number else instead(end - begin))
        at = end
    return b"".join([*parts, data[at:]])
