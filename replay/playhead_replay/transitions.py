"""Find the states that a run passes: reported phases, nodes of frameworks, else derived ones.

A run that reports phases has these states and no others. A run of a framework has the nodes of its
graph. Any other run has derived states: thinking (a model answers), tool, retrying (an attempt failed,
until the call ends), waiting (for a person: a line of input, or a pause).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal, TypeAlias

from playhead_core.reports import ProgramReport
from playhead_genai.run_fields import FIELDS, values_in
from playhead_genai.steps import Role
from playhead_replay.json_objects.findings import SessionItem, TransitionItem
from playhead_replay.run.run import Run
from playhead_replay.run.spans import Span
from playhead_replay.run.steps import role_of
from playhead_replay.tasks import Task, tasks_of
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.values import PlayheadPhaseType as Type

VERSION: Final = 2
"""Changes with the rules below: transitions that were derived with another version may differ."""

Source: TypeAlias = Literal["phase", "framework", "steps"]
"""What a transition is known from."""
SessionStatus: TypeAlias = Literal[
    "initializing", "planning", "executing", "waiting", "completed", "failed", "cancelled"
]
STATUSES: Final[tuple[SessionStatus, ...]] = (
    "initializing",
    "planning",
    "executing",
    "waiting",
    "completed",
    "failed",
    "cancelled",
)
ENDED: Final[dict[str, SessionStatus]] = {
    "success": "completed",
    "partial": "completed",
    "failure": "failed",
    "interrupted": "cancelled",
}
"""The status of the session of a run that is over, by the run's status."""


@dataclass(frozen=True, slots=True)
class Transition:
    """A change of states."""

    sequence: int
    """From 1."""
    previous: str
    """The state that is left; empty for the first one."""
    state: str
    """The state that is entered; empty: none, as between two phases."""
    type: str
    """normal, error, retry, skip or jump."""
    reason: str
    trigger: str
    """The event or the step that caused it."""
    time_ns: int
    step: int | None
    source: Source
    lasted_ns: int | None = None
    """Time in the state that is entered; None while the run is in it."""

    @property
    def derived(self) -> bool:
        """Whether no program reported it."""
        return self.source != "phase"

    def to_json(self) -> TransitionItem:
        """Return it as an object of plain values."""
        return {
            "sequence": self.sequence,
            "previous": self.previous or None,
            "state": self.state or None,
            "type": self.type,
            "reason": self.reason or None,
            "trigger": self.trigger,
            "time_ns": self.time_ns,
            "lasted_ns": self.lasted_ns,
            "step": self.step,
            "source": self.source,
            "derived": self.derived,
            "version": VERSION if self.derived else None,
        }


@dataclass(frozen=True, slots=True)
class AgentSession:
    """What a run is about and how far it is."""

    agent: str
    agent_type: str
    """Reported by a program, else by an attribute of a span or resource; else empty."""
    agent_id: str
    goal: str
    goal_type: str
    trigger: str
    parent: str
    """The run that triggered it; empty if none is reported."""
    tasks: list[Task]
    """Its task graph: each task followed by its parts."""
    result: str
    status: SessionStatus
    status_derived: bool
    """Whether no program reported it as a phase."""

    def to_json(self) -> SessionItem:
        """Return it as an object of plain values."""
        return {
            "agent": self.agent,
            "agent_type": self.agent_type or None,
            "agent_id": self.agent_id or None,
            "goal": self.goal or None,
            "goal_type": self.goal_type or None,
            "trigger": self.trigger or None,
            "parent": self.parent or None,
            "tasks": [one.id for one in self.tasks],
            "task_graph": [one.to_json() for one in self.tasks],
            "result": self.result or None,
            "status": self.status,
            "status_derived": self.status_derived,
        }


def transitions_of(run: Run) -> list[Transition]:
    """Return the transitions of a run by time."""
    phases = [one for one in run.reports if one.kind == "phase"]
    if phases:
        found = list(_of_phases(phases))
    else:
        nodes = [span for span in run.spans if _is_node(span)]
        found = list(_of_nodes(run, nodes)) if nodes else list(_of_steps(run))
    ends = [*(one.time_ns for one in found[1:]), run.ended_ns]
    return [
        replace(one, sequence=at, lasted_ns=None if end is None else max(end - one.time_ns, 0))
        for at, (one, end) in enumerate(zip(found, ends, strict=False), 1)
    ]


def session_of(run: Run, transitions: Sequence[Transition]) -> AgentSession:
    """Return what a run is about and how far it is. Of several reports the last one counts."""
    last = {one.kind: one for one in run.reports}
    kinds = ("agent", "goal", "trigger", "result")
    agent, goal, trigger, result = (last.get(kind, _NOTHING) for kind in kinds)
    status, derived = _status_of(run, transitions)
    return AgentSession(
        run.agent,
        agent.text("type") or _agent_type(run),
        agent.text("id"),
        goal.text("text"),
        goal.text("type"),
        trigger.text("type"),
        trigger.text("run"),
        tasks_of(run.reports),
        result.text("value"),
        status,
        derived,
    )


_NOTHING: Final = ProgramReport("", {}, 0)


def _agent_type(run: Run) -> str:
    """Return the type that senders give as an attribute of a span or resource; empty if none does."""
    for span in run.spans:
        for name in FIELDS["agent_type"]:
            for attributes in (span.attributes, span.resource):
                if name in attributes and (said := next(values_in("agent_type", attributes[name]), "")):
                    return said
    return ""


def _status_of(run: Run, transitions: Sequence[Transition]) -> tuple[SessionStatus, bool]:
    if run.status in ENDED:
        return ENDED[run.status], True
    state = transitions[-1].state if transitions else ""
    for status in STATUSES:
        if status == state:
            return status, transitions[-1].derived
    begun: SessionStatus = "executing" if state or run.steps else "initializing"
    return begun, True


def _of_phases(phases: Iterable[ProgramReport]) -> Iterator[Transition]:
    for one in phases:
        kind, reason = one.text("type") or Type.NORMAL, one.text("reason")
        previous, state = one.text("previous"), one.text("name")
        yield Transition(0, previous, state, kind, reason, "phase", one.time_ns, one.step, "phase")


def _is_node(span: Span) -> bool:
    return a.PLAYHEAD_FRAMEWORK_NAME in span.attributes and a.PLAYHEAD_STEP_NAME in span.attributes


def _of_nodes(run: Run, nodes: Iterable[Span]) -> Iterator[Transition]:
    """Yield the transitions between nodes. A node again after a failure of it is a retry."""
    owners, previous = run.steps_of_spans(), None
    for span in sorted(nodes, key=lambda one: one.started_ns):
        name = str(span.attributes[a.PLAYHEAD_STEP_NAME])
        left = "" if previous is None else str(previous.attributes[a.PLAYHEAD_STEP_NAME])
        kind, reason = Type.NORMAL, ""
        if previous is not None and previous.failed:
            kind, reason = (Type.RETRY if left == name else Type.ERROR), previous.error
        trigger = str(span.attributes[a.PLAYHEAD_FRAMEWORK_NAME])
        step = next((owners[one.span_id] for one in span.walk() if one.span_id in owners), None)
        yield Transition(0, left, name, kind, reason, trigger, span.started_ns, step, "framework")
        previous = span


def _of_steps(run: Run) -> Iterator[Transition]:
    """Yield derived transitions: between thinking, tool, retrying and waiting."""
    previous, error = "", ""
    for time_ns, state, trigger, number, failed in sorted(_moments(run), key=lambda one: one[0]):
        if state != previous or error:
            kind = Type.RETRY if state == "retrying" else Type.ERROR if error else Type.NORMAL
            yield Transition(0, previous, state, kind, error, trigger, time_ns, number, "steps")
        previous, error = state, failed


def _moments(run: Run) -> Iterator[tuple[int, str, str, int | None, str]]:
    """Yield when each state begins: time, state, trigger, step, and the error that ends it."""
    for step in run.steps:
        span, state = step.span, "thinking" if role_of(step.span) >= Role.CALL else "tool"
        yield span.started_ns, state, span.name, step.number, span.error if span.failed else ""
        for attempt in step.attempts[:-1]:
            if attempt.failed and attempt is not span and attempt.ended_ns is not None:
                yield attempt.ended_ns, "retrying", attempt.error, step.number, ""
    for exchange in run.exchanges:
        if exchange.id.kind == "stdin":
            yield exchange.exchange.time_ns, "waiting", "stdin", None, ""
    for tape in run.tapes:
        for fact in tape.named(e.PLAYHEAD_CONTROL_HALT):
            by = str(fact.attributes.get(a.PLAYHEAD_CONTROL_BY, "")) or "pause"
            yield fact.time_ns, "waiting", by, None, ""
        for fact in tape.named(e.PLAYHEAD_INPUT):
            if fact.attributes.get(a.PLAYHEAD_INPUT_PENDING) is True:
                yield fact.time_ns, "waiting", str(fact.attributes.get(a.PLAYHEAD_INPUT_KEY)), None, ""
