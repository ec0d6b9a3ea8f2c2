"""What is wrong with one run, and not with the store: whoever goes through all goes past it."""

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
