"""The endpoints of Tempo that Grafana's data source calls; streaming over gRPC is not supported."""

from __future__ import annotations

import time
from typing import Any

from fastapi import APIRouter, Request
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from starlette.responses import PlainTextResponse, Response

from playhead_core.errors import UsageError
from playhead_receiver.api.compatibility.answering import (
    JSON,
    as_json,
    compatibility_router,
    tenant_traces_of,
    trace_id_of,
)
from playhead_receiver.api.compatibility.reading import Traces
from playhead_receiver.api.compatibility.times import duration_ns, moment_ns
from playhead_receiver.api.context import Reading, RequestContext, serving_of
from playhead_receiver.api.jaeger.http import legacy_trace
from playhead_receiver.api.problems import NotFound
from playhead_receiver.api.tempo.metrics import instant, query_range
from playhead_receiver.api.tempo.searching import (
    LIMIT,
    MOST,
    SPANS_OF_SET,
    TimeRange,
    search,
    tag_values,
    tags,
)
from playhead_receiver.api.tempo.traceql import Calculation, SpanQuery, parse, parse_metric
from playhead_receiver.api.tempo.traceql.conditions import field_of
from playhead_receiver.api.tempo.traceql.words import KINDS, STATUSES
from playhead_receiver.ingest.otlp_json import export_json

PROTOBUF = "application/protobuf"
VERSION = "2.9.0"
"""The Tempo version that is reported; Grafana selects features by it."""

STEPS = 11_000
"""Largest number of points in one series."""


def _trace_by_id_response() -> Any:
    """Tempo's ``TraceByIDResponse``: a trace, and whether it is complete."""
    field = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(
        name="playhead/receiver/tempo.proto", package="playhead.tempo", syntax="proto3"
    )
    file.dependency.append(trace_pb2.DESCRIPTOR.name)
    message = file.message_type.add(name="TraceByIDResponse")
    message.field.add(
        name="trace",
        number=1,
        type=field.TYPE_MESSAGE,
        type_name=f".{TracesData.DESCRIPTOR.full_name}",
        label=field.LABEL_OPTIONAL,
    )
    message.field.add(name="status", number=3, type=field.TYPE_INT32, label=field.LABEL_OPTIONAL)
    message.field.add(name="message", number=4, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    pool = descriptor_pool.Default()
    pool.Add(file)  # pyright: ignore[reportUnknownMemberType]
    return message_factory.GetMessageClass(
        pool.FindMessageTypeByName("playhead.tempo.TraceByIDResponse")
    )


TraceByIDResponse: Any = _trace_by_id_response()


def tempo_router(prefix: str = "", *, for_jaeger_too: bool = False) -> APIRouter:
    """The endpoints. ``for_jaeger_too``: a trace by id in JSON has Jaeger's format."""
    router = compatibility_router(_say, prefix)

    @router.get("/api/echo")
    def echo(_: Reading) -> Response:
        return PlainTextResponse("echo")

    @router.get("/api/status/buildinfo")
    def build(request: Request, _: Reading) -> Response:
        said = {"version": VERSION, "revision": f"playhead {serving_of(request).version}"}
        return as_json(said | dict.fromkeys(("branch", "buildDate", "buildUser", "goVersion"), ""))

    @router.get("/api/v2/traces/{trace_id}")
    def trace_v2(request: Request, context: Reading, trace_id: str) -> Response:
        data = _trace(request, context, trace_id)
        if _wants_protobuf(request):
            answer = TraceByIDResponse()
            answer.trace.MergeFrom(data)
            return Response(answer.SerializeToString(), media_type=PROTOBUF)
        return Response(b'{"trace":' + export_json(data) + b"}", media_type=JSON)

    @router.get("/api/traces/{trace_id}")
    def trace_v1(request: Request, context: Reading, trace_id: str) -> Response:
        if _wants_protobuf(request):
            return Response(_trace(request, context, trace_id).SerializeToString(), media_type=PROTOBUF)
        if for_jaeger_too:
            return legacy_trace(request, context, trace_id)
        text = export_json(_trace(request, context, trace_id))
        return Response(text.replace(b'"resourceSpans"', b'"batches"', 1), media_type=JSON)

    @router.get("/api/search")
    def found(request: Request, context: Reading) -> Response:
        given = request.query_params
        query = _query(given.get("q", "")) or _by_tags(request)
        if query.metric is not None:
            raise UsageError("a query for metrics is no search: /api/metrics/query_range")
        limit, spss = (
            _number(request, "limit", LIMIT, MOST),
            _number(request, "spss", SPANS_OF_SET, MOST),
        )
        context.note("search", "traces")
        return as_json(search(_traces(request, context), query, _window(request), limit, spss))

    @router.get("/api/search/tags")
    def tags_v1(request: Request, context: Reading) -> Response:
        context.note("read", "tags")
        names = tags(_traces(request, context), _window(request), request.query_params.get("scope", ""))
        names.pop("intrinsic", None)
        return as_json({"tagNames": sorted({name for some in names.values() for name in some})})

    @router.get("/api/v2/search/tags")
    def tags_v2(request: Request, context: Reading) -> Response:
        context.note("read", "tags")
        given = request.query_params
        query = _completing(given.get("q", ""))
        names = tags(_traces(request, context), _window(request), given.get("scope", ""), query)
        limit = _number(request, "limit", MOST, MOST) or MOST
        scopes = [{"name": scope, "tags": some[:limit]} for scope, some in names.items()]
        return as_json({"scopes": scopes})

    @router.get("/api/search/tag/{tag:path}/values")
    def values_v1(request: Request, context: Reading, tag: str) -> Response:
        context.note("read", "tags")
        field = field_of(tag if tag in ("name", "status", "kind") else f".{tag}")
        found = tag_values(_traces(request, context), field, _window(request))
        return as_json({"tagValues": [text for _, text in found]})

    @router.get("/api/v2/search/tag/{tag:path}/values")
    def values_v2(request: Request, context: Reading, tag: str) -> Response:
        context.note("read", "tags")
        query = _completing(request.query_params.get("q", ""))
        limit = _number(request, "limit", MOST, MOST) or MOST
        traces = _traces(request, context)
        found = tag_values(traces, field_of(tag), _window(request), query, limit)
        return as_json({"tagValues": [{"type": kind, "value": text} for kind, text in found]})

    @router.get("/api/metrics/query_range")
    def metrics_range(request: Request, context: Reading) -> Response:
        query, window = _metric_query(request), _metric_window(request)
        step_ns = _step(request, window)
        assert window.start_ns is not None and window.end_ns is not None
        if (window.end_ns - window.start_ns) // step_ns > STEPS:
            raise UsageError(f"more than {STEPS} points: take a longer step")
        context.note("read", "metrics")
        exemplars = _number(request, "exemplars", 1, MOST) > 0
        found = query_range(_traces(request, context), query, window, step_ns, exemplars=exemplars)
        return as_json(found)

    @router.get("/api/metrics/query")
    def metrics(request: Request, context: Reading) -> Response:
        query, window = _metric_query(request), _metric_window(request)
        context.note("read", "metrics")
        return as_json(instant(_traces(request, context), query, window))

    return router


def _traces(request: Request, context: RequestContext) -> Traces:
    return tenant_traces_of(request).traces(context.caller.tenant)


def _trace(request: Request, context: RequestContext, text: str) -> TracesData:
    trace_id = trace_id_of(text)
    context.note("read", trace_id.hex())
    cap = tenant_traces_of(request).tempo
    data = TracesData(resource_spans=_traces(request, context).envelopes(trace_id, cap))
    if not data.resource_spans:
        raise NotFound("trace not found")
    return data


def _wants_protobuf(request: Request) -> bool:
    return "protobuf" in request.headers.get("accept", "")


def _query(text: str) -> SpanQuery | None:
    return parse(text) if text.strip() else None


def _completing(text: str) -> SpanQuery | None:
    """The query in an unfinished text; None if it has no condition yet."""
    try:
        return _query(text)
    except UsageError:
        return None


def _by_tags(request: Request) -> SpanQuery:
    """The query of older clients: ``tags=a=b c=d``, ``minDuration``, ``maxDuration``."""
    given = request.query_params
    conditions: list[str] = []
    for pair in given.get("tags", "").split():
        name, _, value = pair.partition("=")
        quoted = value.strip('"').replace("\\", "\\\\").replace('"', '\\"')
        if name in _WORDS:
            conditions.append(f"{name} = {_word(name, quoted)}")
        else:
            conditions.append(f'{name if name == "name" else "." + name} = "{quoted}"')
    for name, sign in (("minDuration", ">="), ("maxDuration", "<=")):
        if given.get(name):
            conditions.append(f"duration {sign} {duration_ns(given[name])}ns")
    return parse(f"{{ {' && '.join(conditions)} }}")


_WORDS = {"status": STATUSES, "kind": KINDS}


def _word(name: str, text: str) -> str:
    if text not in _WORDS[name]:
        raise UsageError(f"{name} is one of: {', '.join(_WORDS[name])}")
    return text


def _number(request: Request, name: str, default: int, most: int) -> int:
    text = request.query_params.get(name, "")
    if not text:
        return default
    if not text.isdecimal():
        raise UsageError(f"invalid {name}: {text!r} is not a number")
    return min(int(text[:9]), most)


def _window(request: Request) -> TimeRange:
    given = request.query_params
    start, end = (_moment(given.get(name, "")) for name in ("start", "end"))
    if start is not None and end is not None and start > end:
        raise UsageError("invalid start: it is behind the end")
    return TimeRange(start or None, end or None)


def _moment(text: str) -> int | None:
    """Seconds up to ten digits, else ns, or RFC 3339."""
    if not text:
        return None
    return moment_ns(text, unit_ns=10**9 if len(text) <= 10 else 1)


def _metric_query(request: Request) -> SpanQuery | Calculation:
    text = request.query_params.get("q") or request.query_params.get("query") or ""
    query = parse_metric(text) if text.strip() else None
    if query is None or (isinstance(query, SpanQuery) and query.metric is None):
        raise UsageError("invalid TraceQL query: a metric is wanted, such as {} | rate()")
    return query


def _metric_window(request: Request) -> TimeRange:
    window = _window(request)
    since = duration_ns(request.query_params.get("since") or "1h")
    end = window.end_ns or time.time_ns()
    return TimeRange(window.start_ns or end - since, end)


def _step(request: Request, window: TimeRange) -> int:
    text = request.query_params.get("step", "")
    if not text:
        assert window.start_ns is not None and window.end_ns is not None
        return max((window.end_ns - window.start_ns) // 100 // 10**9, 1) * 10**9
    try:
        step = round(float(text) * 10**9)
    except ValueError:
        step = duration_ns(text)
    except OverflowError:
        step = 0
    if step <= 0:
        raise UsageError(f"invalid step: {text!r}")
    return step


def _say(status: int, text: str) -> Response:
    return PlainTextResponse(text, status)
