"""Untrusted values of spans: token counts, and parents that form rings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

MOST = 1 << 40
"""Largest count that a span may state. More is no number of tokens; sums must fit 64 bits."""


def count_in(attributes: Mapping[str, Any], name: str) -> int:
    """Return an integer from 0 to `MOST`; 0 if there is none, or another type."""
    value = attributes.get(name)
    return min(max(value, 0), MOST) if type(value) is int else 0


Id = TypeVar("Id", str, bytes)


def opened_rings(parents: Mapping[Id, Id]) -> set[Id]:
    """Those whose parents are ignored, so that every other one hangs on a root. In linear time.

    ``parents``: of each, in order of start. Of a ring, the one that started first is made a root; what
    is its own parent is a ring, too.

    >>> opened_rings({"a": "b", "b": "a", "c": "b", "d": "gone", "e": "e"}) == {"a", "e"}
    True
    """
    order: dict[Id, int] = {}
    late: list[Id] = []
    for at, (one, above) in enumerate(parents.items()):
        if above not in order and above in parents:
            late.append(one)
        order[one] = at
    # A ring has one that started before its parent.
    opened: set[Id] = set()
    passed: dict[Id, int] = {}
    for way, one in enumerate(late):
        while one in parents and one not in passed:
            passed[one] = way
            one = parents[one]
        if passed.get(one) == way:
            opened.add(_first(one, parents, order))
    return opened


def _first(one: Id, parents: Mapping[Id, Id], order: Mapping[Id, int]) -> Id:
    """The first of the ring that one is in."""
    ring = [one]
    while (above := parents[ring[-1]]) != one:
        ring.append(above)
    return min(ring, key=order.__getitem__)
