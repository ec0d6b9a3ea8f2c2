"""The optimal alignment of a run with the transitions of a workflow.

The cheapest way to explain a run as a walk through the graph of transitions: a step of the run that
the walk does not have is *unexpected*, a step of the walk that the run does not have is *missing*; each
costs one. Other explanations with the same cost may exist; this one is found deterministically.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import add
from typing import Final, Literal, TypeAlias

MoveKind: TypeAlias = Literal["step", "unexpected", "missing"]
_FAR: Final = 1 << 30
_BEGIN: Final = 0
"""Index of the node before the first action."""


@dataclass(frozen=True, slots=True)
class Move:
    """A part of an alignment."""

    kind: MoveKind
    action: str
    """Name of the action; empty for an unexpected step that matches none."""
    position: int
    """Index of the step; for a missing one, of the step before which it is missing."""


@dataclass(frozen=True, slots=True)
class _Visit:
    """A step of the run that the walk has, and the one before it."""

    position: int
    node: int
    before: _Visit | None


class Aligner:
    """Aligns runs with the walks from ``start`` to ``end`` through a graph of actions."""

    def __init__(
        self,
        actions: Sequence[str],
        edges: Sequence[tuple[str, str]],
        start: Sequence[str],
        end: Sequence[str],
    ) -> None:
        self._names = ["", *actions]
        numbers = {name: number for number, name in enumerate(self._names)}
        following: list[list[int]] = [[] for _ in self._names]
        for source, target in edges:
            following[numbers[source]].append(numbers[target])
        following[_BEGIN] = [numbers[name] for name in start or actions]
        self._numbers = numbers
        self._ends = {numbers[name] for name in end or actions}
        self._ways = [_shortest(following, node) for node in range(len(self._names))]
        """For each node, the shortest way of at least one edge to each other node."""
        nodes = range(len(self._names))
        self._lengths = [
            [len(ways[node]) if node in ways else _FAR for ways in self._ways] for node in nodes
        ]
        """For each node, the length of the ways to it from each other node."""
        self._to_end = [
            0
            if node in self._ends
            else min((self._lengths[one][node] for one in self._ends), default=_FAR)
            for node in nodes
        ]

    def align(self, steps: Sequence[Sequence[str]]) -> tuple[int, list[Move]]:
        """Return the cost and the moves of the optimal alignment.

        ``steps``: for each step of the run, the names of the actions that it matches.

        A dynamic program over the steps: for each node, the cost of the cheapest walk that has explained
        the steps so far and is at this node. A step that is unexpected raises the cost of all nodes by
        one, so costs are kept without that common part: a step changes only the nodes that it matches.
        """
        costs = [_FAR] * len(self._names)
        visits: list[_Visit | None] = [None] * len(self._names)
        costs[_BEGIN] = 0
        for position, matched in enumerate(steps):
            changed: list[tuple[int, int, _Visit]] = []
            for name in matched:
                node = self._numbers[name]
                totals = list(map(add, costs, self._lengths[node]))
                cost = min(totals) - 2  # the step is not unexpected, and the last node is not missing
                if cost < min(costs[node], _FAR - len(steps) - 2):
                    visit = _Visit(position, node, visits[totals.index(cost + 2)])
                    changed.append((node, cost, visit))
            for node, cost, visit in changed:
                costs[node], visits[node] = cost, visit
        node = min(range(len(costs)), key=lambda one: (costs[one] + self._to_end[one], one))
        moves = self._moves(steps, visits[node])
        return sum(move.kind != "step" for move in moves), moves

    def _moves(self, steps: Sequence[Sequence[str]], last: _Visit | None) -> list[Move]:
        visits: list[_Visit] = []
        visit = last
        while visit is not None:
            visits.append(visit)
            visit = visit.before
        moves: list[Move] = []
        at, node = 0, _BEGIN
        for visit in reversed(visits):
            moves += self._unexpected(steps, at, visit.position)
            moves += self._missing(self._ways[node][visit.node][:-1], visit.position)
            moves.append(Move("step", self._names[visit.node], visit.position))
            at, node = visit.position + 1, visit.node
        moves += self._unexpected(steps, at, len(steps))
        if node not in self._ends:
            ways = [self._ways[node][one] for one in sorted(self._ends) if one in self._ways[node]]
            moves += self._missing(min(ways, key=len), len(steps)) if ways else []
        return moves

    def _unexpected(self, steps: Sequence[Sequence[str]], begin: int, end: int) -> list[Move]:
        return [Move("unexpected", next(iter(steps[at]), ""), at) for at in range(begin, end)]

    def _missing(self, way: Sequence[int], position: int) -> list[Move]:
        return [Move("missing", self._names[node], position) for node in way]


def _shortest(following: Sequence[Sequence[int]], begin: int) -> Mapping[int, tuple[int, ...]]:
    """Return the shortest way from a node to each that can be reached: the nodes after the first."""
    ways: dict[int, tuple[int, ...]] = {}
    waiting: deque[tuple[int, tuple[int, ...]]] = deque(((begin, ()),))
    while waiting:
        node, way = waiting.popleft()
        for after in following[node]:
            if after not in ways:
                ways[after] = (*way, after)
                waiting.append((after, ways[after]))
    return ways
