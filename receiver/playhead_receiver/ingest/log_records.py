"""Reads log records that are not facts of a tape, from any sender."""

from __future__ import annotations

from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from playhead_core.errors import MalformedOtlp
from playhead_core.otlp.log_records import event_of, level_of, time_of
from playhead_core.reports import NAMES
from playhead_genai.scores import READ_EVENTS
from playhead_receiver.storage.spans.span_view import (
    AroundSpan,
    resource_summary,
    words_of_report,
)
from playhead_receiver.storage.values.stored import ReadLog, SpanLocation
from playhead_semconv import events as e

MOST_NS = 1 << 63


def is_part(record: LogRecord) -> bool:
    """Whether a log record claims to be a part of a checkpoint; see `checkpoint_parts`."""
    return event_of(record) == e.PLAYHEAD_CHECKPOINT_PART


def read_log(item: bytes, record: LogRecord, resource: bytes, around: AroundSpan) -> ReadLog | None:
    """Return a record in the form in which it is stored; None if it belongs to no trace.

    ``item``: its bytes. `MalformedOtlp` says what is wrong with it.
    """
    if len(record.trace_id) not in (0, 16):
        raise MalformedOtlp(f"trace_id has {len(record.trace_id)} bytes instead of 16")
    if len(record.span_id) not in (0, 8):
        raise MalformedOtlp(f"span_id has {len(record.span_id)} bytes instead of 8")
    if time_of(record) >= MOST_NS:
        raise MalformedOtlp("the time of a log record lies beyond the year 2262")
    if not any(record.trace_id):
        return None
    resource_summary(resource)
    event = event_of(record)
    return ReadLog(
        record.trace_id,
        record.span_id if any(record.span_id) else b"",
        time_of(record),
        level_of(record),
        event in READ_EVENTS,
        resource,
        around.resource,
        SpanLocation(item, 0, len(item), around.front_of(len(item)), around.back),
        tuple(words_of_report(event, record.attributes, record.body)) if event in NAMES else (),
    )
