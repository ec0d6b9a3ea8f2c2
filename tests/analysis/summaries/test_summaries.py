"""Summaries: few lines for any run, each names its steps, every failure within three openings."""

from __future__ import annotations

import time
from dataclasses import replace
from random import Random

import pytest
from support.analysis.made_paths import SECOND, path

from playhead_analysis import RunPath
from playhead_analysis.summaries.summary import LINES, SummaryLine, summarize


def test_a_summary_folds_repeats_names_phases_and_failures():
    run = path(["chat", "plan", *["search", "chat"] * 12, "search!", "search!", "search!", "refund"])
    lines = summarize(run).lines
    assert [(one.kind, one.first, one.last, one.text) for one in lines] == [
        ("step", 1, 1, "chat"),
        ("step", 2, 2, "plan"),
        ("repeat", 3, 26, "(search → chat) ×12"),
        ("repeat", 27, 29, "search ×3"),
        ("step", 30, 30, "refund"),
    ]
    assert lines[3] == SummaryLine(
        "repeat", 27, 29, 3, "", 1, "search ×3", 4 * SECOND, None, 3, ["27", "28", "29"], {"timeout": 3}
    )
    opened = summarize(run, 27, 29).lines
    assert [(one.kind, one.first) for one in opened] == [("step", 27), ("step", 28), ("step", 29)]

    steps = tuple(
        replace(step, phase="plan" if step.number < 60 else "act") for step in long_run(200, 0).steps
    )
    parts = summarize(replace(run, steps=steps), lines=10).lines
    assert len(parts) <= 10
    assert {(one.phase, one.phases) for one in parts} == {("plan", 1), ("act", 1)}
    assert [one.last + 1 for one in parts[:-1]] == [one.first for one in parts[1:]]
    assert "mail ×" in parts[0].text and "more" not in parts[0].text


def long_run(steps: int, failures: int) -> RunPath:
    rng = Random(2)
    labels = [rng.choice(["chat", "search", "read", "mail"]) for _ in range(steps)]
    for at in rng.sample(range(steps), failures):
        labels[at] += "!"
    return path(labels)


def openings(run: RunPath, step: str) -> int:
    """How many lines are opened until one names a failed step."""
    first, last, count = 0, None, 0
    while True:
        lines = summarize(run, first, last).lines
        assert len(lines) <= LINES
        line = next(one for one in lines if one.first <= int(step) <= one.last)
        if step in line.failed_steps:
            return count
        first, last, count = line.first, line.last, count + 1


def test_every_failure_of_a_run_is_within_three_openings():
    run = long_run(5000, 400)
    failed = [one.place for one in run.steps if one.status == "error"]
    assert max(openings(run, place) for place in Random(1).sample(failed, 20)) <= 3


@pytest.mark.acceptance
def test_a_run_of_50_000_steps_is_summarized_quickly():
    run = long_run(50_000, 3000)
    took: list[float] = []
    for _ in range(5):
        began = time.process_time()
        summarize(run)
        took.append(time.process_time() - began)
    failed = [one.place for one in run.steps if one.status == "error"]
    deepest = max(openings(run, place) for place in Random(1).sample(failed, 30))
    print(
        f"50,000 steps in 40 lines: {sorted(took)[2] * 1000:.0f} ms of the processor; {deepest} openings"
    )
    assert deepest <= 3
