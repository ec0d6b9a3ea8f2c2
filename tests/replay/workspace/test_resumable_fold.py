"""A fold at any place costs what lies between, not the run. What is counted is work, not time."""

import random

import pytest

from playhead_replay.workspace import resumable_fold
from playhead_replay.workspace.resumable_fold import EVERY, ResumableFold

MANY = 10_000


class Counted:
    """A fold of numbers to the list of the last three, whose applications are counted."""

    def __init__(self) -> None:
        self.applied = 0
        self.fold = ResumableFold(range(MANY), list[int], self._apply, list[int].copy, len)

    def _apply(self, state: list[int], item: int) -> None:
        self.applied += 1
        state.append(item)
        del state[:-3]

    def cost(self, place: int) -> int:
        before = self.applied
        assert self.fold.at(place) == list(range(max(0, place - 3), place))
        return self.applied - before


def test_a_step_costs_what_it_changes_forwards_and_little_backwards():
    counted = Counted()
    assert counted.cost(MANY) == MANY
    assert max(counted.cost(place) for place in range(MANY - 1, MANY - 500, -1)) <= EVERY
    counted.cost(100)
    assert {counted.cost(place) for place in range(101, 600)} == {1}


def test_marks_are_kept_within_a_weight(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resumable_fold, "MOST_WEIGHT", 30)
    counted = Counted()
    places = random.Random(0).sample(range(MANY), 50)
    for place in places:
        counted.cost(place)
    marks = counted.fold._marks
    assert sum(weight for _, _, weight in marks) <= 30
    assert len(marks) > 3
