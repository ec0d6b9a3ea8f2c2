"""Errors that concern one run, not the whole store: housekeeping skips the run."""

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
"""Damage, and what a bug of ours raises on unforeseen content. No errors of disk or database."""
