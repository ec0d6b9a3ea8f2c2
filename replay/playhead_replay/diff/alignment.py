"""Aligns the steps of two runs.

The same request in the same lane is the same step, whatever else differs between the runs. Steps between
two such pairs are aligned by their kind and their last message, first lane by lane, then among the lanes
of one function. Steps without a partner were added or removed.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from itertools import pairwise
from typing import TypeAlias

from playhead_replay.diff.side import ComparedStep

Pair: TypeAlias = tuple[ComparedStep | None, ComparedStep | None]

GAP, SAME_NEWS, OTHER_NEWS = 3, 2, 5
"""Costs of leaving a step unpaired, of pairing steps with the same last message, and of pairing others.

Two gaps cost more than a pair.
"""

LONGEST = 1500
"""Segments with more steps than this are paired in order, because alignment takes quadratic time."""


def align(left: Sequence[ComparedStep], right: Sequence[ComparedStep]) -> list[Pair]:
    """Pairs in the order of ``left``; a step only in ``right`` follows its predecessor there."""
    partner: dict[ComparedStep, ComparedStep] = {}
    _pair_equal(left, right, lambda one: (one.lane, one.asked), partner)
    _pair_equal(left, right, lambda one: (one.family, one.asked), partner)
    _pair_alike(left, right, lambda one: one.lane, partner)
    _pair_alike(left, right, lambda one: one.family, partner)
    _pair_alike(left, right, lambda one: "", partner)
    return _in_order(left, right, partner)


def moved(pairs: Sequence[Pair]) -> list[Pair]:
    """A smallest set of pairs that explains how the order of steps within one lane differs."""
    lanes: dict[str, list[tuple[ComparedStep, ComparedStep]]] = defaultdict(list)
    for one, other in pairs:
        if one is not None and other is not None and one.lane == other.lane:
            lanes[one.lane].append((one, other))
    found: list[Pair] = []
    for members in lanes.values():
        members.sort(key=lambda pair: pair[0].number)
        kept = _rising([other.number for _, other in members])
        found += [pair for index, pair in enumerate(members) if index not in kept]
    return found


def _pair_equal(
    left: Sequence[ComparedStep],
    right: Sequence[ComparedStep],
    key: Callable[[ComparedStep], Hashable],
    partner: dict[ComparedStep, ComparedStep],
) -> None:
    taken = set(partner.values())
    waiting: dict[Hashable, deque[ComparedStep]] = defaultdict(deque)
    for other in right:
        if other not in taken:
            waiting[key(other)].append(other)
    for one in left:
        if one not in partner and waiting[key(one)]:
            partner[one] = waiting[key(one)].popleft()


def _pair_alike(
    left: Sequence[ComparedStep],
    right: Sequence[ComparedStep],
    group: Callable[[ComparedStep], str],
    partner: dict[ComparedStep, ComparedStep],
) -> None:
    """Pair the unpaired steps of each group, segment by segment between its paired steps."""
    sides: tuple[dict[str, list[ComparedStep]], dict[str, list[ComparedStep]]] = (
        defaultdict(list),
        defaultdict(list),
    )
    for steps, side in zip((left, right), sides, strict=True):
        for one in steps:
            side[group(one)].append(one)
    taken = set(partner.values())
    for name, mine in sides[0].items():
        theirs = sides[1].get(name, [])
        places = {other: index for index, other in enumerate(theirs)}
        known = [
            (index, places[partner[one]])
            for index, one in enumerate(mine)
            if one in partner and partner[one] in places
        ]
        rising = _rising([place for _, place in known])
        fences = [(-1, -1), *(pair for n, pair in enumerate(known) if n in rising)]
        fences.append((len(mine), len(theirs)))
        for (from_a, from_b), (to_a, to_b) in pairwise(fences):
            free_a = [one for one in mine[from_a + 1 : to_a] if one not in partner]
            free_b = [other for other in theirs[from_b + 1 : to_b] if other not in taken]
            for one, other in _cheapest(free_a, free_b):
                partner[one] = other
                taken.add(other)


def _cheapest(
    left: list[ComparedStep], right: list[ComparedStep]
) -> list[tuple[ComparedStep, ComparedStep]]:
    """The pairs of an alignment with the lowest cost; steps of different kinds are never paired."""
    if not left or not right:
        return []
    if len(left) > LONGEST or len(right) > LONGEST:
        return [(a, b) for a, b in zip(left, right, strict=False) if a.label == b.label]
    width = len(right) + 1
    costs = [[column * GAP for column in range(width)]]
    for row, one in enumerate(left, 1):
        above, line = costs[-1], [row * GAP]
        for column, other in enumerate(right, 1):
            best = min(above[column], line[column - 1]) + GAP
            if one.label == other.label:
                best = min(best, above[column - 1] + _cost(one, other))
            line.append(best)
        costs.append(line)
    pairs: list[tuple[ComparedStep, ComparedStep]] = []
    row, column = len(left), len(right)
    while row and column:
        one, other, cost = left[row - 1], right[column - 1], costs[row][column]
        if one.label == other.label and cost == costs[row - 1][column - 1] + _cost(one, other):
            pairs.append((one, other))
            row, column = row - 1, column - 1
        elif cost == costs[row - 1][column] + GAP:
            row -= 1
        else:
            column -= 1
    return pairs[::-1]


def _cost(one: ComparedStep, other: ComparedStep) -> int:
    return SAME_NEWS if one.news == other.news else OTHER_NEWS


def _rising(numbers: Sequence[int]) -> set[int]:
    """Indices of a longest increasing subsequence."""
    tails: list[int] = []
    places: list[int] = []
    before: list[int] = []
    for index, number in enumerate(numbers):
        at = bisect_left(tails, number)
        if at == len(tails):
            tails.append(number)
            places.append(index)
        else:
            tails[at], places[at] = number, index
        before.append(places[at - 1] if at else -1)
    found: set[int] = set()
    index = places[-1] if places else -1
    while index >= 0:
        found.add(index)
        index = before[index]
    return found


def _in_order(
    left: Sequence[ComparedStep],
    right: Sequence[ComparedStep],
    partner: dict[ComparedStep, ComparedStep],
) -> list[Pair]:
    origin = {other: one for one, other in partner.items()}
    behind: dict[ComparedStep | None, list[ComparedStep]] = defaultdict(list)
    last: ComparedStep | None = None
    for other in right:
        if other in origin:
            last = origin[other]
        else:
            behind[last].append(other)
    pairs: list[Pair] = [(None, other) for other in behind[None]]
    for one in left:
        pairs.append((one, partner.get(one)))
        pairs += [(None, other) for other in behind[one]]
    return pairs
