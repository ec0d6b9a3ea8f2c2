"""The order of a replay, simulated: whatever arrives when, what enters enters as it did on tape."""

import random
from itertools import groupby

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from playhead_core.facts import Delivery
from playhead_instrumentation.scheduler.gates.tape_order import Schedule


def deliver(*places):
    return [Delivery(*place) for place in places]


def test_who_comes_early_waits_for_quiet_and_for_those_before():
    first, second = deliver((1, 0), (2, 0))
    schedule = Schedule([first, second])
    assert not schedule.arrive("b", second)
    assert schedule.release() is None
    assert not schedule.arrive("a", first)
    assert schedule.release() == "a"
    assert schedule.release() is None
    assert schedule.went_on(first) is None
    assert schedule.release() == "b"


def test_a_batch_is_passed_without_waiting_for_quiet_again():
    order = deliver((1, 0), (1, 1), (1, 2), (2, 0))
    schedule = Schedule(order)
    assert not schedule.arrive("b", order[1])
    assert not schedule.arrive("a", order[0])
    assert schedule.release() == "a"
    assert schedule.went_on(order[0]) == "b"
    assert schedule.went_on(order[1]) is None
    assert schedule.arrive("a again", order[2])
    assert not schedule.arrive("next tick", order[3])
    assert schedule.release() == "next tick"


def test_what_is_skipped_holds_nobody_up():
    order = deliver((1, 0), (2, 0), (3, 0))
    schedule = Schedule(order)
    assert not schedule.arrive("c", order[2])
    schedule.skip(order[:2])
    assert schedule.release() == "c"


def test_who_leaves_is_not_let_through():
    order = deliver((1, 0), (2, 0))
    schedule = Schedule(order)
    assert not schedule.arrive("a", order[0])
    schedule.leave("a")
    assert schedule.release() is None
    assert len(schedule) == 0


def test_when_nobody_can_proceed_the_oldest_delivery_goes_and_who_was_passed_comes_late():
    order = deliver((1, 0), (2, 0), (3, 0))
    schedule = Schedule(order)
    assert not schedule.arrive("c", order[2])
    assert not schedule.arrive("b", order[1])
    assert schedule.release() is None
    assert schedule.force() == "b"
    assert schedule.went_on(order[1]) is None
    assert not schedule.arrive("a", order[0])
    assert schedule.release() == "a"
    assert schedule.release() == "c"
    assert schedule.went_on(order[2]) is None
    assert schedule.force() is None


@settings(max_examples=200, deadline=None)
@given(
    lanes=st.lists(st.integers(0, 4), min_size=1, max_size=30),
    breaks=st.lists(st.booleans(), min_size=30, max_size=30),
    seed=st.integers(0, 10_000),
)
def test_lanes_that_run_in_any_order_are_let_in_as_recorded(lanes, breaks, seed):
    """Each lane asks for its next delivery when it has had the one before; who runs first is chance."""
    chance = random.Random(seed)
    tape: list[tuple[int, Delivery]] = []
    batch, order = 1, 0
    for lane, new_tick in zip(lanes, breaks, strict=False):
        if new_tick:
            batch, order = batch + 1, 0
        tape.append((lane, Delivery(batch, order)))
        order += 1
    todo = {lane: [due for owner, due in tape if owner == lane] for lane in set(lanes)}
    schedule: Schedule[int] = Schedule(due for _, due in tape)
    entered: list[tuple[int, Delivery]] = []
    running = sorted(todo)
    while running or len(schedule):
        if not running:
            released = schedule.release()
            assert released is not None, "nobody can proceed"
            running.append(released)
            due = todo[released].pop(0)
            entered.append((released, due))
            follower = schedule.went_on(due)
            while follower is not None:
                running.append(follower)
                due = todo[follower].pop(0)
                entered.append((follower, due))
                follower = schedule.went_on(due)
        lane = running.pop(chance.randrange(len(running)))
        while todo[lane] and schedule.arrive(lane, todo[lane][0]):
            entered.append((lane, todo[lane].pop(0)))
    assert entered == tape
    assert [list(group) for _, group in groupby(entered, lambda one: one[1].batch)]


@pytest.mark.parametrize("missing", range(5))
def test_a_lane_that_never_comes_costs_one_force(missing):
    order = deliver(*((number, 0) for number in range(5)))
    schedule = Schedule(order)
    for number, due in enumerate(order):
        if number != missing:
            assert not schedule.arrive(number, due)
    entered, forced = [], 0
    while len(schedule):
        released = schedule.release()
        if released is None:
            released, forced = schedule.force(), forced + 1
        assert released is not None
        entered.append(released)
        schedule.went_on(order[released])
    assert entered == [number for number in range(5) if number != missing]
    assert forced == (0 if missing == 4 else 1)


@pytest.mark.parametrize("arrivals", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_those_who_come_late_go_in_the_order_of_the_tape_and_before_all_others(arrivals):
    order = deliver(*((number, 0) for number in range(5)))
    schedule = Schedule(order)
    assert not schedule.arrive(3, order[3])
    assert not schedule.arrive(4, order[4])
    assert schedule.force() == 3
    assert schedule.went_on(order[3]) is None
    for number in arrivals:
        assert not schedule.arrive(number, order[number])
    assert [schedule.release() for _ in range(4)] == [0, 1, 2, 4]
