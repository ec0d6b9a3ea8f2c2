"""Objects of the query API: a span with all that it holds, and what was asked and answered in it."""

from __future__ import annotations

from typing import Any, Literal

from playhead_receiver.query.models.model import Model, SpanId, TraceId


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
