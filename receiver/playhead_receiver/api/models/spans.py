"""Objects of the query API: spans, their messages and exchanges, and facts."""

from __future__ import annotations

from typing import Any, Literal

from playhead_receiver.api.models.model import Model, SpanId, TraceId
from playhead_replay.json_objects.recorded import ExchangeItem, SpanEventItem


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
    """A span with its full payload."""

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
    events: list[SpanEventItem]
    links: list[SpanLink]
    resource: dict[str, Any]
    scope: SpanScope


class SpanMessages(Model):
    """The messages of a model call: input and output."""

    trace_id: TraceId
    span_id: SpanId
    system_instructions: list[dict[str, Any]]
    input_messages: list[dict[str, Any]]
    output_messages: list[dict[str, Any]]
    tool_definitions: list[dict[str, Any]]
    elsewhere: dict[str, str]
    """URIs of referenced content that was not loaded, by attribute."""


class SpanExchanges(Model):
    """Requests and responses of a span and its descendants."""

    trace_id: TraceId
    span_id: SpanId
    exchanges: list[ExchangeItem]


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
    """Size of the body; null if it has none."""
    text: str | None
    """The beginning of its body if that is text stored with the fact; whole: `…/events/…/body`."""


class FactPage(Model):
    """Facts between two points of a run, by process."""

    events: list[FactLine]
    next: str | None


class LogRecord(Model):
    """A log record of a run."""

    time_ns: int
    trace_id: TraceId
    span_id: SpanId | None
    level: int
    """Severity number of OTLP, 0 if unknown."""
    level_name: str | None
    event: str | None
    """Name of the event; null for an ordinary log line."""
    logger: str | None
    service: str | None
    body: Any
    attributes: dict[str, Any]


class LogPage(Model):
    """Log records of a run, by time."""

    logs: list[LogRecord]
    next: str | None
