"""Objects of the query API: runs, their trees, search hits, artifacts, conversations, statistics."""

from __future__ import annotations

from typing import Any, Literal

from playhead_receiver.api.models.model import Model, SpanId, Status, TraceId


class Missing(Model):
    """Facts that a process recorded and the receiver did not get."""

    instance: str
    first: int
    last: int


class RunItem(Model):
    """A run in a list."""

    name: str
    trace_id: TraceId
    root_span_id: str
    agent: str
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


class RunFailures(Model):
    """The failures of a run, in order of steps."""

    failures: list[FailureItem]
    status_reason: str | None
    """Why a run with status success is not a plain one: `cut off: length`, `content filter`."""


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


class Stats(Model):
    """Sums over runs."""

    total: Group
    groups: list[Group]
    truncated: bool
    """Whether more runs matched than were read."""
    size_bytes: int
    position: int
    behind: int
