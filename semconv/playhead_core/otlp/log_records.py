"""Log records of any sender as plain values. Facts of a tape are log records too; see `unpack`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import msgspec
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs

from playhead_core.otlp.any_values import attributes_of, value_of

LEVELS = {"trace": 1, "debug": 5, "info": 9, "warning": 13, "error": 17, "fatal": 21}
"""The lowest severity number of OTLP of each level."""

_TEXTS = {**LEVELS, "warn": 13, "critical": 21, "emergency": 21, "alert": 21, "notice": 10}
"""Severity texts of senders that set no severity number."""

EVENT_NAME = "event.name"
"""The attribute with the name of an event, from senders older than the field."""

SERVICE_NAME = "service.name"


class LogLine(msgspec.Struct, frozen=True):
    """What a log record says."""

    time_ns: int
    trace_id: str
    span_id: str
    """16 hex digits; empty if the record belongs to no span."""
    level: int
    """Severity number of OTLP, 0 if unknown."""
    event: str
    """Name of the event; empty for an ordinary log line."""
    body: Any
    attributes: dict[str, Any]
    service: str
    logger: str
    """Name of the instrumentation scope."""


class LogQuery(msgspec.Struct, frozen=True):
    """Which log records of a trace are wanted."""

    span_ids: Collection[bytes] | None = None
    """Only records of these spans."""
    level: int = 0
    """Only records with at least this severity number."""
    content: bool = False
    """Only events with messages of a model call, scores, and reports of programs."""
    after: tuple[int, bytes] = (-1, b"")
    """Only records after this time and digest."""


ALL_LOGS = LogQuery()


def level_name(level: int) -> str:
    """Return the name of a severity number; empty if it is unknown.

    >>> level_name(9), level_name(14), level_name(0)
    ('info', 'warning', '')
    """
    return next((name for name, least in reversed(LEVELS.items()) if level >= least), "")


def level_of(record: LogRecord) -> int:
    """Return the severity number of a record, from its severity text if it has no number."""
    if record.severity_number:
        return min(record.severity_number, 24) if record.severity_number > 0 else 0
    return _TEXTS.get(record.severity_text.strip().lower(), 0)


def time_of(record: LogRecord) -> int:
    """Return when it was logged in ns, else when it was observed; 0 if unknown."""
    return record.time_unix_nano or record.observed_time_unix_nano


def event_of(record: LogRecord) -> str:
    """Return the name of the event that a record reports; empty if it is an ordinary log line."""
    if record.event_name:
        return record.event_name
    named = (pair.value.string_value for pair in record.attributes if pair.key == EVENT_NAME)
    return next(named, "")


def log_line(otlp: bytes) -> LogLine:
    """Read `ResourceLogs` bytes with a single record. `DecodeError` of protobuf."""
    logs = ResourceLogs.FromString(otlp)
    scoped = logs.scope_logs[0]
    record = scoped.log_records[0]
    service = attributes_of(pair for pair in logs.resource.attributes if pair.key == SERVICE_NAME)
    return LogLine(
        time_of(record),
        record.trace_id.hex(),
        record.span_id.hex(),
        level_of(record),
        event_of(record),
        value_of(record.body),
        attributes_of(record.attributes),
        str(service.get(SERVICE_NAME, "")),
        scoped.scope.name,
    )
