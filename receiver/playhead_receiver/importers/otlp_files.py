"""OTLP in files that are no JSON lines: a JSON document, or binary as the Collector's exporter writes.

A binary file is one export request, or requests with their lengths in four bytes in front.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from playhead_core.errors import MalformedOtlp
from playhead_exporter.delivery import Signal
from playhead_receiver.importers.documents import items_of
from playhead_receiver.ingest.export import REQUESTS
from playhead_receiver.ingest.otlp_json import binary_of_json

LENGTH_BYTES = 4
_SPANS, _LOGS = ("resourceSpans", "resource_spans", "batches"), ("resourceLogs", "resource_logs")

Request = tuple[Signal, bytes]


def is_otlp(item: dict[str, Any]) -> bool:
    """Whether an object is an export request, or a trace as Tempo's API returns it."""
    inner: Any = item.get("trace")
    holder = cast("dict[str, Any]", inner) if isinstance(inner, dict) else item
    return any(name in holder for name in (*_SPANS, *_LOGS))


def is_otlp_line(line: bytes) -> bool:
    """Whether a line is an export request in JSON."""
    try:
        found: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return isinstance(found, dict) and ("resourceSpans" in found or "resourceLogs" in found)


def requests_in(document: Any) -> Iterator[Request]:
    """Yield the requests of a JSON document. `MalformedOtlp`."""
    for item in items_of(document):
        inner: Any = item.get("trace")
        holder = cast("dict[str, Any]", inner) if isinstance(inner, dict) else item
        for names, signal in ((_SPANS, Signal.TRACES), (_LOGS, Signal.LOGS)):
            found = next((holder[name] for name in names if name in holder), None)
            if found is not None:
                body = msgspec.json.encode({names[0]: found})
                yield signal, binary_of_json(body, REQUESTS[signal.value])


def binary_requests(data: bytes) -> list[Request] | None:
    """Return the requests of a binary file; None if it is none."""
    whole = _request(data)
    if whole is not None:
        return [whole]
    found: list[Request] = []
    at = 0
    while at < len(data):
        size = int.from_bytes(data[at : at + LENGTH_BYTES], "big")
        one = _request(data[at + LENGTH_BYTES : at + LENGTH_BYTES + size])
        if one is None or at + LENGTH_BYTES + size > len(data):
            return None
        found.append(one)
        at += LENGTH_BYTES + size
    return found or None


def _request(data: bytes) -> Request | None:
    """A request by what is in it: traces and logs have the same first field."""
    if not data:
        return None
    try:
        traces = ExportTraceServiceRequest.FromString(data)
        spans = [
            span for one in traces.resource_spans for scope in one.scope_spans for span in scope.spans
        ]
        if spans and all(len(span.trace_id) == 16 for span in spans):
            return Signal.TRACES, data
        logs = ExportLogsServiceRequest.FromString(data)
    except DecodeError:
        return None
    records = [
        record for one in logs.resource_logs for scope in one.scope_logs for record in scope.log_records
    ]
    return (Signal.LOGS, data) if records and all(_is_record(one) for one in records) else None


def _is_record(record: Any) -> bool:
    return len(record.trace_id) in (0, 16) and (record.time_unix_nano or record.observed_time_unix_nano)


def checked(requests: Iterator[Request]) -> list[Request]:
    """Return the requests as a list. `MalformedOtlp` names the first that cannot be read."""
    found: list[Request] = []
    try:
        found += requests
    except MalformedOtlp as problem:
        raise MalformedOtlp(f"request {len(found) + 1}: {problem.what}") from None
    return found
