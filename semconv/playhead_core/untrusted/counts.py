"""Counts among the attributes of a span, which are untrusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 1 << 40
"""Largest count that a span may state. More is no number of tokens; sums must fit 64 bits."""


def count_in(attributes: Mapping[str, Any], name: str) -> int:
    """Return an integer from 0 to `MOST`; 0 where there is none, or another type."""
    value = attributes.get(name)
    return min(max(value, 0), MOST) if type(value) is int else 0
