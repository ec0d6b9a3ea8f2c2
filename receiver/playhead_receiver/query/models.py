"""What the query API answers, as OpenAPI describes it. Times are ns since the epoch, ids hexadecimal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Status = Literal["running", "success", "failure", "partial", "interrupted"]
TraceId = Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
SpanId = Annotated[str, Field(pattern="^[0-9a-f]{16}$")]


class Model(BaseModel):
    """Read off objects of ours by name."""

    model_config = ConfigDict(from_attributes=True)


class Missing(Model):
    """Facts of a process that were written and did not come."""

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
    """Some runs of a list."""

    runs: list[RunItem]
    next: str | None
    """``after`` of the next page; null at the end."""


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
    """Of an HTTP request, as its URL and the status of its answer; empty or null for other spans."""
    url: str
    status_code: int | None
    step: bool
    attempt: bool
    input_tokens: int
    output_tokens: int


class RunTree(Model):
    """A run and a window on the tree of its spans, depth first in order of start."""

    run: RunItem
    total: int
    """Spans in the part of the tree that was asked for."""
    offset: int
    spans: list[SpanLine]
    next: int | None
    """``offset`` of the next window; null at the end."""


class SpanEvent(Model):
    """An event of a span."""

    name: str
    time_ns: int
    attributes: dict[str, Any]


class SpanLink(Model):
    """A link of a span."""

    trace_id: str
    span_id: str
    attributes: dict[str, Any]


class SpanScope(Model):
    """The instrumentation scope of a span."""

    name: str
    version: str
    attributes: dict[str, Any]


class WholeSpan(Model):
    """A span with all that it holds."""

    trace_id: TraceId
    span_id: SpanId
    parent_id: SpanId | None
    name: str
    kind: int
    started_ns: int
    ended_ns: int | None
    status: Literal["unset", "ok", "error"]
    status_message: str
    attributes: dict[str, Any]
    events: list[SpanEvent]
    links: list[SpanLink]
    resource: dict[str, Any]
    scope: SpanScope


class SpanMessages(Model):
    """What a call said and was told."""

    trace_id: TraceId
    span_id: SpanId
    system_instructions: list[dict[str, Any]]
    input_messages: list[dict[str, Any]]
    output_messages: list[dict[str, Any]]
    tool_definitions: list[dict[str, Any]]
    elsewhere: dict[str, str]
    """URIs of content that the span refers to and that was not read, by attribute."""


class Body(Model):
    """Bytes: as text where they are text, else as base64."""

    text: str | None = None
    base64: str | None = None


class BodyChunk(Body):
    """A piece of an answer, as it was delivered."""

    time_ns: int


class ExchangeItem(Model):
    """An attempt at a boundary: what was asked and answered, verbatim."""

    name: str
    id: str
    instance: str
    key: str
    """Method and URL for HTTP; the name of a tool."""
    started_ns: int
    request_headers: list[tuple[str, str]]
    request: Body | None
    """Null where no content was recorded."""
    status_code: int | None
    response_headers: list[tuple[str, str]]
    response: Body | None
    """Without its content encoding."""
    chunks: list[BodyChunk]
    """As on the wire."""
    end: str | None
    """Null: it had no answer when the tape ends."""
    error: str | None


class SpanExchanges(Model):
    """What was asked and answered in a span and below it."""

    trace_id: TraceId
    span_id: SpanId
    exchanges: list[ExchangeItem]


class DiffSide(Model):
    """One of two runs that are compared."""

    run: str
    status: Status
    steps: int
    errors: int
    input_tokens: int
    output_tokens: int
    duration_ns: int | None
    cost_usd: float


class DifferenceItem(Model):
    """A difference between two runs."""

    kind: str
    left_step: int | None
    right_step: int | None
    label: str
    path: str | None
    left: str
    right: str
    follows: bool
    """It repeats an earlier one."""


class StepPair(Model):
    """Steps of two runs that do the same; null: the run has no such step."""

    left: int | None
    right: int | None


class ToolCounts(Model):
    """How often a tool was called."""

    left: int
    right: int


class ToolSequences(Model):
    """The tools that were called, in order."""

    left: list[str]
    right: list[str]


class OutcomeDifference(Model):
    """How the ends of two runs differ."""

    path: str
    left: str
    right: str


class Diff(Model):
    """Two runs, step by step."""

    schema_version: int
    left: DiffSide
    right: DiffSide
    identical: bool
    same_steps: list[int]
    first_difference: DifferenceItem | None
    differences: list[DifferenceItem]
    steps: list[StepPair]
    tools: dict[str, ToolCounts]
    tool_sequence: ToolSequences
    outcome: OutcomeDifference | None


class FactLine(Model):
    """A fact of a tape."""

    instance: str
    seq: int
    time_ns: int
    name: str
    lane: str
    trace_id: str
    span_id: str
    exchange: str | None
    attributes: dict[str, Any]
    size_bytes: int | None
    """Of its body; null where it has none."""
    text: str | None
    """The beginning of its body, where that is text and lies with the fact; all: `…/events/…/body`."""


class FactPage(Model):
    """Facts between two points of a run, process by process."""

    events: list[FactLine]
    next: str | None


class SearchHit(Model):
    """Where something is said."""

    run: str
    trace_id: TraceId
    step: int | None
    """Number of the step, as `playhead show` counts; null where it belongs to none."""
    span_id: str
    """The span that says it; empty where none does."""
    time_ns: int
    who: str
    """Who says it: a role, a tool, the method of a request, the name of an attribute, or a stream."""
    excerpt: str
    """The text around, as people read it."""
    highlights: list[tuple[int, int]]
    """What was found in the excerpt: first character and the one behind."""


class SearchPage(Model):
    """What was found, run by run, the newest first; each text of a run once."""

    hits: list[SearchHit]
    behind: int
    """Groups of spans and facts that cannot be searched yet."""


class Group(Model):
    """The sum over runs that have something in common."""

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
    """Null where nothing of it has a known price."""
    unpriced_runs: int
    """Runs of which something has no known price: the cost is without it."""
    duration_ns: int
    duration_p50_ns: int | None
    """Half of the runs that have ended took at most so long; null where none has. Nearest rank."""
    duration_p90_ns: int | None
    duration_p99_ns: int | None


class Stats(Model):
    """Sums over runs."""

    total: Group
    groups: list[Group]
    truncated: bool
    """There are more runs than were looked at."""
    size_bytes: int
    position: int
    behind: int


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
    """Null where nothing of it has a known price."""
    unpriced_runs: int
    """Runs of which something has no known price: the cost is without it."""


class ConversationPage(Model):
    """Conversations, the one that went on last first."""

    conversations: list[Conversation]
    truncated: bool


class AuditNote(Model):
    """A line of the audit log."""

    number: int
    time_ns: int
    token: str
    name: str
    tenant: str
    action: str
    subject: str


class AuditPage(Model):
    """Lines of the audit log, newest first."""

    notes: list[AuditNote]
    next: int | None


class Marks(Model):
    """What a person has said of a run."""

    trace_id: TraceId
    marks: list[str]


class Removed(Model):
    """What is no more."""

    runs: int
    spans: int
    facts: int
    blobs: int
    wiped: bool


class State(Model):
    """How the receiver is."""

    status: Literal["ok", "degraded", "unavailable"]
    problem: str | None = None
    """Why it is not ``ok``."""
