"""Parents that others told are a tree where they are followed."""

import doctest
import random

from playhead_core.untrusted import spans
from playhead_core.untrusted.spans import opened_rings


def test_the_examples_hold():
    assert doctest.testmod(spans).failed == 0


def test_what_is_its_own_parent_is_a_root():
    assert opened_rings({"a": "a", "b": "a"}) == {"a"}


def test_what_hangs_on_a_ring_stays_there_even_if_it_begins_first():
    assert opened_rings({"below": "b", "a": "b", "b": "a"}) == {"a"}


def test_of_several_rings_each_is_opened_once():
    assert opened_rings({"a": "b", "b": "a", "c": "e", "d": "c", "e": "d"}) == {"a", "c"}


def test_whatever_is_told_every_one_hangs_on_a_root():
    drawn = random.Random(7)
    for _ in range(2000):
        ids = [str(one) for one in range(drawn.randint(1, 9))]
        parents = {one: drawn.choice([*ids, "", "gone"]) for one in ids}
        opened = opened_rings(parents)
        for one in ids:
            above, seen = one, set[str]()
            while above in parents and above not in opened:
                assert above not in seen, parents
                seen.add(above)
                above = parents[above]
        for one in opened:  # none in vain
            above = parents[one]
            while above != one:
                above = parents[above]


class Counted(dict[str, str]):
    """Parents, and how often they were looked at."""

    looks = 0

    def __contains__(self, one: object) -> bool:
        self.looks += 1
        return super().__contains__(one)

    def __getitem__(self, one: str) -> str:
        self.looks += 1
        return super().__getitem__(one)


def test_a_long_way_into_a_ring_takes_linear_time():
    def looks(count: int) -> int:
        way = {str(one): str(one + 1) for one in range(count)}
        parents = Counted({**way, str(count): str(count - 1)})
        assert len(opened_rings(parents)) == 1
        return parents.looks

    assert looks(40_000) < 11 * looks(4_000)
