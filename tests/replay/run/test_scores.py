"""Results of evaluations, from events of spans and from log records."""

from __future__ import annotations

from typing import Any

import pytest

from playhead_genai.scores import Score, score_of
from playhead_replay.logs import scores_of
from playhead_replay.run.spans import Span, SpanEvent

RESULT = "gen_ai.evaluation.result"


def span(span_id: str, response: str = "", events: tuple[SpanEvent, ...] = ()) -> Span:
    at = {"gen_ai.response.id": response} if response else {}
    return Span("1" * 32, span_id, "", "chat", 3, 1, 2, at, events=list(events))


def score(**more: Any) -> dict[str, Any]:
    return {"gen_ai.evaluation.name": "tone", **{f"gen_ai.evaluation.{k}": v for k, v in more.items()}}


def test_what_an_event_says():
    said = score_of(
        {
            **score(explanation="kind"),
            "gen_ai.evaluation.score.value": 1,
            "gen_ai.evaluation.score.label": "polite",
            "gen_ai.evaluation.evaluator.name": "judge",
        },
        7,
        "a" * 16,
    )
    assert said == Score("tone", 1.0, "polite", "kind", "judge", 7, "a" * 16, "")
    assert said.searched == {"score.tone": [1.0, "polite"]}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.5", 10**400, None, [1]])
def test_what_is_no_number(value: object):
    said = score_of({"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.value": value})
    assert said is not None and said.value is None


@pytest.mark.parametrize("name", ["", None, 7, ["tone"]])
def test_a_score_without_a_name(name: object):
    assert score_of({"gen_ai.evaluation.name": name}) is None


def test_a_score_belongs_to_its_span_or_to_the_span_with_its_response():
    event = SpanEvent(RESULT, 5, score())
    logged = [
        Score("late", 1.0, "", "", "", 9, "", "response-2"),
        Score("early", 0.0, "", "", "", 1, "", "another"),
    ]
    found = scores_of([span("a" * 16, events=(event,)), span("b" * 16, "response-2")], logged)
    assert [(one.name, one.span_id) for one in found] == [
        ("early", ""),
        ("tone", "a" * 16),
        ("late", "b" * 16),
    ]
