"""A share of all traces, told by the random end of their ids: whoever asks gets the same ones."""

from __future__ import annotations

RANDOM_BITS = 56
"""Of a trace id's end, those that are random (W3C Trace Context)."""


def of_share(trace_id: bytes, share: float) -> bool:
    """Whether a trace is of ``share``, from 0 to 1, of all; what is of a share is of a larger one.

    >>> of_share(bytes(16), 1.0), of_share(bytes(16), 0.9), of_share(b"\\xff" * 16, 0.1)
    (True, False, True)
    """
    random = int.from_bytes(trace_id[-RANDOM_BITS // 8 :], "big")
    return random >= round((1 - share) * (1 << RANDOM_BITS))
