"""Jaeger's HTTP JSON: ``/api/v3`` for its UI and newer clients, and the older ``/api``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from starlette.responses import Response

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
from playhead_receiver.api.context import Reading, RequestContext
from playhead_receiver.api.jaeger.finding import (
    DEPTH,
    KINDS,
    Summary,
    Wanted,
    dependencies,
    find,
    operations,
    services,
    summary_of,
)
from playhead_receiver.api.jaeger.ui import ui_trace
from playhead_receiver.api.problems import NotFound
from playhead_receiver.ingest.otlp_json import export_json

MICRO_NS = 1000
MILLI_NS = 10**6

NOT_HERE = {
    "/api/metrics/latencies": "GET",
    "/api/metrics/calls": "GET",
    "/api/metrics/errors": "GET",
    "/api/metrics/minstep": "GET",
    "/api/archive/{trace_id}": "POST",
    "/api/transform": "POST",
}
"""Features that Jaeger's UI may request and that a trace store does not have."""


def jaeger_routers(prefix: str = "", *, traces_by_id: bool = True) -> list[APIRouter]:
    """The endpoints. ``traces_by_id``: include ``/api/traces/{trace_id}``, a path that Tempo has too."""
    v3, legacy = compatibility_router(_say_v3, prefix), compatibility_router(_say, prefix)

    @v3.get("/api/v3/services")
    def v3_services(request: Request, context: Reading) -> Response:
        context.note("read", "services")
        return as_json({"services": services(_traces(request, context))})

    @v3.get("/api/v3/operations")
    def v3_operations(request: Request, context: Reading) -> Response:
        context.note("read", "operations")
        given = request.query_params
        kind = given.get("span_kind", given.get("spanKind", ""))
        found = operations(_traces(request, context), given.get("service", ""), kind.lower())
        shown = [{"name": name, "spanKind": kind or KINDS[1]} for name, kind in found]
        return as_json({"operations": shown})

    @v3.get("/api/v3/traces/{trace_id}")
    def v3_trace(request: Request, context: Reading, trace_id: str) -> Response:
        data = _whole(request, context, [trace_id_of(trace_id)])
        if not data.resource_spans:
            raise NotFound("No traces found")
        return _result(data)

    @v3.get("/api/v3/traces")
    def v3_find(request: Request, context: Reading) -> Response:
        found = [trace.trace_id for trace in find(_traces(request, context), _wanted_v3(request))]
        data = _whole(request, context, found)
        if not data.resource_spans:
            raise NotFound("No traces found")
        return _result(data)

    @v3.get("/api/v3/trace-summaries")
    def v3_summaries(request: Request, context: Reading) -> Response:
        context.note("read", "traces")
        found = find(_traces(request, context), _wanted_v3(request))
        return as_json({"summaries": [_summary(summary_of(trace)) for trace in found]})

    @v3.get("/api/v3/dependencies")
    def v3_dependencies(request: Request, context: Reading) -> Response:
        start, end = (_moment_v3(request, name) for name in ("startTime", "endTime"))
        context.note("read", "dependencies")
        found = dependencies(_traces(request, context), start, end)
        return as_json({"dependencies": [_dependency(one, str) for one in found]})

    @v3.get("/api/v3/capabilities")
    def v3_capabilities(_: Reading) -> Response:
        return as_json({"search": {"withoutServiceName": True, "sameSpanConjunction": True}})

    @legacy.get("/api/services")
    def legacy_services(request: Request, context: Reading) -> Response:
        context.note("read", "services")
        return _data(services(_traces(request, context)))

    @legacy.get("/api/services/{service:path}/operations")
    def legacy_names(request: Request, context: Reading, service: str) -> Response:
        context.note("read", "operations")
        found = operations(_traces(request, context), service)
        return _data(sorted({name for name, _ in found}))

    @legacy.get("/api/operations")
    def legacy_operations(request: Request, context: Reading) -> Response:
        context.note("read", "operations")
        given = request.query_params
        kind = given.get("spanKind", "").lower()
        found = operations(_traces(request, context), given.get("service", ""), kind)
        return _data([{"name": name, "spanKind": kind} for name, kind in found])

    @legacy.get("/api/traces")
    def legacy_find(request: Request, context: Reading) -> Response:
        traces, cap = _traces(request, context), tenant_traces_of(request).jaeger
        ids = [trace_id_of(one) for one in request.query_params.getlist("traceID")]
        if not ids:
            ids = [trace.trace_id for trace in find(traces, _wanted_legacy(request))]
        context.note("read", "traces")
        for one in ids:
            context.note("read", one.hex())
        shown = [ui_trace(one, traces.envelopes(one, cap)) for one in ids]
        missing = [
            {"code": 404, "msg": "trace not found", "traceID": trace["traceID"]}
            for trace in shown
            if not trace["spans"]
        ]
        return _data([trace for trace in shown if trace["spans"]], total=0, errors=missing)

    @legacy.get("/api/dependencies")
    def legacy_dependencies(request: Request, context: Reading) -> Response:
        context.note("read", "dependencies")
        found = dependencies(_traces(request, context), *_lookback(request))
        return _data([_dependency(one, int) for one in found])

    def not_here(_: Reading) -> Response:
        return _say(501, "playhead shows traces only: no metrics of its own, no archive, no upload")

    for path, method in NOT_HERE.items():
        legacy.add_api_route(path, not_here, methods=[method])

    if traces_by_id:
        legacy.add_api_route("/api/traces/{trace_id}", legacy_trace, methods=["GET"])
    return [v3, legacy]


def legacy_trace(request: Request, context: Reading, trace_id: str) -> Response:
    """``/api/traces/{trace_id}`` in Jaeger's format."""
    try:
        id = trace_id_of(trace_id)
    except NotFound as problem:
        return _say(404, problem.what)
    context.note("read", id.hex())
    envelopes = _traces(request, context).envelopes(id, tenant_traces_of(request).jaeger)
    trace = ui_trace(id, envelopes)
    return _data([trace], total=0) if trace["spans"] else _say(404, "trace not found")


def _traces(request: Request, context: RequestContext) -> Traces:
    return tenant_traces_of(request).traces(context.caller.tenant)


def _whole(request: Request, context: RequestContext, ids: list[bytes]) -> TracesData:
    traces, cap = _traces(request, context), tenant_traces_of(request).jaeger
    data = TracesData()
    for trace_id in ids:
        context.note("read", trace_id.hex())
        data.resource_spans.extend(traces.envelopes(trace_id, cap))
    return data


def _wanted_v3(request: Request) -> Wanted:
    given = _in_camel_case(request)
    if given.get("filter"):
        raise UsageError("query.filter is not supported: use query.attributes")
    for name in ("startTimeMin", "startTimeMax"):
        if not given.get(name):
            raise UsageError(f"query.{name} is required")
    start, end = (moment_ns(given[name]) for name in ("startTimeMin", "startTimeMax"))
    if start > end:
        raise UsageError("query.startTimeMin is behind query.startTimeMax")
    least, most = given.get("durationMin", ""), given.get("durationMax", "")
    return Wanted(
        service=given.get("serviceName", ""),
        operation=given.get("operationName") or given.get("spanName", ""),
        attributes=_map(given.get("attributes", "")),
        start_min_ns=start,
        start_max_ns=end,
        duration_min_ns=duration_ns(least) if least else None,
        duration_max_ns=duration_ns(most) if most else None,
        depth=_number(given.get("searchDepth") or given.get("numTraces") or str(DEPTH)),
    )


def _in_camel_case(request: Request) -> dict[str, str]:
    """The parameters without the prefix ``query.``; older clients write ``query.service_name``."""
    given: dict[str, str] = {}
    for key, value in request.query_params.items():
        name = key.removeprefix("query.")
        given["".join(part.title() if at else part for at, part in enumerate(name.split("_")))] = value
    return given


def _wanted_legacy(request: Request) -> Wanted:
    given = request.query_params
    attributes = _map(given.get("tags", ""))
    for one in given.getlist("tag"):
        key, colon, value = one.partition(":")
        if not colon:
            raise UsageError(f"tag {one!r} is not key:value")
        attributes[key] = value
    least, most = given.get("minDuration", ""), given.get("maxDuration", "")
    start, end = given.get("start", ""), given.get("end", "")
    return Wanted(
        service=given.get("service", ""),
        operation=given.get("operation", ""),
        attributes=attributes,
        start_min_ns=moment_ns(start, unit_ns=MICRO_NS) if start else None,
        start_max_ns=moment_ns(end, unit_ns=MICRO_NS) if end else None,
        duration_min_ns=duration_ns(least) if least else None,
        duration_max_ns=duration_ns(most) if most else None,
        depth=_number(given.get("limit") or str(DEPTH)),
    )


def _map(text: str) -> dict[str, str]:
    if not text:
        return {}
    try:
        return msgspec.json.decode(text.encode(), type=dict[str, str])
    except msgspec.DecodeError:
        raise UsageError("attributes are no JSON object of strings") from None


def _number(text: str) -> int:
    if not text.isdecimal() or len(text) > 6:
        raise UsageError(f"{text!r} is not a number of traces")
    return int(text)


def _summary(one: Summary) -> dict[str, Any]:
    return {
        "traceId": one.trace_id.hex(),
        "rootServiceName": one.root_service,
        "rootOperationName": one.root_operation,
        "minStartTimeUnixNano": str(one.start_ns),
        "maxEndTimeUnixNano": str(one.end_ns),
        "spanCount": one.spans,
        "errorSpanCount": one.errors,
        "orphanSpanCount": one.orphans,
        "services": [
            {"name": name, "spanCount": spans, "errorSpanCount": errors}
            for name, (spans, errors) in one.services.items()
        ],
    }


def _lookback(request: Request) -> tuple[int | None, int | None]:
    """Start and end, from ``endTs`` and ``lookback`` in ms."""
    given = request.query_params
    end = moment_ns(given["endTs"], unit_ns=MILLI_NS) if given.get("endTs") else None
    lookback = given.get("lookback")
    if end is None or not lookback:
        return None, end
    return max(end - moment_ns(lookback, unit_ns=MILLI_NS), 0), end


def _moment_v3(request: Request, name: str) -> int | None:
    """An RFC 3339 time; its parameter may be in camel case or snake case."""
    text = _in_camel_case(request).get(name, "")
    return moment_ns(text) if text else None


def _dependency(one: tuple[str, str, int], count: Callable[[int], Any]) -> dict[str, Any]:
    return {"parent": one[0], "child": one[1], "callCount": count(one[2])}


def _result(data: TracesData) -> Response:
    return Response(b'{"result":' + export_json(data) + b"}", media_type=JSON)


def _data(found: list[Any], total: int | None = None, errors: list[Any] | None = None) -> Response:
    count = len(found) if total is None else total
    return as_json({"data": found, "total": count, "limit": 0, "offset": 0, "errors": errors or None})


def _say(status: int, text: str) -> Response:
    said = {"code": status, "msg": text}
    return as_json({"data": None, "total": 0, "limit": 0, "offset": 0, "errors": [said]}, status)


def _say_v3(status: int, text: str) -> Response:
    return as_json({"error": {"httpCode": status, "message": text}}, status)
