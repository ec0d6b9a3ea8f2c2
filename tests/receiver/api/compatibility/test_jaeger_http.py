"""Jaeger's HTTP JSON as its UI and Grafana's Jaeger data source ask for it."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import TRACE

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch

ENVELOPE = {"data", "total", "limit", "offset", "errors"}
START_S = START_NS // 10**9
MICRO = START_NS // 1000


@pytest.fixture
def stored(receiver: Receiver) -> Receiver:
    receiver.store.commit(
        Batch(
            [
                span_of(b"1" * 16, 1, service="front", name="run", end_ns=START_NS + 2 * 10**9),
                span_of(b"1" * 16, 2, parent=1, service="back", error=True, size=7, sum=1.5, ok=True),
                span_of(b"2" * 16, 3, service="back", name="plan", color="red"),
            ]
        )
    )
    return receiver


@pytest.fixture(params=["", "/jaeger"])
def prefix(request: pytest.FixtureRequest) -> str:
    return request.param


def test_the_older_endpoints(api: httpx.Client, stored: Receiver, prefix: str):
    services = api.get(f"{prefix}/api/services").json()
    assert services.keys() == ENVELOPE
    assert {"back", "front"} <= set(services["data"])
    assert services["total"] == len(services["data"])
    assert api.get(f"{prefix}/api/services/back/operations").json()["data"] == ["chat gpt-4o", "plan"]
    found = api.get(f"{prefix}/api/operations", params={"service": "back", "spanKind": "client"}).json()
    assert found["data"][1] == {"name": "plan", "spanKind": "client"}
    calls = {"endTs": START_S * 1000 + 5000, "lookback": 60_000}
    assert api.get(f"{prefix}/api/dependencies", params=calls).json()["data"] == [
        {"parent": "front", "child": "back", "callCount": 1}
    ]


def test_a_service_may_have_a_slash_in_its_name(api: httpx.Client, receiver: Receiver, prefix: str):
    receiver.store.commit(Batch([span_of(b"/" * 16, 1, name="asks", service="shop/orders")]))
    answer = api.get(f"{prefix}/api/services/shop%2Forders/operations")
    assert (answer.status_code, answer.json()["data"]) == (200, ["asks"])


def test_a_trace_as_the_page_of_a_trace_wants_it(api: httpx.Client, stored: Receiver, prefix: str):
    answer = api.get(f"{prefix}/api/traces/{'31' * 16}").json()
    assert (answer["errors"], answer["total"]) == (None, 0)
    [trace] = answer["data"]
    assert trace["traceID"] == "31" * 16
    root, child = trace["spans"]
    assert (root["operationName"], root["references"]) == ("run", [])
    assert (root["startTime"], root["duration"]) == (MICRO + 1, 2 * 10**6 - 1)
    assert child["references"] == [{"refType": "CHILD_OF", "traceID": "31" * 16, "spanID": f"{1:016x}"}]
    assert {(tag["key"], tag["type"], tag["value"]) for tag in child["tags"]} == {
        ("size", "int64", 7),
        ("sum", "float64", 1.5),
        ("ok", "bool", True),
        ("span.kind", "string", "client"),
        ("otel.status_code", "string", "ERROR"),
        ("error", "bool", True),
    }
    assert trace["processes"][root["processID"]] == {"serviceName": "front", "tags": []}
    assert trace["processes"][child["processID"]]["serviceName"] == "back"


def test_a_trace_that_is_not_there_is_no_empty_list(api: httpx.Client, prefix: str):
    for id in ("7" * 32, "xyz"):
        answer = api.get(f"{prefix}/api/traces/{id}")
        assert answer.status_code == 404
        assert answer.json()["data"] is None
        assert answer.json()["errors"][0]["code"] == 404


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ({"service": "back"}, "21"),
        ({"service": "back", "operation": "plan"}, "2"),
        ({"service": "back", "tags": '{"color":"red"}'}, "2"),
        ({"tag": "error:true"}, "1"),
        ({"tag": ["size:7", "ok:true"]}, "1"),
        ({"tag": ["size:7", "color:red"]}, ""),
        ({"service": "front", "minDuration": "1.5s"}, "1"),
        ({"service": "back", "limit": "1"}, "2"),
        ({"traceID": ["31" * 16, "9" * 32]}, "1"),
    ],
)
def test_a_search_of_the_older_form(api: httpx.Client, stored: Receiver, wanted: Any, found: str):
    window = {"start": str(MICRO - 10**6), "end": str(MICRO + 10**7)}
    answer = api.get("/api/traces", params={**window, **wanted})
    assert [one["traceID"] for one in answer.json()["data"]] == [f"3{one}" * 16 for one in found]


def test_a_wrong_search_is_said_to_be_one(api: httpx.Client):
    for wanted in (
        {"tags": "no"},
        {"tag": "x"},
        {"minDuration": "long"},
        {"limit": "-1"},
        {"start": "x"},
    ):
        answer = api.get("/api/traces", params=wanted)
        assert answer.status_code == 400
        assert answer.json()["errors"][0]["msg"]
        assert answer.json().keys() == ENVELOPE


def times() -> dict[str, str]:
    from datetime import UTC, datetime

    return {
        "query.startTimeMin": datetime.fromtimestamp(START_S - 60, UTC).isoformat(),
        "query.startTimeMax": datetime.fromtimestamp(START_S + 60, UTC)
        .isoformat()
        .replace("+00:00", "Z"),
    }


def test_what_the_ui_asks(api: httpx.Client, stored: Receiver, prefix: str):
    assert {"back", "front"} <= set(api.get(f"{prefix}/api/v3/services").json()["services"])
    operations = api.get(f"{prefix}/api/v3/operations", params={"service": "back"}).json()["operations"]
    assert operations[-1] == {"name": "plan", "spanKind": "client"}
    asked = {"query.serviceName": "front", "query.searchDepth": "20", **times()}
    [summary] = api.get(f"{prefix}/api/v3/trace-summaries", params=asked).json()["summaries"]
    assert summary == {
        "traceId": "31" * 16,
        "rootServiceName": "front",
        "rootOperationName": "run",
        "minStartTimeUnixNano": str(START_NS + 1000),
        "maxEndTimeUnixNano": str(START_NS + 2 * 10**9),
        "spanCount": 2,
        "errorSpanCount": 1,
        "orphanSpanCount": 0,
        "services": [
            {"name": "back", "spanCount": 1, "errorSpanCount": 1},
            {"name": "front", "spanCount": 1, "errorSpanCount": 0},
        ],
    }


def test_the_third_version_answers_in_otlp(api: httpx.Client, stored: Receiver):
    found = api.get(f"/api/v3/traces/{'31' * 16}").json()["result"]["resourceSpans"]
    assert [one["scopeSpans"][0]["spans"][0]["spanId"] for one in found] == [f"{1:016x}", f"{2:016x}"]
    asked = {"query.attributes": '{"color":"red"}', **times()}
    [one] = api.get("/api/v3/traces", params=asked).json()["result"]["resourceSpans"]
    assert one["scopeSpans"][0]["spans"][0]["traceId"] == "32" * 16
    snake = {"query.service_name": "back", "query.operation_name": "plan", "query.num_traces": "5"}
    snake |= {"query.start_time_min": times()["query.startTimeMin"]}
    snake |= {"query.start_time_max": times()["query.startTimeMax"]}
    assert len(api.get("/api/v3/traces", params=snake).json()["result"]["resourceSpans"]) == 1


@pytest.mark.parametrize(
    ("path", "params", "status"),
    [
        (f"/api/v3/traces/{'9' * 32}", {}, 404),
        ("/api/v3/traces", {}, 400),
        ("/api/v3/trace-summaries", {"query.startTimeMin": "2026-01-01T00:00:00Z"}, 400),
        ("/api/v3/traces", times() | {"query.durationMin": "long"}, 400),
        ("/api/v3/traces", times() | {"query.serviceName": "nobody"}, 404),
        ("/api/v3/trace-summaries", times() | {"query.filter": '{"op":"eq"}'}, 400),
        ("/api/v3/dependencies", {"startTime": "soon"}, 400),
    ],
)
def test_problems_of_the_third_version(
    api: httpx.Client, path: str, params: dict[str, str], status: int
):
    answer = api.get(path, params=params)
    assert answer.status_code == status
    assert answer.json()["error"]["httpCode"] == status
    assert answer.json()["error"]["message"]


def test_dependencies_of_the_third_version(api: httpx.Client, stored: Receiver):
    window = {
        "startTime": times()["query.startTimeMin"],
        "endTime": times()["query.startTimeMax"],
    }
    said = [{"parent": "front", "child": "back", "callCount": "1"}]
    assert api.get("/api/v3/dependencies", params=window).json() == {"dependencies": said}
    later = {"start_time": times()["query.startTimeMax"]}
    assert api.get("/api/v3/dependencies", params=later).json() == {"dependencies": []}


def test_a_span_is_asked_for_by_each_name_that_the_ui_had_for_it(api: httpx.Client, stored: Receiver):
    for name in ("query.operationName", "query.operation_name", "query.span_name"):
        found = api.get("/api/v3/trace-summaries", params=times() | {name: "plan"}).json()["summaries"]
        assert [one["traceId"] for one in found] == ["32" * 16], name


def test_what_a_storage_of_traces_can_be_asked(api: httpx.Client, prefix: str):
    search = api.get(f"{prefix}/api/v3/capabilities").json()["search"]
    assert search == {"withoutServiceName": True, "sameSpanConjunction": True}


def test_what_is_not_here_is_said_to_be_missing(api: httpx.Client, prefix: str):
    """The UI shows what it is told; of its page of metrics it knows that 501 means there are none."""
    asked = [
        api.get(f"{prefix}/api/metrics/{name}", params={"service": "back"})
        for name in ("latencies", "calls", "errors", "minstep")
    ]
    asked.append(api.post(f"{prefix}/api/archive/{'31' * 16}"))
    asked.append(api.post(f"{prefix}/api/transform", content=b"{}"))
    for answer in asked:
        assert answer.status_code == 501
        assert answer.json()["errors"][0]["code"] == 501
        assert "traces" in answer.json()["errors"][0]["msg"]


def test_of_several_traces_those_that_are_missing_are_named(api: httpx.Client, stored: Receiver):
    answer = api.get("/api/traces", params={"traceID": ["31" * 16, "9" * 32]}).json()
    assert [one["traceID"] for one in answer["data"]] == ["31" * 16]
    assert answer["errors"] == [{"code": 404, "msg": "trace not found", "traceID": "9" * 32}]


def test_payloads_are_cut_for_the_ui(api: httpx.Client, receiver: Receiver):
    trace = b"l" * 16
    receiver.store.commit(Batch([span_of(trace, 1, text="x" * 100_000)]))
    [shown] = api.get(f"/api/traces/{trace.hex()}").json()["data"]
    tags = {tag["key"]: tag["value"] for tag in shown["spans"][0]["tags"]}
    assert tags["text"].startswith("x" * 4096 + "… [100000 bytes, full: https://playhead.example/")
    assert tags["playhead.url"] == f"https://playhead.example/v1/spans/{trace.hex()}/{1:016x}"


def test_a_recorded_run_is_shown(api: httpx.Client, receiver: Receiver):
    [trace] = api.get(f"/api/traces/{TRACE.hex()}").json()["data"]
    assert len(trace["spans"]) == len(receiver.store.outline(TRACE))
    assert "chat gpt-4o" in {span["operationName"] for span in trace["spans"]}
