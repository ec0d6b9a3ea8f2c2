"""Scores: what an evaluator said about a call or a run, in events named ``gen_ai.evaluation.result``.

A note of a person is such an event too, with an id: `playhead_genai.notes`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from playhead_core.otlp.log_records import LogLine
from playhead_core.reports import NAMES
from playhead_genai.other_tools.content_events import CONTENT_EVENTS
from playhead_semconv import attributes as a
from playhead_semconv import events as e

READ_EVENTS: Final = CONTENT_EVENTS | {e.GEN_AI_EVALUATION_RESULT, e.PLAYHEAD_NOTE_WITHDRAWN} | NAMES
"""Events that are read with a run: messages of calls, scores, withdrawals of notes, and reports."""

FIELD: Final = "score."
"""How the names of scores begin in queries."""

_EVALUATORS: Final = (
    "gen_ai.evaluation.evaluator.name",
    "gen_ai.evaluation.evaluator.id",
    "gen_ai.evaluation.evaluator",
    "gen_ai.evaluator.name",
)
"""Attributes in which senders name the evaluator; the conventions define none."""


class Score(msgspec.Struct, frozen=True):
    """The result of one evaluation."""

    name: str
    """Name of the metric."""
    value: float | None
    label: str
    explanation: str
    evaluator: str
    """Empty if the sender does not name it."""
    time_ns: int
    span_id: str
    """The evaluated span; empty if it is unknown."""
    response_id: str
    """The evaluated response; empty if the sender does not name it."""
    note_id: str = ""
    """Id of the note; empty if it is not the note of a person."""

    @property
    def searched(self) -> dict[str, Any]:
        """The score as an attribute that a query can name.

        >>> score_of({"gen_ai.evaluation.name": "tone", "gen_ai.evaluation.score.value": 1}).searched
        {'score.tone': [1.0]}
        """
        told: list[Any] = [self.label] if self.label else []
        return {f"{FIELD}{self.name}": told if self.value is None else [self.value, *told]}

    def to_json(self, step: int | None) -> dict[str, Any]:
        """The score as plain values. ``step``: number of the evaluated step."""
        return {
            "name": self.name,
            "value": self.value,
            "label": self.label or None,
            "explanation": self.explanation or None,
            "evaluator": self.evaluator or None,
            "time_ns": self.time_ns,
            "span_id": self.span_id or None,
            "step": step,
        }


def score_of(attributes: Mapping[str, Any], time_ns: int = 0, span_id: str = "") -> Score | None:
    """Return the score in the attributes of an event; None if the metric has no name."""
    name = _text(attributes.get(a.GEN_AI_EVALUATION_NAME))
    if not name:
        return None
    return Score(
        name,
        _number(attributes.get(a.GEN_AI_EVALUATION_SCORE_VALUE)),
        _text(attributes.get(a.GEN_AI_EVALUATION_SCORE_LABEL)),
        _text(attributes.get(a.GEN_AI_EVALUATION_EXPLANATION)),
        next((said for key in _EVALUATORS if (said := _text(attributes.get(key)))), ""),
        time_ns,
        span_id,
        _text(attributes.get(a.GEN_AI_RESPONSE_ID)),
        _text(attributes.get(a.PLAYHEAD_NOTE_ID)),
    )


def scores_in(lines: Iterable[LogLine]) -> list[Score]:
    """Return the scores in log records, without withdrawn notes."""
    found: list[Score] = []
    withdrawn = set[str]()
    for line in lines:
        if line.event == e.PLAYHEAD_NOTE_WITHDRAWN:
            withdrawn.add(_text(line.attributes.get(a.PLAYHEAD_NOTE_ID)))
        elif line.event == e.GEN_AI_EVALUATION_RESULT:
            score = score_of(line.attributes, line.time_ns, line.span_id)
            found += () if score is None else (score,)
    return [one for one in found if not one.note_id or one.note_id not in withdrawn]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
