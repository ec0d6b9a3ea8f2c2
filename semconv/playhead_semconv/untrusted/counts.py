"""Counts among the attributes of a span, which anybody may have written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST = 1 << 40
"""What a span can say that it used. More is no number of tokens; sums are to fit 64 bits."""


def count_in(attributes: Mapping[str, Any], name: str) -> int:
    """A whole number from 0 to `MOST`; 0 where there is none, or something else."""
    value = attributes.get(name)
    return min(max(value, 0), MOST) if type(value) is int else 0
