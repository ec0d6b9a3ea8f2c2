"""Conditions that a later run of a golden has to fulfil: ``printed~49 EUR``, ``calls.refund<=1``.

A condition is a subject, a sign, and a value:

======================  ===========================================================================
``status``              ``success`` or ``failure``
``exit``                the exit code
``steps tokens cost``   how many; of cost, US dollars
``calls.TOOL``          how often models called the tool
``tool.TOOL.PATH``      an argument of the last call of the tool
``tools``               the called tools, in order, with commas between them
``printed``             the output on stdout
``answer``              what a model said last
``response``            the body of the last answer that the program, a service, gave
``response.PATH``       a value in that body, which is JSON
``state.PATH``          a value in the state that the program reported last
======================  ===========================================================================

Signs: ``=``, ``!=``; ``~`` contains, ``!~`` does not contain; of numbers ``<``, ``<=``, ``>``, ``>=``. A
value is JSON where it can be read as JSON, else text. Paths are those of edits.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from playhead_core.errors import UsageError, nearest
from playhead_core.rerun.edits import steps_of
from playhead_core.rerun.rewriting import document_in
from playhead_core.rerun.state_documents import at
from playhead_replay.goldens.observed import NotSaid, ObservedRun

Sign: TypeAlias = Literal["=", "!=", "~", "!~", "<", "<=", ">", ">="]

HINT: Final = "printed~TEXT, answer~TEXT, calls.TOOL=1, tool.TOOL.PATH=VALUE, response.PATH=VALUE, …"
SHOWN_CHARS: Final = 300

_CONDITION = re.compile(r"\s*([^=!~<>]+?)\s*(!=|<=|>=|!~|[=~<>])(.*)", re.DOTALL)
_COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NOTHING: Final = object()
"""The value of a subject that the run does not have."""

_NUMBERS: dict[str, Callable[[ObservedRun], Any]] = {
    "exit": lambda run: run.exit_code,
    "steps": lambda run: len(run.steps),
    "tokens": lambda run: sum(run.tokens),
    "cost": lambda run: None if run.usd is None else float(run.usd),
}
_TEXTS: dict[str, Callable[[ObservedRun], Any]] = {
    "status": lambda run: run.status,
    "tools": lambda run: ",".join(run.tools),
    "printed": lambda run: run.printed,
    "answer": lambda run: run.answer,
    "response": lambda run: _response(run),
}
_WITH_PATH = ("calls", "tool", "response", "state")
"""Subjects that go on with a dot."""


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that has to be true of a run."""

    subject: str
    sign: Sign
    value: Any

    def __str__(self) -> str:
        value = self.value if isinstance(self.value, str) else json.dumps(self.value, ensure_ascii=False)
        return f"{self.subject} {self.sign} {value}"

    def found_in(self, run: ObservedRun) -> Any:
        """The value of the subject in ``run``; `NOTHING` if it has none."""
        name, _, path = self.subject.partition(".")
        if not path:
            found = (_NUMBERS | _TEXTS)[name](run)
            return NOTHING if found is None else found
        if name == "calls":
            return run.tools.count(path)
        document = _DOCUMENTS[name](run, path.partition(".")[0])
        place = path.partition(".")[2] if name == "tool" else path
        try:
            return at(document, place)
        except (LookupError, UsageError):
            return NOTHING

    def holds(self, found: Any) -> bool:
        """Whether the condition is fulfilled where its subject has this value."""
        if found is NOTHING:
            return self.sign in ("!=", "!~")
        if self.sign in ("~", "!~"):
            return (_text(self.value) in _text(found)) is (self.sign == "~")
        if self.sign in ("=", "!="):
            same = found == self.value and isinstance(found, bool) is isinstance(self.value, bool)
            return (same or _text(found) == _text(self.value)) is (self.sign == "=")
        try:
            return _COMPARED[self.sign](float(found), float(self.value))
        except (TypeError, ValueError):
            return False


def read_condition(text: str) -> Condition:
    """Parse a condition. `UsageError`.

    >>> read_condition("calls.refund <= 1")
    Condition(subject='calls.refund', sign='<=', value=1)
    """
    parts = _CONDITION.fullmatch(text)
    if parts is None:
        raise UsageError(f"{text!r} is not a condition", hint=HINT)
    subject, sign, said = parts.groups()
    _require_known(subject)
    value = _value(said.strip())
    if sign in _COMPARED and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise UsageError(f"{text!r}: {value!r} is not a number", hint=f"{subject}{sign}5")
    return Condition(subject, sign, value)  # type: ignore[arg-type]


def unfulfilled(run: ObservedRun, conditions: Iterable[str]) -> list[tuple[Condition, str]]:
    """The conditions that do not hold for ``run``, each with what was found instead."""
    found: list[tuple[Condition, str]] = []
    for text in conditions:
        condition = read_condition(text)
        value = condition.found_in(run)
        if not condition.holds(value):
            found.append((condition, _shown(value)))
    return found


def _require_known(subject: str) -> None:
    name, dot, path = subject.partition(".")
    if not dot and name in _NUMBERS | _TEXTS:
        return
    if path and name in _WITH_PATH and (name != "tool" or "." in path):
        if name in ("response", "state"):
            steps_of(path)
        return
    subjects = [*_NUMBERS, *_TEXTS, "calls.TOOL", "tool.TOOL.PATH", "response.PATH", "state.PATH"]
    near = nearest(name, [*_NUMBERS, *_TEXTS, *_WITH_PATH])
    raise UsageError(
        f"a run has no {subject}",
        cause=f"it has {', '.join(subjects)}",
        hint=f"did you mean {near}?" if near else HINT,
    )


def _response(run: ObservedRun) -> Any:
    requests = run.requests
    return b"".join(requests[-1].pieces).decode("utf-8", "replace") if requests else None


def _arguments(run: ObservedRun, tool: str) -> Any:
    calls = [call.arguments for call in run.calls if call.name == tool]
    return calls[-1] if calls else None


def _state(run: ObservedRun, _: str) -> Any:
    try:
        return run.state(len(run.steps))
    except NotSaid:
        return None


_DOCUMENTS: dict[str, Callable[[ObservedRun, str], Any]] = {
    "tool": _arguments,
    "response": lambda run, _: document_in(_response(run)),
    "state": _state,
}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _shown(value: Any) -> str:
    text = "(nothing)" if value is NOTHING else _text(value).strip()
    return text if len(text) <= SHOWN_CHARS else f"{text[: SHOWN_CHARS - 1]}…"
