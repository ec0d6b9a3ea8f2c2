"""`jaeger.storage.v2` over gRPC: a Jaeger with this remote storage shows the stored traces."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, TypeAlias, cast

import grpc
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData

from playhead_core.errors import PlayheadError, StoreError, UsageError
from playhead_core.otlp import attributes_of, value_of
from playhead_receiver.api.compatibility.capping import LEAST_BYTES, Cap
from playhead_receiver.api.compatibility.reading import Traces
from playhead_receiver.api.compatibility.spans import NO_SERVICE, service_of
from playhead_receiver.api.compatibility.tenant_traces import TenantTraces
from playhead_receiver.api.jaeger.finding import (
    Wanted,
    dependencies,
    find,
    operations,
    services,
    summary_of,
    text_of,
)
from playhead_receiver.api.jaeger.messages import MESSAGES, PACKAGE
from playhead_receiver.auth.audit import Action, Audit
from playhead_receiver.auth.guard import Caller, Forbidden, Guard, Unauthenticated
from playhead_semconv import attributes as a

CHUNK_BYTES = 3 << 20
"""Jaeger accepts messages of 4 MiB unless configured otherwise."""

WARNINGS = "@jaeger@warnings"
"""Attribute of a span whose values Jaeger shows as warnings."""

LAST_NS = 2**64 - 1
"""Latest time of OTLP."""

SUMMARIES = 200
"""Number of summaries in one message."""


class JaegerReader:
    """A caller, and the traces of the caller's tenant."""

    def __init__(self, caller: Caller, traces: Traces, audit: Audit | None) -> None:
        """``audit``: None if callers have no names."""
        self._caller = caller
        self._audit = audit
        self.traces = traces

    def note(self, action: Action, subject: str) -> None:
        """Write a read access to the audit log."""
        if self._audit is not None:
            who = self._caller
            self._audit.note(who.token, who.name, who.tenant, action, subject)


Admit: TypeAlias = Callable[[grpc.ServicerContext], JaegerReader]


def jaeger_handlers(shown: TenantTraces, guard: Guard, audit: Audit) -> list[Any]:
    """Handlers for a gRPC server. Callers need the scope ``read``."""

    def admit(context: grpc.ServicerContext) -> JaegerReader:
        given: dict[str, Any] = dict(context.invocation_metadata())
        caller = guard.admit(str(given.get("authorization", "")), "read")
        noted = audit if guard.required or caller.name else None
        return JaegerReader(caller, shown.traces(caller.tenant), noted)

    face = _Face(shown)
    services_: dict[str, dict[str, tuple[Callable[..., Any], bool]]] = {
        "TraceReader": {
            "GetTraces": (face.get_traces, True),
            "GetServices": (face.get_services, False),
            "GetOperations": (face.get_operations, False),
            "FindTraces": (face.find_traces, True),
            "FindTraceIDs": (face.find_trace_ids, False),
            "FindTraceSummaries": (face.find_summaries, True),
        },
        "DependencyReader": {"GetDependencies": (face.get_dependencies, False)},
        "Capabilities": {"GetCapabilities": (face.get_capabilities, False)},
    }
    made: list[Any] = []
    for service, methods in services_.items():
        handlers: dict[str, Any] = {}
        for name, (answer, streams) in methods.items():
            make: Any = cast(Any, grpc)
            kind = (
                make.unary_stream_rpc_method_handler if streams else make.unary_unary_rpc_method_handler
            )
            handlers[name] = kind(
                (_streaming if streams else _answering)(answer, admit),
                request_deserializer=MESSAGES[f"{name}Request"].FromString,
                response_serializer=_bytes,
            )
        made.append(grpc.method_handlers_generic_handler(f"{PACKAGE}.{service}", handlers))
    return made


def _bytes(message: Any) -> bytes:
    return message.SerializeToString()


def _answering(answer: Callable[..., Any], admit: Admit) -> Callable[..., Any]:
    def handle(request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return answer(request, admit(context))
        except PlayheadError as problem:
            context.abort(_code_of(problem), problem.what)

    return handle


def _streaming(answer: Callable[..., Any], admit: Admit) -> Callable[..., Any]:
    def handle(request: Any, context: grpc.ServicerContext) -> Iterator[Any]:
        try:
            for one in answer(request, admit(context)):
                if not context.is_active():
                    return
                yield one
        except PlayheadError as problem:
            context.abort(_code_of(problem), problem.what)

    return handle


def _code_of(problem: PlayheadError) -> grpc.StatusCode:
    if isinstance(problem, Unauthenticated):
        return grpc.StatusCode.UNAUTHENTICATED
    if isinstance(problem, Forbidden):
        return grpc.StatusCode.PERMISSION_DENIED
    if isinstance(problem, UsageError):
        return grpc.StatusCode.INVALID_ARGUMENT
    return grpc.StatusCode.UNAVAILABLE if isinstance(problem, StoreError) else grpc.StatusCode.INTERNAL


class _Face:
    def __init__(self, shown: TenantTraces) -> None:
        self._shown = shown

    def get_traces(self, request: Any, reader: JaegerReader) -> Iterator[TracesData]:
        for context in request.query:
            yield from self._trace(reader, context.trace_id)

    def find_traces(self, request: Any, reader: JaegerReader) -> Iterator[TracesData]:
        for trace in find(reader.traces, wanted_of(request.query)):
            yield from self._trace(reader, trace.trace_id)

    def _trace(self, reader: JaegerReader, trace_id: bytes) -> Iterator[TracesData]:
        reader.note("read", trace_id.hex())
        yield from chunks(reader.traces, trace_id, self._shown.jaeger)

    def find_trace_ids(self, request: Any, reader: JaegerReader) -> Any:
        reader.note("read", "traces")
        answer = MESSAGES["FindTraceIDsResponse"]()
        for trace in find(reader.traces, wanted_of(request.query)):
            found = answer.trace_ids.add(trace_id=trace.trace_id)
            _set_time(found.start, trace.start_ns)
            _set_time(found.end, trace.end_ns)
        return answer

    def find_summaries(self, request: Any, reader: JaegerReader) -> Iterator[Any]:
        reader.note("read", "traces")
        answer = MESSAGES["FindTraceSummariesResponse"]()
        for trace in find(reader.traces, wanted_of(request.query)):
            summary = summary_of(trace)
            added = answer.summaries.add(
                trace_id=summary.trace_id,
                root_service_name=summary.root_service,
                root_operation_name=summary.root_operation,
                min_start_time_unix_nano=summary.start_ns,
                max_end_time_unix_nano=summary.end_ns,
                span_count=summary.spans,
                error_span_count=summary.errors,
                orphan_span_count=summary.orphans,
            )
            for name, (spans, errors) in summary.services.items():
                added.services.add(name=name, span_count=spans, error_span_count=errors)
            if len(answer.summaries) == SUMMARIES:
                yield answer
                answer = MESSAGES["FindTraceSummariesResponse"]()
        if answer.summaries:
            yield answer

    def get_services(self, _: Any, reader: JaegerReader) -> Any:
        reader.note("read", "services")
        return MESSAGES["GetServicesResponse"](services=services(reader.traces))

    def get_operations(self, request: Any, reader: JaegerReader) -> Any:
        reader.note("read", "operations")
        answer = MESSAGES["GetOperationsResponse"]()
        for name, kind in operations(reader.traces, request.service, request.span_kind.lower()):
            answer.operations.add(name=name, span_kind=kind)
        return answer

    def get_dependencies(self, request: Any, reader: JaegerReader) -> Any:
        reader.note("read", "dependencies")
        answer = MESSAGES["GetDependenciesResponse"]()
        start, end = _time(request, "start_time"), _time(request, "end_time")
        for parent, child, count in dependencies(reader.traces, start, end):
            answer.dependencies.add(parent=parent, child=child, call_count=count, source="playhead")
        return answer

    def get_capabilities(self, _: Any, __: JaegerReader) -> Any:
        answer = MESSAGES["GetCapabilitiesResponse"]()
        answer.search.without_service_name = True
        answer.search.same_span_conjunction = True
        return answer


def chunks(traces: Traces, trace_id: bytes, cap: Cap) -> Iterator[TracesData]:
    """The spans of a trace, in messages small enough for Jaeger; none if the trace does not exist."""
    if len(trace_id) != 16:
        return
    chunk, size = TracesData(), 0
    for envelope in traces.envelopes(trace_id, cap):
        _sanitize(envelope)
        smaller = cap if cap.limit_bytes else Cap(CHUNK_BYTES, cap.base_url)
        while envelope.ByteSize() > CHUNK_BYTES and smaller.limit_bytes > LEAST_BYTES:
            smaller = smaller.halved()
            smaller.apply(envelope)
        added = envelope.ByteSize()
        if size and size + added > CHUNK_BYTES:
            yield chunk
            chunk, size = TracesData(), 0
        chunk.resource_spans.append(envelope)
        size += added
    if size:
        yield chunk


def _sanitize(envelope: ResourceSpans) -> None:
    """Change a span as Jaeger's own storages change it when they take it in.

    Jaeger subtracts without a sign: a span that ends before it starts would take 584 years.
    """
    resource, span = envelope.resource, envelope.scope_spans[0].spans[0]
    service = service_of(attributes_of(resource.attributes))
    if service == NO_SERVICE:  # what is shown is what the list of services has, and a search finds
        kept = [pair for pair in resource.attributes if pair.key != a.SERVICE_NAME]
        del resource.attributes[:]
        resource.attributes.extend(kept)
        resource.attributes.add(key=a.SERVICE_NAME).value.string_value = service
    ended_ns, started_ns = span.end_time_unix_nano, span.start_time_unix_nano
    if ended_ns < started_ns:
        span.end_time_unix_nano = end_ns = min(started_ns + 1, LAST_NS)
        said = f"Original end timestamp: {_go_time(ended_ns)}, adjusted to: {_go_time(end_ns)}"
        value = span.attributes.add(key=WARNINGS).value.array_value.values.add()
        value.string_value = f"Negative duration detected, sanitizing end timestamp. {said}"


def _go_time(ns: int) -> str:
    """A time as Go writes it.

    >>> _go_time(1_700_000_000_100_000_001), _go_time(0)
    ('2023-11-14 22:13:20.100000001 +0000 UTC', '1970-01-01 00:00:00 +0000 UTC')
    """
    seconds, fraction = divmod(ns, 10**9)
    at = datetime(1970, 1, 1) + timedelta(seconds=seconds)
    return f"{at}{f'.{fraction:09}'.rstrip('0').rstrip('.')} +0000 UTC"


def wanted_of(query: Any) -> Wanted:
    """The conditions of ``TraceQueryParameters``. `UsageError` for a structured filter."""
    if query.filter:
        raise UsageError("structured filters are not supported")
    return Wanted(
        service=query.service_name,
        operation=query.operation_name,
        attributes={pair.key: text_of(value_of(pair.value)) for pair in query.attributes},
        start_min_ns=_time(query, "start_time_min"),
        start_max_ns=_time(query, "start_time_max"),
        duration_min_ns=_time(query, "duration_min"),
        duration_max_ns=_time(query, "duration_max"),
        depth=query.search_depth,
    )


def _time(message: Any, field: str) -> int | None:
    """A time in ns; None if it is not set or is Go's zero time."""
    if not message.HasField(field):
        return None
    ns = getattr(message, field).ToNanoseconds()
    return ns if ns > 0 else None


def _set_time(target: Any, ns: int) -> None:
    target.seconds, target.nanos = divmod(ns, 10**9)
