"""Objects of the query API: runs, lists of them, and the tree of one."""

from __future__ import annotations

from playhead_receiver.query.models.model import Model, SpanId, Status, TraceId


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
    """Some runs of a list."""

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
    """Whether it is counted as a step of the run."""
    attempt: bool
    """Whether it is a request that is no step of its own."""
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
    """`offset` of the next window; null at the end."""


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
    checkpoints: int
    wiped: bool
