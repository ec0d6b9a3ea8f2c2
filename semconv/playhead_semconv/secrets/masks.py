"""What stands on the tape in the place of a credential.

In what the program sends, `PLACEHOLDER`. In what it receives, a mask as long as the credential, so that
chunks keep their lengths; a program that is replayed gets the mask, and where it passes it on, the mask
is known again and the same placeholder replaces it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from playhead_semconv.rerun.given_headers import PLACEHOLDER

BEGINS: Final = b"*redact"
SHORTEST_BYTES: Final = len(BEGINS)
"""A shorter mask is stars alone, and not known again."""

MARK: Final = BEGINS[1:]
PATTERN: Final = rb"[*1-9]redact~*"
"""A mask. A digit first says how many bytes of the credential stand before it."""


def mask(size: int) -> bytes:
    """The mask of a credential of ``size`` bytes.

    >>> mask(12), mask(5)
    (b'*redact~~~~~', b'*****')
    """
    return b"*" * size if size < SHORTEST_BYTES else piece(0, size)


def piece(at: int, size: int, leaked: int = 0) -> bytes:
    """``size`` bytes of a long mask from its byte ``at`` on.

    ``leaked``: so many bytes of the credential were out before it was known for one.

    >>> piece(0, 4) + piece(4, 6), piece(0, 9, leaked=3)
    (b'*redact~~~', b'3redact~~')
    """
    whole = (BEGINS + b"~" * (at + size))[at : at + size]
    return b"%d" % min(leaked, 9) + whole[1:] if leaked and not at else whole


def united(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Spans in order, those that overlap as one.

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
    """``data`` with a placeholder for each span."""
    return _with(data, [(begin, end, PLACEHOLDER.encode()) for begin, end in united(spans)])


def masked(data: bytes, spans: Iterable[tuple[int, int]]) -> bytes:
    """``data`` with a mask for each span, as long as it is."""
    return _with(data, [(begin, end, mask(end - begin)) for begin, end in united(spans)])


def _with(data: bytes, instead: Iterable[tuple[int, int, bytes]]) -> bytes:
    parts: list[bytes] = []
    at = 0
    for begin, end, new in instead:
        parts += (data[at:begin], new)
        at = end
    return b"".join([*parts, data[at:]])
