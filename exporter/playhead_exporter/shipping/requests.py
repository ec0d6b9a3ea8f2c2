"""Records of a tape as OTLP requests that no default size limit refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans

from playhead_core.facts import Fact
from playhead_core.otlp import pack, pack_resource, resource_logs
from playhead_core.tape.frames import LogEntry, Record, SpanRecord
from playhead_exporter.delivery import Signal
from playhead_semconv import attributes as a

REQUEST_BYTES = 4 * 1024 * 1024
"""Largest request, uncompressed, unless a single record is larger."""
_ENVELOPE_BYTES = 4096
UNPACKABLE = (ValueError, TypeError, DecodeError)
"""Exceptions of packing where a record holds what OTLP cannot represent."""


class LogRequest:
    """Log records of one process instance."""

    signal = Signal.LOGS

    def __init__(self, resource: Resource, items: list[LogRecord]) -> None:
        self._resource = resource
        self.items = items

    def body(self) -> bytes:
        """Return the OTLP request."""
        logs = resource_logs(self._resource, self.items)
        return ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()

    def halves(self) -> tuple[LogRequest, LogRequest]:
        """Return two requests with the same records."""
        middle = len(self.items) // 2
        return (
            LogRequest(self._resource, self.items[:middle]),
            LogRequest(self._resource, self.items[middle:]),
        )


class SpanRequest:
    """Finished spans, each with its resource and scope. The request holds equal ones once."""

    signal = Signal.TRACES

    def __init__(self, items: list[ResourceSpans]) -> None:
        self.items = items

    def body(self) -> bytes:
        """Return the OTLP request."""
        return merge_spans(self.items).SerializeToString()

    def halves(self) -> tuple[SpanRequest, SpanRequest]:
        """Return two requests with the same spans."""
        middle = len(self.items) // 2
        return SpanRequest(self.items[:middle]), SpanRequest(self.items[middle:])


class ProgramLogRequest:
    """Log records of the program, each with its resource and scope."""

    signal = Signal.LOGS

    def __init__(self, items: list[ResourceLogs]) -> None:
        self.items = items

    def body(self) -> bytes:
        """Return the OTLP request."""
        return ExportLogsServiceRequest(resource_logs=self.items).SerializeToString()

    def halves(self) -> tuple[ProgramLogRequest, ProgramLogRequest]:
        """Return two requests with the same records."""
        middle = len(self.items) // 2
        return ProgramLogRequest(self.items[:middle]), ProgramLogRequest(self.items[middle:])


Request = LogRequest | SpanRequest | ProgramLogRequest


def requests_of_good(
    records: Sequence[Record], instance: bytes, resource: Mapping[str, Any]
) -> tuple[list[Request], list[Exception]]:
    """Return requests with all ``records`` that OTLP can represent, and the errors of the others."""
    try:
        return list(requests_of(records, instance, resource)), []
    except UNPACKABLE:
        good: list[Record] = []
        problems: list[Exception] = []
        for record in records:
            try:
                list(requests_of([record], instance, resource))
                good.append(record)
            except UNPACKABLE as problem:
                problems.append(problem)
        return list(requests_of(good, instance, resource)), problems


def requests_of(
    records: Sequence[Record],
    instance: bytes,
    resource: Mapping[str, Any],
    limit_bytes: int = REQUEST_BYTES,
) -> Iterator[Request]:
    """Yield requests with all ``records``, facts before the spans that refer to them.

    A single record over ``limit_bytes`` gets a request of its own.
    """
    facts = (record for record in records if isinstance(record, Fact))
    yield from fact_requests(facts, instance, resource, limit_bytes)
    spans = (record.otlp for record in records if isinstance(record, SpanRecord))
    yield from span_requests(spans, instance, limit_bytes)
    logs = (ResourceLogs.FromString(record.otlp) for record in records if isinstance(record, LogEntry))
    for some in bounded(logs, limit_bytes - _ENVELOPE_BYTES):
        yield ProgramLogRequest(some)


def fact_requests(
    facts: Iterable[Fact],
    instance: bytes,
    resource: Mapping[str, Any],
    limit_bytes: int = REQUEST_BYTES,
) -> Iterator[LogRequest]:
    """Yield requests with all facts of a process instance; the facts are read lazily."""
    of_instance = pack_resource(instance, resource)
    free = limit_bytes - _ENVELOPE_BYTES - of_instance.ByteSize()
    for logs in bounded(pack(facts), free):
        yield LogRequest(of_instance, logs)


def span_requests(
    spans: Iterable[bytes], instance: bytes, limit_bytes: int = REQUEST_BYTES
) -> Iterator[SpanRequest]:
    """Yield requests with finished spans; ``spans``: OTLP `ResourceSpans` bytes of one span each."""
    read = (_span(otlp, instance) for otlp in spans)
    for some in bounded(read, limit_bytes - _ENVELOPE_BYTES):
        yield SpanRequest(some)


def bounded(messages: Iterator[Any], limit_bytes: int) -> Iterator[list[Any]]:
    """Yield groups of consecutive messages of at most ``limit_bytes`` each; a larger message alone."""
    group: list[Any] = []
    taken = 0
    for message in messages:
        size = message.ByteSize() + 8
        if group and taken + size > limit_bytes:
            yield group
            group, taken = [], 0
        group.append(message)
        taken += size
    if group:
        yield group


def merge_spans(singles: list[ResourceSpans]) -> ExportTraceServiceRequest:
    """Return one request that holds equal resources and scopes once."""
    request = ExportTraceServiceRequest()
    by_resource: dict[tuple[bytes, str], ResourceSpans] = {}
    by_scope: dict[tuple[bytes, str, bytes, str], ScopeSpans] = {}
    for single in singles:
        key = (single.resource.SerializeToString(deterministic=True), single.schema_url)
        target = by_resource.get(key)
        if target is None:
            target = request.resource_spans.add(schema_url=single.schema_url)
            target.resource.CopyFrom(single.resource)
            by_resource[key] = target
        for part in single.scope_spans:
            scope = (*key, part.scope.SerializeToString(deterministic=True), part.schema_url)
            group = by_scope.get(scope)
            if group is None:
                group = target.scope_spans.add(schema_url=part.schema_url)
                group.scope.CopyFrom(part.scope)
                by_scope[scope] = group
            group.spans.extend(part.spans)
    return request


def _span(otlp: bytes, instance: bytes) -> ResourceSpans:
    spans = ResourceSpans.FromString(otlp)
    if all(pair.key != a.PLAYHEAD_INSTANCE for pair in spans.resource.attributes):
        pair = spans.resource.attributes.add(key=a.PLAYHEAD_INSTANCE)
        pair.value.string_value = instance.hex()
    return spans
