"""Selects a share of all traces by the random end of their ids: all callers get the same traces."""

from __future__ import annotations

RANDOM_BITS = 56
"""Number of random bits at the end of a trace id (W3C Trace Context)."""


def of_share(trace_id: bytes, share: float) -> bool:
    """Whether a trace belongs to ``share`` (0 to 1) of all traces. A larger share contains smaller ones.

    >>> of_share(bytes(16), 1.0), of_share(bytes(16), 0.9), of_share(b"\\xff" * 16, 0.1)
    (True, False, True)
    """
    random = int.from_bytes(trace_id[-RANDOM_BITS // 8 :], "big")
    return random >= round((1 - share) * (1 << RANDOM_BITS))
