"""Whether two groups of runs differ: differences are found, equal groups are not called different."""

from __future__ import annotations

from random import Random

import pytest
from support.analysis.made_paths import path

from playhead_analysis import RunPath
from playhead_analysis.comparison.permutation import Measure, adjusted_p_values, cliffs_delta
from playhead_analysis.comparison.versions import GroupComparison, compare

TOOLS = ("search", "refund", "lookup", "mail")


def run(rng: Random, success: float, refund: float = 0.5) -> RunPath:
    """A run that succeeds and refunds with these probabilities, and is random otherwise."""
    labels = ["chat"]
    for _ in range(rng.randint(1, 3)):
        labels += [rng.choice(("search", "lookup", "mail")) + "!" * (rng.random() < 0.05), "chat"]
    if rng.random() < refund:
        labels += ["refund", "chat"]
    return path(
        labels,
        trace_id=f"{rng.getrandbits(64):032x}",
        status="success" if rng.random() < success else "failure",
        duration_ns=round(rng.lognormvariate(20, 1)),
        cost_usd=rng.random(),
        input_tokens=rng.randint(100, 900),
    )


def runs(seed: int, count: int, success: float, refund: float = 0.5) -> list[RunPath]:
    rng = Random(seed)
    return [run(rng, success, refund) for _ in range(count)]


def differences(found: GroupComparison) -> set[str]:
    return {one.name for one in found.differences}


def test_a_difference_is_found_with_its_size():
    left, right = runs(1, 200, 0.65), runs(2, 200, 0.92, refund=0.9)
    found = compare(left, right)
    assert (found.verdict, found.left_runs, found.right_runs) == ("difference", 200, 200)
    assert {"success", "calls refund"} <= differences(found)
    assert not {"calls search", "cost", "duration"} & differences(found)
    outcome = next(one for one in found.measures if one.name == "success")
    shares = [sum(one.status == "success" for one in side) / 200 for side in (left, right)]
    assert [outcome.left, outcome.right] == shares
    assert compare(left[::-1], right[::-1]) == found


def test_slower_and_dearer_runs_differ_in_nothing_else():
    left = [path("chat search chat", f"a-{n}", cost_usd=n / 1000, duration_ns=n) for n in range(100)]
    right = [
        path("chat search chat", f"b-{n}", cost_usd=n / 1000 + 0.05, duration_ns=n * 3)
        for n in range(100)
    ]
    found = compare(left, right)
    assert differences(found) == {"cost", "duration"}
    assert [one.p for one in found.measures if one.name == "input tokens"] == [1.0]


@pytest.mark.parametrize(
    ("left", "right", "verdict"),
    [
        (0, 200, "too few runs"),
        (12, 12, "too few runs"),
        (200, 200, "no difference found"),
    ],
)
def test_a_verdict_needs_enough_runs(left: int, right: int, verdict: str):
    assert compare(runs(3, left, 0.7), runs(4, right, 0.7)).verdict == verdict


def test_running_runs_are_left_out():
    going = [path("chat", f"c-{n}", status="running", duration_ns=None) for n in range(50)]
    assert compare(runs(5, 60, 0.7) + going, runs(6, 60, 0.7)).left_runs == 60


def test_measures_that_say_the_same_do_not_weaken_each_other():
    values = (*(1.0,) * 14, *(0.0,) * 36, *(1.0,) * 30, *(0.0,) * 20)
    one = Measure(values, is_share=True)
    other = Measure(tuple(1 - value for value in values), is_share=True)
    assert adjusted_p_values([[one]], 50)[0] == adjusted_p_values([[one, other, one]], 50)[0][:1]
    assert cliffs_delta(values[:50], values[50:]) == pytest.approx(30 / 50 - 14 / 50)


@pytest.mark.acceptance
@pytest.mark.timeout(1800)
def test_two_hundred_comparisons_of_equal_and_of_different_groups():
    equal = sum(
        compare(runs(seed, 200, 0.65), runs(seed + 10_000, 200, 0.65)).verdict == "difference"
        for seed in range(200)
    )
    found = sum(
        "success" in differences(compare(runs(seed, 200, 0.65), runs(seed + 10_000, 200, 0.82)))
        for seed in range(200)
    )
    print(f"equal groups called different: {equal} of 200; 65 → 82 % found: {found} of 200")
    assert equal <= 10
    assert found >= 180
