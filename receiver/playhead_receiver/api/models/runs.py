"""Objects of the query API: runs, their trees, search hits, artifacts, conversations, statistics."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from playhead_receiver.api.models.model import Model, SpanId, Status, TraceId


class Missing(Model):
    """Facts that a process recorded and the receiver did not get."""

    instance: str
    first: int
    last: int


class Now(Model):
    """What a running run does."""

    what: Literal["model", "stream", "tool", "request", "person", "code"]
    """``model``: no answer yet; ``stream``: its answer arrives; ``code``: nothing is pending."""
    name: str
    """Of the model, the tool or the request; why a person is waited for."""
    since_ns: int
    progress_ns: int
    """The last sign of progress: of a stream its last chunk."""


class RunItem(Model):
    """A run in a list."""

    name: str
    trace_id: TraceId
    root_span_id: str
    agent: str
    agent_types: list[str]
    """What programs or attributes say that its agents are: researcher, coder, …"""
    version: str
    environment: str
    conversation: str
    conversations: list[str]
    users: list[str]
    tags: list[str]
    prompts: list[str]
    prompt_versions: list[str]
    releases: list[str]
    """Versions of its services."""
    input: str
    """User message of the first call, else the first request; like ``result`` cut to 500 characters."""
    result: str
    """Last response of a model, tool or service. Like ``input``, empty if it is not recorded."""
    status: Status
    mode: str
    origin: str
    started_ns: int
    ended_ns: int | None
    last_ns: int
    steps: int
    spans: int
    errors: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    unpriced: list[str]
    models: list[str]
    providers: list[str]
    tools: list[str]
    error_types: list[str]
    failure_codes: list[str]
    """Failures that the receiver derived: ``tool/timeout``. The run did not recover from them."""
    recovered_codes: list[str]
    """Failures that the run recovered from."""
    loop_names: list[str]
    """Calls that repeat with equal results: ``search ×20``."""
    stuck: str
    """Why a running run makes no progress: loop, silent_stream, hung_tool, no_answer, no_progress."""
    now: Now | None
    """What a running run does; null if it is over, or if its process is not recorded."""
    instances: list[str]
    missing: list[Missing]
    marks: list[str]


class RunPage(Model):
    """A page of runs."""

    runs: list[RunItem]
    next: str | None
    """`after` of the next page; null at the end."""


class SpanLine(Model):
    """A span in the tree of a run, without its content."""

    span_id: SpanId
    parent_id: SpanId | None
    depth: int
    children: int
    descendants: int
    failures: int
    name: str
    kind: int
    started_ns: int
    ended_ns: int | None
    failed: bool
    error: str | None
    operation: str
    tool: str
    model: str
    method: str
    """HTTP method; like URL and status code, empty or null for other spans."""
    url: str
    status_code: int | None
    step: bool
    """Whether it counts as a step."""
    attempt: bool
    """Whether it is an attempt of a step."""
    input_tokens: int
    output_tokens: int


class RunTree(Model):
    """A run and a page of its span tree, depth first by start time."""

    run: RunItem
    total: int
    """Number of spans in the requested part."""
    offset: int
    spans: list[SpanLine]
    next: int | None
    """`offset` of the next page; null at the end."""


class Marks(Model):
    """The marks of a run."""

    trace_id: TraceId
    marks: list[str]


class Removed(Model):
    """What was deleted."""

    runs: int
    spans: int
    facts: int
    blobs: int
    checkpoints: int
    wiped: bool


class SearchHit(Model):
    """A search hit."""

    run: str
    trace_id: TraceId
    step: int | None
    """Number of the step, as `playhead show` counts; null if it belongs to none."""
    span_id: str
    """Span that contains it; may be empty."""
    time_ns: int
    who: str
    """Source: a role, a tool, the method of a request, the name of an attribute, or a stream."""
    excerpt: str
    """Surrounding text."""
    highlights: list[tuple[int, int]]
    """Matches in the excerpt: start and end offset."""


class SearchPage(Model):
    """Search hits by run, newest first. A text is reported once per run."""

    hits: list[SearchHit]
    behind: int
    """Batches that are not indexed yet."""


class ArtifactItem(Model):
    """An artifact that a run produced, or received in a message."""

    name: str
    made: Literal["named", "file", "message"]
    """`named`: by `playhead.artifact`; `file`: written below the run's folder; `message`: in one."""
    media_type: str
    """Media type as reported by the program or provider; may be empty."""
    size_bytes: int
    digest: str
    """BLAKE3 of the content, in hex; empty if it was not recorded."""
    span_id: str
    """Span that produced it; empty if unknown."""
    step: int | None
    time_ns: int
    inexact: str | None
    """Why the content is missing or differs; null if exact."""


class Artifacts(Model):
    """The artifacts of a run, by time."""

    artifacts: list[ArtifactItem]


class ToolCallItem(Model):
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


class RunToolCalls(Model):
    """The tool calls of a run, in order of the steps that asked for them."""

    tool_calls: list[ToolCallItem]


class FailureItem(Model):
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


class LoopItem(Model):
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


class SignalItem(Model):
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


class RunFailures(Model):
    """The failures of a run, in order of steps, its loops and signals."""

    failures: list[FailureItem]
    loops: list[LoopItem]
    signals: list[SignalItem]
    status_reason: str | None
    """Why a run with status success is not a plain one: `cut off: length`, `content filter`."""
    unrecorded: dict[str, list[str]]
    """Hosts whose traffic was not recorded, by library. Empty name: the program's own modules."""


class ReportItem(Model):
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


class RunReports(Model):
    """What the programs of a run reported about themselves, by time."""

    reports: list[ReportItem]


class RejectedOption(Model):
    """An option that was rejected."""

    option: str
    reason: str | None


class DecisionItem(Model):
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


class TransitionItem(Model):
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


class TaskItem(Model):
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


class SessionItem(Model):
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


class RunDecisions(Model):
    """The decisions of a run, by time."""

    decisions: list[DecisionItem]


class RunTransitions(Model):
    """The session of a run, and the states that it passes."""

    session: SessionItem
    transitions: list[TransitionItem]


class RunFindings(RunFailures, RunDecisions, RunTransitions, RunReports):
    """What a run means: everything that its programs reported or that is derived from its steps."""


class ScoreItem(Model):
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


class RunScores(Model):
    """Results of evaluations of a run, by time."""

    scores: list[ScoreItem]


class NoteOrder(BaseModel):
    """A note about a run or a step: a text, a score, or both."""

    model_config = ConfigDict(extra="forbid")
    step: Annotated[int | None, Field(ge=1, le=100_000_000, description="Null: the run.")] = None
    text: Annotated[str, Field(max_length=20_000)] = ""
    name: Annotated[
        str, Field(max_length=200, description="Name of the score; `correct` with a label.")
    ] = ""
    value: Annotated[float | None, Field(allow_inf_nan=False)] = None
    label: Annotated[
        Literal["right", "wrong"] | None, Field(description="Marks the step as right or wrong.")
    ] = None
    author: Annotated[
        str, Field(max_length=200, description="Used if the caller's token has no name.")
    ] = ""


class NoteItem(Model):
    """A note of a person about a run or a step."""

    id: str
    step: int | None
    """Null: the run."""
    span_id: str | None
    text: str
    name: str
    """Name of its score; `note` if it has only a text."""
    value: float | None
    label: str | None
    author: str
    """Empty if it is unknown."""
    time_ns: int
    own: bool
    """Whether the caller may withdraw it."""


class RunNotes(Model):
    """The notes about a run, by time."""

    notes: list[NoteItem]


class Conversation(Model):
    """The runs of one conversation."""

    id: str
    agent: str
    runs: int
    started_ns: int
    last_ns: int
    status: Status
    """Of its last run."""
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """Null if no price is known."""
    unpriced_runs: int
    """Runs with calls of unknown price, which the cost leaves out."""


class ConversationPage(Model):
    """Conversations, most recent first."""

    conversations: list[Conversation]
    truncated: bool


class Group(Model):
    """Aggregates of a group of runs."""

    key: str
    runs: int
    statuses: dict[str, int]
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    cached_tokens: int
    reasoning_tokens: int
    cost_usd: float | None
    """Null if no price is known."""
    unpriced_runs: int
    """Runs with calls of unknown price, which the cost leaves out."""
    duration_ns: int
    duration_p50_ns: int | None
    """50th percentile (nearest rank) of finished runs; null if none has finished."""
    duration_p90_ns: int | None
    duration_p99_ns: int | None


class FacetValue(Model):
    """A value that runs have in common."""

    value: str
    runs: int


class Facets(Model):
    """How many runs have which values, of the runs that a list with the same query shows."""

    runs: int
    facets: dict[str, list[FacetValue]]
    """By field of the query language; the most frequent values first. Empty values are left out."""
    truncated: bool
    """Whether more runs match than were counted."""


class Stats(Model):
    """Sums over runs."""

    total: Group
    groups: list[Group]
    truncated: bool
    """Whether more runs matched than were read."""
    size_bytes: int
    position: int
    behind: int
