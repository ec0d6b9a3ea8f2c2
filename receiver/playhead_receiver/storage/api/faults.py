"""Errors of a store: what concerns one run only, and what an engine does not offer."""

from __future__ import annotations

from typing import Final

import msgspec

from playhead_core.errors import CorruptTape, MalformedOtlp, StoreError

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
"""Errors that concern one run, which housekeeping then skips: damage, and bugs of ours on its content.

No errors of disk or database.
"""


class NotOffered(StoreError):
    """The engine of a store does not offer what was asked for. It says what can be done instead."""
