"""Reports of programs about themselves: decisions, signals, failures, phases, messages, goals, tasks.

A report is a fact on a tape, an event of a span, or a log record, with the same name and attributes.
Senders in other languages write events and log records, so every value is checked when it is read.

>>> checked("playhead.signal", {"playhead.signal.type": "tool_success", "playhead.signal.weight": 7})
({'playhead.signal.type': 'tool_success'}, ['playhead.signal.weight is not a number from 0 to 1'])
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from playhead_semconv import attributes as a
from playhead_semconv import events as e

Kind: TypeAlias = Literal["text", "texts", "fraction", "scalar"]
"""How the value of an attribute is checked; a fraction is a number from 0 to 1."""

FIELDS: Final[Mapping[str, Mapping[str, Kind]]] = {
    e.PLAYHEAD_DECISION: {
        a.PLAYHEAD_DECISION_CHOSEN: "text",
        a.PLAYHEAD_DECISION_QUESTION: "text",
        a.PLAYHEAD_DECISION_TYPE: "text",
        a.PLAYHEAD_DECISION_OPTIONS: "texts",
        a.PLAYHEAD_DECISION_REASON: "text",
        a.PLAYHEAD_DECISION_CONFIDENCE: "fraction",
        a.PLAYHEAD_DECISION_METHOD: "text",
        a.PLAYHEAD_DECISION_REJECTED: "texts",
        a.PLAYHEAD_DECISION_REJECTED_REASONS: "texts",
        a.PLAYHEAD_DECISION_RULES: "texts",
    },
    e.PLAYHEAD_SIGNAL: {
        a.PLAYHEAD_SIGNAL_TYPE: "text",
        a.PLAYHEAD_SIGNAL_CODE: "text",
        a.PLAYHEAD_SIGNAL_VALUE: "scalar",
        a.PLAYHEAD_SIGNAL_WEIGHT: "fraction",
    },
    e.PLAYHEAD_FAILURE: {
        a.PLAYHEAD_FAILURE_CODE: "text",
        a.PLAYHEAD_FAILURE_TYPE: "text",
        a.PLAYHEAD_FAILURE_STEP: "text",
        a.PLAYHEAD_FAILURE_MESSAGE: "text",
    },
    e.PLAYHEAD_PHASE: {
        a.PLAYHEAD_PHASE_NAME: "text",
        a.PLAYHEAD_PHASE_PREVIOUS: "text",
        a.PLAYHEAD_PHASE_TYPE: "text",
        a.PLAYHEAD_PHASE_REASON: "text",
    },
    e.PLAYHEAD_MESSAGE: {
        a.PLAYHEAD_MESSAGE_TO: "text",
        a.PLAYHEAD_MESSAGE_KIND: "text",
        a.PLAYHEAD_MESSAGE_CONTENT: "text",
        a.PLAYHEAD_MESSAGE_CHANNEL: "text",
    },
    e.PLAYHEAD_AGENT: {a.PLAYHEAD_AGENT_TYPE: "text", a.PLAYHEAD_AGENT_ID: "text"},
    e.PLAYHEAD_GOAL: {a.PLAYHEAD_GOAL_TEXT: "text", a.PLAYHEAD_GOAL_TYPE: "text"},
    e.PLAYHEAD_TRIGGER: {
        a.PLAYHEAD_TRIGGER_TYPE: "text",
        a.PLAYHEAD_TRIGGER_RUN: "text",
        a.PLAYHEAD_TRIGGER_ID: "text",
    },
    e.PLAYHEAD_RESULT: {a.PLAYHEAD_RESULT_VALUE: "text"},
    e.PLAYHEAD_TASK: {
        a.PLAYHEAD_TASK_ID: "text",
        a.PLAYHEAD_TASK_NAME: "text",
        a.PLAYHEAD_TASK_STATUS: "text",
        a.PLAYHEAD_TASK_PARENT: "text",
        a.PLAYHEAD_TASK_DEPENDS_ON: "texts",
    },
}
"""The attributes of each report, by the name of its event. The first one is required."""

NAMES: Final = frozenset(FIELDS)
"""Names of the events."""

LISTS: Final = frozenset(
    name for fields in FIELDS.values() for name, kind in fields.items() if kind == "texts"
)
"""The attributes whose values are lists."""

LONGEST: Final = 8000
"""Most characters of a text; the rest is cut off."""
LONGEST_ITEM: Final = 500
"""Most characters of a text in a list, and of a scalar."""
MOST_ITEMS: Final = 100
"""Most texts in a list."""

_LEFT: Final = (a.PLAYHEAD_PHASE_PREVIOUS,)
"""What may stand alone: an agent leaves its outermost phase."""
_WORDS: Final = {
    a.PLAYHEAD_GOAL_TEXT: "goal",
    a.PLAYHEAD_PHASE_NAME: "phase",
    a.PLAYHEAD_DECISION_CHOSEN: "decision",
    a.PLAYHEAD_DECISION_TYPE: "decision",
    a.PLAYHEAD_SIGNAL_TYPE: "signal",
    a.PLAYHEAD_SIGNAL_CODE: "signal",
    a.PLAYHEAD_TRIGGER_RUN: "parent",
    a.PLAYHEAD_AGENT_TYPE: "agent_type",
}
WORD_FIELDS: Final = tuple(dict.fromkeys(_WORDS.values()))
"""Fields of a run by which its reports find it."""


class ProgramReport(msgspec.Struct, frozen=True):
    """A report of a program."""

    kind: str
    """``decision``, ``signal``, …"""
    fields: dict[str, Any]
    """Checked values by their short names: ``chosen``, ``options``."""
    time_ns: int
    span_id: str = ""
    """16 hex digits; empty if it belongs to no span."""
    step: int | None = None
    """The step that it belongs to, else the last one that had begun."""

    def text(self, name: str) -> str:
        """Return the text of a field; empty if it has none."""
        value = self.fields.get(name, "")
        return value if isinstance(value, str) else json.dumps(value)

    def texts(self, name: str) -> list[str]:
        """Return the texts of a field."""
        return list(self.fields.get(name, ()))

    @property
    def rejected(self) -> list[tuple[str, str]]:
        """The rejected options of a decision, each with its reason, which may be empty."""
        reasons = self.texts("rejected_reasons")
        options = self.texts("rejected")
        return [(one, reasons[at] if at < len(reasons) else "") for at, one in enumerate(options)]

    def to_json(self) -> dict[str, Any]:
        """Return it as plain values."""
        return {
            "kind": self.kind,
            "fields": self.fields,
            "time_ns": self.time_ns,
            "span_id": self.span_id or None,
            "step": self.step,
        }


def report_of(
    name: str, attributes: Mapping[str, Any], body: Any = None, time_ns: int = 0, span_id: str = ""
) -> ProgramReport | None:
    """Return the report that an event makes; None if it is none, or lacks what its kind requires.

    ``body``: of a log record; its fields have short names.
    """
    if name not in FIELDS:
        return None
    if isinstance(body, Mapping):
        fields = cast("Mapping[str, Any]", body).items()
        attributes = {f"{name}.{field}": value for field, value in fields} | dict(attributes)
    found, _ = checked(name, attributes)
    if not found:
        return None
    short = {key.removeprefix(f"{name}."): value for key, value in found.items()}
    return ProgramReport(name.removeprefix("playhead."), short, time_ns, span_id)


def checked(name: str, attributes: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the valid attributes of a report, and what is wrong with others.

    No attributes: it lacks the one that is required.
    """
    found: dict[str, Any] = {}
    problems: list[str] = []
    for field, kind in FIELDS[name].items():
        value = attributes.get(field)
        if value is None or value == "":
            continue
        valid = _valid(kind, value)
        if valid is None:
            wanted = "a number from 0 to 1" if kind == "fraction" else "a list of texts"
            problems.append(f"{field} is not {wanted}")
        else:
            found[field] = valid
    required = next(iter(FIELDS[name]))
    if required in found or any(field in found for field in _LEFT):
        return found, problems
    return {}, [*problems, f"{required} is missing"]


def words_in(name: str, attributes: Mapping[str, Any], body: Any = None) -> Iterator[tuple[str, str]]:
    """Yield the words by which a report finds its run, each with its field."""
    report = report_of(name, attributes, body)
    for key, value in () if report is None else report.fields.items():
        if field := _WORDS.get(f"{name}.{key}"):
            yield field, value[:LONGEST_ITEM]


def as_json(attributes: Mapping[str, Any]) -> bytes:
    """Return the attributes of a report as JSON; equal ones give equal bytes."""
    own = {name: one for name, one in attributes.items() if name != a.PLAYHEAD_VOLATILE_PAIRS}
    return json.dumps(own, sort_keys=True, ensure_ascii=False).encode("utf-8", "replace")


def _valid(kind: Kind, value: Any) -> Any:
    """Return a value in the form that its kind asks for; None if it has none."""
    if kind == "texts":
        if not isinstance(value, list | tuple):
            return None
        items = cast("list[Any]", value)[:MOST_ITEMS]
        return [_text("" if one is None else one, LONGEST_ITEM) for one in items]
    if kind == "fraction":
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError, OverflowError):
            return None
        return number if 0 <= number <= 1 else None
    if kind == "scalar":
        is_number = isinstance(value, int | float) and abs(value) < 1 << 63
        return value if is_number or isinstance(value, bool) else _text(value, LONGEST_ITEM)
    return _text(value, LONGEST)


def _text(value: Any, longest: int) -> str:
    if not isinstance(value, str):
        try:
            value = json.dumps(value, ensure_ascii=False, default=repr)
        except (ValueError, RecursionError):
            value = type(value).__name__
    text: str = value[:longest]
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()[:longest]
