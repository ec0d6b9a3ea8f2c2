"""Objects of the query API: runs, lists of them, and the tree of one."""

from __future__ import annotations

from playhead_receiver.api.models.model import Model, SpanId, Status, TraceId


class Missing(Model):
    """Facts that a process wrote and the receiver did not get."""

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
    """Of an HTTP request, as its URL and the status of its answer; empty or null for other spans."""
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
    """The marks that people have set on a run."""

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
