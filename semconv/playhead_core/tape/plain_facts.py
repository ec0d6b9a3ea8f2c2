"""Replaces values of facts that a tape cannot hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

import msgspec

from playhead_core.facts import Fact

DEEPEST = 16
"""Values nested deeper than this become text."""

UNENCODABLE = (TypeError, ValueError, OverflowError, RecursionError, msgspec.MsgspecError)
"""Exceptions of the encoder if attributes are not plain values."""


def plain(fact: Fact) -> Fact:
    """``fact`` with plain attribute values only; all others become their ``repr``."""
    return Fact(
        fact.time_ns,
        fact.lane,
        storable_text(fact.name),
        fact.trace_id,
        fact.span_id,
        fact.exchange,
        fact.delivery,
        {storable_text(key): _plain(value, 0) for key, value in dict(fact.attributes).items()},
        fact.body,
        fact.instance,
        fact.seq,
    )


def storable_text(value: Any) -> str:
    """Return a text, or the ``repr`` of another value; what is not Unicode is escaped."""
    text = value if isinstance(value, str) else _repr(value)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _repr(value: Any) -> str:
    try:
        return repr(value)
    except Exception as problem:  # a foreign `__repr__` may raise anything
        return f"<{type(value).__qualname__}: repr raised {type(problem).__qualname__}>"


def _plain(value: Any, depth: int) -> Any:
    if value is None or isinstance(value, bool | float | bytes):
        return value
    if isinstance(value, int):
        return int(value) if -(1 << 63) <= value < 1 << 63 else hex(value)
    if isinstance(value, str) or depth == DEEPEST:
        return storable_text(value)
    if isinstance(value, Mapping):
        items = cast(Mapping[Any, Any], value)
        return {storable_text(key): _plain(item, depth + 1) for key, item in items.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item, depth + 1) for item in cast(Iterable[Any], value)]
    return storable_text(value)
