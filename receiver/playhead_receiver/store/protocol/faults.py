"""Problems of one run, not of the store: housekeeping skips the run."""

from __future__ import annotations

from typing import Final

import msgspec

from playhead_semconv.errors import CorruptTape, MalformedOtlp

OF_ONE_RUN: Final = (
    CorruptTape,
    MalformedOtlp,
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
    msgspec.MsgspecError,
)
"""Damage, and what a fault of ours raises on content that nobody thought of. No disk, no database."""
