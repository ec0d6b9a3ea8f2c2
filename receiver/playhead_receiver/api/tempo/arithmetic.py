"""Arithmetic of TraceQL metrics: combines series with the same labels, point by point."""

from __future__ import annotations

import math
from typing import Any, TypeAlias

import msgspec

Labels: TypeAlias = tuple[tuple[str, str, str], ...]
"""Name, OTLP type name (``stringValue``), and value as text, for each label."""
Points: TypeAlias = dict[int, float]
"""Values by step; steps without a value are missing."""

NAME = "__name__"


class Series(msgspec.Struct):
    """A series of points with common labels."""

    labels: Labels
    points: Points
    trace_id: str = ""
    """The last trace that contributed a point."""
    at_ns: int = 0


def combined(op: str, left: list[Series] | float, right: list[Series] | float) -> list[Series]:
    """Combine two lists of series, or a list and a number.

    A series without labels is combined with every other one. If the result is not a number, as after a
    division by zero, there is no point.
    """
    if isinstance(left, int | float):
        assert isinstance(right, list)
        return [_moved(one, {at: _worked_out(op, left, it) for at, it in _of(one)}) for one in right]
    if isinstance(right, int | float):
        return [_moved(one, {at: _worked_out(op, it, right) for at, it in _of(one)}) for one in left]
    ours, theirs = _by_key(left), _by_key(right)
    found: list[Series] = []
    for key in ours if () in theirs else theirs:
        one, other = (side.get(key, side.get(())) for side in (ours, theirs))
        if one is not None and other is not None:
            points = {
                at: _worked_out(op, it, other.points[at]) for at, it in _of(one) if at in other.points
            }
            leading = one if key in ours else other
            found.append(_moved(leading, points, (*_called(op, one, other), *key)))
    return found


def _of(one: Series) -> Any:
    return one.points.items()


def _moved(one: Series, points: dict[int, float | None], labels: Labels | None = None) -> Series:
    kept = {at: value for at, value in points.items() if value is not None}
    return msgspec.structs.replace(one, points=kept, labels=one.labels if labels is None else labels)


def _by_key(series: list[Series]) -> dict[Labels, Series]:
    return {tuple(label for label in one.labels if label[0] != NAME): one for one in series}


def _called(op: str, one: Series, other: Series) -> Labels:
    names = [text for side in (one, other) for name, _, text in side.labels if name == NAME]
    return ((NAME, "stringValue", f"({names[0]} {op} {names[1]})"),) if len(names) == 2 else ()


def _worked_out(op: str, left: float, right: float) -> float | None:
    if op == "/" and not right:
        return None
    value = {
        "+": lambda: left + right,
        "-": lambda: left - right,
        "*": lambda: left * right,
        "/": lambda: left / right,
    }[op]()
    return value if math.isfinite(value) else None
