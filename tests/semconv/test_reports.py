"""Values of reports are checked: they come from programs and from any sender."""

from __future__ import annotations

import math
from typing import Any

import pytest

from playhead_core.reports import LONGEST, MOST_ITEMS, ProgramReport, checked, report_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e

DECISION = {a.PLAYHEAD_DECISION_CHOSEN: "search"}


@pytest.mark.parametrize(
    ("name", "value", "valid"),
    [
        (a.PLAYHEAD_DECISION_REASON, "x" * 2 * LONGEST, "x" * LONGEST),
        (a.PLAYHEAD_DECISION_REASON, 7, "7"),
        (a.PLAYHEAD_DECISION_REASON, {"why": ["\ud800é"]}, '{"why": ["\\ud800é"]}'),
        (a.PLAYHEAD_DECISION_OPTIONS, ["a"] * 1000, ["a"] * MOST_ITEMS),
        (a.PLAYHEAD_DECISION_OPTIONS, [1, None, "b"], ["1", "", "b"]),
        (a.PLAYHEAD_DECISION_OPTIONS, "a, b", None),
        (a.PLAYHEAD_DECISION_CONFIDENCE, 1, 1.0),
        (a.PLAYHEAD_DECISION_CONFIDENCE, "0.5", 0.5),
        (a.PLAYHEAD_DECISION_CONFIDENCE, math.nan, None),
        (a.PLAYHEAD_DECISION_CONFIDENCE, -1, None),
        (a.PLAYHEAD_DECISION_CONFIDENCE, True, None),
        (a.PLAYHEAD_DECISION_CONFIDENCE, 10**400, None),
    ],
)
def test_a_value_is_made_valid_or_left_out(name: str, value: Any, valid: Any):
    found, problems = checked(e.PLAYHEAD_DECISION, {**DECISION, name: value})
    assert found.get(name) == valid
    assert len(problems) == (valid is None)


def test_what_is_no_report():
    assert report_of("playhead.other", DECISION) is None
    assert report_of(e.PLAYHEAD_DECISION, {a.PLAYHEAD_DECISION_QUESTION: "which"}) is None
    assert report_of(e.PLAYHEAD_DECISION, DECISION, body="text") is not None


def test_the_body_of_a_log_record_has_short_names():
    body = {"chosen": "refund", "question": "which", "unknown": 1}
    report = report_of(e.PLAYHEAD_DECISION, DECISION, body, 7, "a" * 16)
    fields = {"chosen": "search", "question": "which"}
    assert report == ProgramReport("decision", fields, 7, "a" * 16)
