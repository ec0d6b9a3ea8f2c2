"""Parses durations and sizes as settings and options write them."""

from __future__ import annotations

import re

from playhead_core.errors import ConfigurationError

DAY_S = 86_400.0
FOREVER_S = 1e12
"""``forever`` in seconds: some 30,000 years."""

_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": DAY_S, "w": 7 * DAY_S}
_SIZES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def duration_s(text: str) -> float:
    """Parse ``90d``, ``12h``, ``30m``, ``10s``, ``2w``, ``forever`` to seconds. `ConfigurationError`."""
    if text.strip() == "forever":
        return FOREVER_S
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhdw])", text.strip())
    if found is None:
        raise ConfigurationError(f"{text!r} is not a duration", hint="90d, 12h, 30m, 10s or forever")
    return float(found[1]) * _UNITS[found[2]]


def size_of(text: str) -> int:
    """Parse ``10G``, ``500M``, ``64K`` or a plain number to bytes. `ConfigurationError`."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([KMGT]?)i?B?", text.strip())
    if found is None:
        raise ConfigurationError(f"{text!r} is not a size", hint="10G, 500M or 64K")
    return int(float(found[1]) * _SIZES[found[2]])
