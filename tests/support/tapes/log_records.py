"""Log records of other senders, and the batches that the intake makes of them."""

from __future__ import annotations

from typing import Any

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from support.tapes.batches import START_NS

from playhead_core.otlp import set_attributes, set_value
from playhead_receiver.ingest.log_records import read_log
from playhead_receiver.storage import Batch
from playhead_receiver.storage.spans.span_view import Envelope, surroundings
from playhead_semconv import attributes as a


def record_of(
    trace_id: bytes,
    number: int,
    body: Any = None,
    *,
    span: int = 0,
    level: int = 9,
    event: str = "",
    **attributes: Any,
) -> LogRecord:
    """A log record. ``attributes``: ``__`` stands for a dot."""
    record = LogRecord(
        time_unix_nano=START_NS + number * 1000,
        severity_number=level,
        event_name=event,
        trace_id=trace_id,
        span_id=span.to_bytes(8, "big") if span else b"",
    )
    if body is not None:
        set_value(record.body, body)
    set_attributes(record.attributes, {key.replace("__", "."): one for key, one in attributes.items()})
    return record


def request_of(*records: LogRecord, service: str = "shop") -> ExportLogsServiceRequest:
    """An export request with these records."""
    request = ExportLogsServiceRequest()
    entry = request.resource_logs.add(schema_url="https://opentelemetry.io/schemas/1.37.0")
    set_attributes(entry.resource.attributes, {a.SERVICE_NAME: service})
    scoped = entry.scope_logs.add()
    scoped.scope.name = "app.cache"
    scoped.log_records.extend(records)
    return request


def batch_of(*records: LogRecord, service: str = "shop") -> Batch:
    """The batch that the intake makes of them."""
    envelope = Envelope.FromString(request_of(*records, service=service).SerializeToString())
    entry = envelope.entries[0]
    around = surroundings(entry, entry.scopes[0])
    items = zip(entry.scopes[0].items, records, strict=True)
    found = [read_log(item, record, entry.resource, around) for item, record in items]
    return Batch(logs=[one for one in found if one is not None])
