"""JSON objects of what a run means: the API and ``--json`` have the same.

Times are nanoseconds since the epoch, durations nanoseconds, ids hexadecimal. Null: unknown or absent.
"""

from __future__ import annotations

from typing import Any, Literal

from typing_extensions import TypedDict


class ToolCallItem(TypedDict):
    """A tool call of a model, from its messages."""

    number: str
    """Step whose answer has the call, and its place in it: `3.1`."""
    name: str
    id: str | None
    """Id in the messages; null if the provider gives none."""
    asked_by: int
    """The step whose answer has the call."""
    arguments: Any
    result: Any
    """Null if no later request has it."""
    error: str | None
    """Why it failed, as its result says; null if it does not."""
    attempt: int
    """From 1: number of times that the same call was made because the one before failed."""
    started_ns: int
    ended_ns: int | None
    derived: bool
    """Whether only the messages report the call; its times are then those of answer and next request."""
    span_id: str | None
    """The span that reports the same call; null if none does."""


class FailureItem(TypedDict):
    """A failure in a run, derived from its steps."""

    type: Literal["tool", "model", "retrieval", "orchestration"]
    code: str
    """`rate_limit`, `no_results`, `cut_off`, …"""
    step: int | None
    """Null: it belongs to no step."""
    place: str | None
    """Number of the step, or of a tool call that only the messages report: `3.1`."""
    name: str
    """Operation of the model, or name of the tool or exception."""
    source: Literal["status", "exception", "finish_reason", "result", "arguments", "output", "check"]
    evidence: str
    recovered: bool
    """Whether a later attempt, or a later step of the same kind, succeeded."""
    times: int
    """Failed attempts."""
    derived: bool
    version: int
    """Version of the rules that derive failures."""


class LoopItem(TypedDict):
    """Calls that repeat in equal rounds."""

    period: int
    """Calls of a round."""
    times: int
    """Rounds."""
    names: list[str]
    """What the calls of a round are: names of tools, models or requests."""
    first: str
    """Number of the first step, or of a tool call that only the messages report: `3.1`."""
    last: str
    started_ns: int
    ended_ns: int
    same_result: bool
    """Whether the rounds had the same results; if not, it does not count as a loop."""
    derived: bool


class SignalItem(TypedDict):
    """A fact about a step, derived in neutral words."""

    type: str
    """`tool_success`, `retry_occurred`, `schema_valid`, `instruction_from_data`, …"""
    code: str
    """`first_attempt`, `after_retry`, `validation_failed`, …"""
    value: bool
    step: int
    place: str
    """Number of the step, or of a tool call that only the messages report: `3.1`."""
    name: str
    evidence: str
    derived: bool
    version: int


class ReportItem(TypedDict):
    """What a program reported about itself: a decision, a signal, a failure, a phase, …"""

    kind: Literal[
        "decision",
        "signal",
        "failure",
        "phase",
        "message",
        "agent",
        "goal",
        "trigger",
        "result",
        "task",
    ]
    fields: dict[str, Any]
    """By name, without those that are not reported: `chosen`, `options`, `confidence`."""
    time_ns: int
    span_id: str | None
    step: int | None
    """The step that it belongs to, else the last one that had begun; null: none had."""


class RejectedOption(TypedDict):
    """An option that was rejected."""

    option: str
    reason: str | None


class DecisionItem(TypedDict):
    """A decision: reported by the program, or derived from what a model does with its tools."""

    question: str | None
    type: str | None
    chosen: str
    """Several tools are separated by commas; `(no tool)` if a model calls none."""
    options: list[str]
    rejected: list[RejectedOption]
    rules: list[str]
    """Names of the rules that were applied."""
    reason: str | None
    method: str | None
    confidence: float | None
    """From 0 to 1: reported, else of the log probabilities of the answer."""
    step: int | None
    time_ns: int
    thought: str | None
    """Reasoning and text of the model before its calls."""
    actions: list[str]
    """Numbers of the tool calls that follow from it: `3.1`."""
    outcome: str | None
    """Result of an action, or why the first one that failed did."""
    failed: bool
    """Whether an action failed."""
    recovered_by: str | None
    """The later call of the same tool that succeeded."""
    derived: bool
    version: int | None
    """Version of the rules that derive decisions; null: it is reported."""


class TransitionItem(TypedDict):
    """A change of states: a reported phase, a node of a framework, or derived from steps."""

    sequence: int
    previous: str | None
    """The state that is left."""
    state: str | None
    """The state that is entered; null: none, as between two phases."""
    type: str
    """normal, error, retry, skip or jump."""
    reason: str | None
    trigger: str
    time_ns: int
    lasted_ns: int | None
    """Time in the state that is entered; null while the run is in it."""
    step: int | None
    source: Literal["phase", "framework", "steps"]
    derived: bool
    version: int | None


class TaskItem(TypedDict):
    """A task of the task graph that a program reports."""

    id: str
    name: str | None
    status: str | None
    """The last one that was reported."""
    parent: str | None
    """The task that it is a part of."""
    depends_on: list[str]
    """Ids of the tasks before it."""
    began_ns: int
    """When it was first reported."""
    ended_ns: int | None
    depth: int
    """In the tree of parts; 0: part of no task."""


class SessionItem(TypedDict):
    """What a run is about and how far it is."""

    agent: str
    agent_type: str | None
    agent_id: str | None
    """What names it among the agents of its type."""
    goal: str | None
    goal_type: str | None
    trigger: str | None
    parent: str | None
    """The run that triggered it."""
    tasks: list[str]
    """Ids of the tasks of its task graph."""
    task_graph: list[TaskItem]
    """These tasks as a tree: each one followed by its parts."""
    result: str | None
    status: Literal[
        "initializing", "planning", "executing", "waiting", "completed", "failed", "cancelled"
    ]
    status_derived: bool
    """Whether no program reported it as a phase."""


class ScoreItem(TypedDict):
    """The result of an evaluation of a call or a run."""

    name: str
    """Name of the metric."""
    value: float | None
    label: str | None
    explanation: str | None
    evaluator: str | None
    time_ns: int
    span_id: str | None
    """The evaluated span."""
    step: int | None
    """The evaluated step; null: another span, or the run."""
