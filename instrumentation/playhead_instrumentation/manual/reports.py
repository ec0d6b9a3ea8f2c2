"""Report decisions, signals, failures, phases, messages, goals and tasks of the program."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping
from contextvars import ContextVar
from enum import Enum
from itertools import islice
from types import TracebackType
from typing import Any, Final, TypeVar, cast

from playhead_core.process.own_messages import Log
from playhead_core.reports import LISTS, LONGEST, MOST_ITEMS, checked
from playhead_instrumentation.libraries.common import values
from playhead_instrumentation.patching.lanes import Shadow
from playhead_instrumentation.session.session import Session, current
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.values import PlayheadPhaseType

log = Log(__name__)

T = TypeVar("T")

_TRACE: Final = re.compile(r"(?<![0-9a-fA-F])[0-9a-fA-F]{32}(?![0-9a-fA-F])")
_phase: ContextVar[str] = ContextVar("playhead_phase", default="")
"""The phase of this thread or task."""
_warned: Final[set[str]] = set()


def decision(
    question: str,
    options: Iterable[Any],
    chosen: Any,
    *,
    reason: str = "",
    confidence: float | None = None,
    rejected: Mapping[Any, str] | Iterable[Any] | None = None,
    method: str = "",
    rules: Iterable[Any] | None = None,
    type: str = "",
) -> None:
    """Report a decision: what was asked, the options, and the one that was chosen.

    ``confidence``: from 0 to 1. ``rejected``: options, or a mapping of each to the reason. ``method``:
    ``rule_based``, ``llm_based``, … ``rules``: names of the rules that were applied. ``type``:
    ``tool_selection``, ``retry_strategy``, … A replay fails if the program decides otherwise. Without a
    recording this does nothing.
    """
    _report(
        e.PLAYHEAD_DECISION,
        {
            a.PLAYHEAD_DECISION_QUESTION: question,
            a.PLAYHEAD_DECISION_TYPE: type,
            a.PLAYHEAD_DECISION_OPTIONS: options,
            a.PLAYHEAD_DECISION_CHOSEN: chosen,
            a.PLAYHEAD_DECISION_REASON: reason,
            a.PLAYHEAD_DECISION_CONFIDENCE: confidence,
            a.PLAYHEAD_DECISION_METHOD: method,
            a.PLAYHEAD_DECISION_REJECTED: rejected,
            a.PLAYHEAD_DECISION_REJECTED_REASONS: rejected,
            a.PLAYHEAD_DECISION_RULES: rules,
        },
    )


def signal(type: str, code: str, value: Any = True, *, weight: float | None = None) -> None:
    """Report an atomic fact about quality: ``signal("empty_retrieval", "first_attempt", True)``.

    ``value``: a boolean, a number or a short text. ``weight``: from 0 to 1. Without a recording this
    does nothing.
    """
    _report(
        e.PLAYHEAD_SIGNAL,
        {
            a.PLAYHEAD_SIGNAL_TYPE: type,
            a.PLAYHEAD_SIGNAL_CODE: code,
            a.PLAYHEAD_SIGNAL_VALUE: value,
            a.PLAYHEAD_SIGNAL_WEIGHT: weight,
        },
    )


def failure(type: str, code: str, *, step: str | int = "", message: str = "") -> None:
    """Report a failure: ``failure("tool", "timeout", step="search")``.

    ``type``: ``tool``, ``model``, ``retrieval``, ``orchestration``. ``step``: its name or number.
    ``message``: what shows the failure. Without a recording this does nothing.
    """
    _report(
        e.PLAYHEAD_FAILURE,
        {
            a.PLAYHEAD_FAILURE_TYPE: type,
            a.PLAYHEAD_FAILURE_CODE: code,
            a.PLAYHEAD_FAILURE_STEP: step,
            a.PLAYHEAD_FAILURE_MESSAGE: message,
        },
    )


class Phase:
    """A phase that was entered; as a ``with`` statement it is left at the end of the block."""

    def __init__(self, name: str, previous: str) -> None:
        self._name = name
        self._previous = previous

    def __enter__(self) -> Phase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        _phase.set(self._previous)
        type = PlayheadPhaseType.NORMAL if kind is None else PlayheadPhaseType.ERROR
        _report_phase(self._previous, self._name, type, "" if kind is None else kind.__name__)


def phase(name: str, *, reason: str = "", type: str = PlayheadPhaseType.NORMAL) -> Phase:
    """Report that the program enters a phase, such as ``planning``.

    ``type``: why the phases change: normal, error, retry, skip or jump. In a ``with`` statement the
    program returns to the previous phase at the end of the block. Each thread and task has its own
    phase. Without a recording this does nothing.
    """
    name, previous = _text(name), _phase.get()
    _phase.set(name)
    _report_phase(name, previous, type, reason)
    return Phase(name, previous)


def _report_phase(name: str, previous: str, type: str, reason: str) -> None:
    _report(
        e.PLAYHEAD_PHASE,
        {
            a.PLAYHEAD_PHASE_NAME: name,
            a.PLAYHEAD_PHASE_PREVIOUS: previous,
            a.PLAYHEAD_PHASE_TYPE: type,
            a.PLAYHEAD_PHASE_REASON: reason,
        },
    )


def message(to: str, kind: str, content: Any = "", *, channel: str = "") -> None:
    """Report a message to another agent: ``message("researcher", "task_delegation", "find the price")``.

    ``kind``: ``question``, ``result``, ``status_update``, … ``content``: text, or what can be JSON.
    ``channel``: how it is sent, such as ``slack``. Without a recording this does nothing.
    """
    _report(
        e.PLAYHEAD_MESSAGE,
        {
            a.PLAYHEAD_MESSAGE_TO: to,
            a.PLAYHEAD_MESSAGE_KIND: kind,
            a.PLAYHEAD_MESSAGE_CONTENT: content,
            a.PLAYHEAD_MESSAGE_CHANNEL: channel,
        },
    )


def agent(type: str, *, id: str = "") -> None:
    """Report the type of this agent, such as ``researcher``; ``playhead ls agent_type:…`` finds it.

    ``id``: names it among the agents of its type. Without a recording this does nothing.
    """
    _report(e.PLAYHEAD_AGENT, {a.PLAYHEAD_AGENT_TYPE: type, a.PLAYHEAD_AGENT_ID: id})


def goal(text: str, *, type: str = "") -> None:
    """Report the goal of the run: ``playhead ls goal:…`` finds it. Without a recording: nothing."""
    _report(e.PLAYHEAD_GOAL, {a.PLAYHEAD_GOAL_TEXT: text, a.PLAYHEAD_GOAL_TYPE: type})


def triggered_by(type: str, *, run: str = "", id: str = "") -> None:
    """Report what triggered the run: ``user``, ``scheduler``, ``another_agent``, ``webhook``, …

    ``run``: the run that did, as its trace id, its run id or a ``traceparent``; ``playhead ls root:…``
    then lists both. ``id``: names the trigger, such as a job. Without a recording this does nothing.
    """
    found = _TRACE.search(run) if isinstance(cast("Any", run), str) else None
    _report(
        e.PLAYHEAD_TRIGGER,
        {
            a.PLAYHEAD_TRIGGER_TYPE: type,
            a.PLAYHEAD_TRIGGER_RUN: found[0].lower() if found else run,
            a.PLAYHEAD_TRIGGER_ID: id,
        },
    )


def result(value: T, /) -> T:
    """Report the result of the run, and return it. Without a recording this only returns it."""
    _report(e.PLAYHEAD_RESULT, {a.PLAYHEAD_RESULT_VALUE: value})
    return value


def task(
    id: str | int,
    *,
    name: str = "",
    parent: str | int = "",
    depends_on: Iterable[Any] = (),
    status: str = "",
) -> None:
    """Report a task of the program's task graph, or its new status.

    ``parent``: the task that it is a part of. ``depends_on``: ids of tasks before it. ``status``:
    ``pending``, ``running``, ``completed``, ``failed``, … Without a recording this does nothing.
    """
    _report(
        e.PLAYHEAD_TASK,
        {
            a.PLAYHEAD_TASK_ID: id,
            a.PLAYHEAD_TASK_NAME: name,
            a.PLAYHEAD_TASK_PARENT: parent,
            a.PLAYHEAD_TASK_DEPENDS_ON: depends_on,
            a.PLAYHEAD_TASK_STATUS: status,
        },
    )


def _text(name: Any) -> str:
    """Return the name of a phase, which may be a member of an enum."""
    name = name.value if isinstance(name, Enum) else name
    return str(name) if isinstance(name, str | int) else type(name).__name__


def _report(name: str, attributes: dict[str, Any]) -> None:
    """Record a report. Never raises."""
    session = current()
    if session is None:
        return
    try:
        with Shadow():  # code that an object runs to become text is not part of the run
            clean = {key: _clean(session, key, value) for key, value in attributes.items()}
            found, problems = checked(name, clean)
        for problem in problems:
            if problem not in _warned:
                _warned.add(problem)
                log.warning("playhead: %s; it is left out", problem)
        if found:
            session.reports.append(session.driver, name, found, session.here())
    except Exception:
        log.debug("playhead could not record a report", exc_info=True)


def _clean(session: Session, key: str, value: Any) -> Any:
    """Return a value as a scalar, a text or a list of texts, without credentials.

    A text is cut only after its credentials are replaced: half of one would not be recognized.
    """
    if isinstance(value, Enum):
        value = value.value
    if key == a.PLAYHEAD_DECISION_REJECTED_REASONS:
        value = cast("Any", value).values() if isinstance(value, Mapping) else None
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return session.redactor.text(str(value[: 2 * LONGEST]))
    if key in LISTS and isinstance(value, Collection) and not isinstance(value, bytes | bytearray):
        items = islice(cast("Collection[Any]", value), MOST_ITEMS)
        return [_clean(session, "", one) for one in items]
    from playhead_core.rerun.state_documents import plain  # few reports have objects

    document = plain(json.loads(values.written(value, stubs=[])))
    return session.redactor.text(json.dumps(document, ensure_ascii=False)[: 2 * LONGEST])
