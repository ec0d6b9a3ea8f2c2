"""What Jaeger and Grafana ask, over the example agents as `playhead record` stores them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
from support.outside.viewers import (
    PROTOBUF,
    SPAN_KEYS,
    TRACE_KEYS,
    Ask,
    jaeger,
    jaeger_query,
    searched,
    series_of,
    spans_of,
)
from support.starting.home import PATIENCE_S, Home

from playhead_cli.demo.provider import Provider
from playhead_core.otlp import attributes_of
from playhead_receiver.api.tempo.http import TraceByIDResponse
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import RunSummary
from playhead_semconv import attributes as a

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVICES = {"weather": "travel", "research": "library", "refund": "desk"}
"""Some agents say which service they are; `search` does not, and does not find its order."""


class Demo(NamedTuple):
    """A receiver that has recorded the example agents."""

    receiver: Receiver
    api: httpx.Client
    ask: Ask
    runs: dict[str, RunSummary]
    """By the agent's name."""
    since_s: int

    def agents(self, traces: set[str]) -> set[str]:
        return {name for name, run in self.runs.items() if run.trace_id in traces}

    def find(self, q: str, **more: Any) -> set[str]:
        """The agents of the traces that Tempo's search finds."""
        found = searched(self.api, q, **self.window, **more)
        assert all(one.keys() == TRACE_KEYS for one in found)
        assert all(s.keys() == SPAN_KEYS for one in found for s in one["spanSet"]["spans"])
        return self.agents({one["traceID"] for one in found})

    def asked_for(self, **wanted: Any) -> set[str]:
        """The agents of the traces that Jaeger finds, whichever way it asks."""
        times = {
            "start_time_min": {"seconds": self.since_s},
            "start_time_max": {"seconds": self.since_s + 3600},
        }
        query = jaeger_query(**times, **wanted)
        whole = {span.trace_id.hex() for span in spans_of(*self.ask("FindTraces", query=query))}
        ids = {one.trace_id.hex() for one in self.ask("FindTraceIDs", query=query).trace_ids}
        told = self.ask("FindTraceSummaries", query=query)
        assert whole == ids == {one.trace_id.hex() for chunk in told for one in chunk.summaries}
        return self.agents(ids)

    @property
    def window(self) -> dict[str, str]:
        return {"start": str(self.since_s), "end": str(self.since_s + 3600)}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    folder = tmp_path_factory.mktemp("faces")
    since_s = int(time.time())
    with ExitStack() as stack:
        provider = stack.enter_context(Provider(pace_s=0.002))
        receiver = stack.enter_context(
            Receiver(folder / "data", Configuration(Addresses(http_port=0, grpc_port=0, query_port=0)))
        )
        home = Home(folder, provider.environment | {"PLAYHEAD_ENDPOINT": receiver.http_endpoint})
        recording = {
            name: home.start(
                "record",
                EXAMPLES / f"{name}_agent.py",
                env=home.environ | ({"OTEL_SERVICE_NAME": SERVICES[name]} if name in SERVICES else {}),
            )
            for name in (*SERVICES, "search")
        }
        for name, agent in recording.items():
            said = agent.communicate(timeout=PATIENCE_S)
            assert (agent.returncode == 0) == (name in SERVICES), said
        runs = {
            name: receiver.store.resolve(f"{SERVICES.get(name, f'{name}_agent')}-1")
            for name in recording
        }
        api = stack.enter_context(httpx.Client(base_url=receiver.query_endpoint, timeout=60))
        yield Demo(receiver, api, stack.enter_context(jaeger(receiver.grpc_endpoint)), runs, since_s)


ROOTS = {name: f"invoke_agent {service}" for name, service in SERVICES.items()} | {
    "search": "run search_agent.py"
}
ALL = {"weather", "research", "refund", "search"}
OPENAI = {"weather", "refund", "search"}


def test_a_trace_by_its_id(demo: Demo):
    assert demo.api.get("/tempo/api/echo").text == "echo"
    for run in demo.runs.values():
        trace_id = bytes.fromhex(run.trace_id)
        ids = {row.span_id for row in demo.receiver.store.outline(trace_id)}
        answer = demo.api.get(f"/tempo/api/v2/traces/{run.trace_id}", headers=PROTOBUF)
        spans = spans_of(TraceByIDResponse.FromString(answer.content).trace)
        assert {span.span_id for span in spans} == ids
        assert len(spans) == len(ids)
        said = {name for span in spans for name in attributes_of(span.attributes)}
        assert {a.GEN_AI_INPUT_MESSAGES, a.GEN_AI_OUTPUT_MESSAGES} <= said
        old = demo.api.get(f"/tempo/api/traces/{run.trace_id}", headers=PROTOBUF)
        assert spans_of(TracesData.FromString(old.content)) == spans
        spoken = demo.api.get(f"/tempo/api/traces/{run.trace_id}").json()["batches"]
        assert {one["scopeSpans"][0]["spans"][0]["spanId"] for one in spoken} == {
            one.hex() for one in ids
        }
        shown = spans_of(*demo.ask("GetTraces", query=[{"trace_id": trace_id}]))
        assert {span.span_id for span in shown} == ids
        [page] = demo.api.get(f"/jaeger/api/traces/{run.trace_id}").json()["data"]
        assert {span["spanID"] for span in page["spans"]} == {one.hex() for one in ids}
        v3 = demo.api.get(f"/jaeger/api/v3/traces/{run.trace_id}").json()["result"]
        assert len(v3["resourceSpans"]) == len(ids)


def test_what_was_sent_is_what_is_shown(demo: Demo):
    """Every span has all that came in, as it came, and what it left out."""
    for run in demo.runs.values():
        answer = demo.api.get(f"/tempo/api/traces/{run.trace_id}", headers=PROTOBUF)
        shown = {
            one.scope_spans[0].spans[0].span_id: one
            for one in TracesData.FromString(answer.content).resource_spans
        }
        for stored in demo.receiver.store.spans(bytes.fromhex(run.trace_id)):
            came = ResourceSpans.FromString(stored.otlp)
            whole = shown[stored.span_id]
            assert whole.resource == came.resource
            sent = came.scope_spans[0].spans[0].attributes
            assert list(whole.scope_spans[0].spans[0].attributes)[: len(sent)] == list(sent)


@pytest.mark.parametrize(
    ("q", "agents"),
    [
        ("{}", ALL),
        ("{ true }", ALL),
        ('{ resource.service.name = "travel" }', {"weather"}),
        ('{ resource.service.name =~ "travel|desk" }', {"weather", "refund"}),
        ('{ resource.service.name !~ "travel|desk" }', {"research", "search"}),
        ('{ .gen_ai.provider.name = "anthropic" }', {"research"}),
        ('{ .gen_ai.provider.name != "anthropic" }', OPENAI),
        ('{ span.gen_ai.request.model =~ "claude.*" }', {"research"}),
        ('{ span."gen_ai.request.model" = `gpt-5.5` }', OPENAI),
        ('{ name = "chat gpt-5.5" && span.openai.api.type = "responses" }', {"refund"}),
        ('{ span:name = "chat gpt-5.5" || (name = "nothing" && status = error) }', OPENAI),
        ("{ span.gen_ai.request.reasoning.level != nil }", {"refund"}),
        ("{ span.gen_ai.request.stream = true && span.gen_ai.request.max_tokens = 2000 }", {"research"}),
        ("{ span.gen_ai.request.max_tokens > 1999 }", {"research"}),
        ("{ span.gen_ai.response.time_to_first_chunk > 0.0000001 }", {"weather", "research", "refund"}),
        ("{ span.gen_ai.usage.input_tokens >= 800 }", {"search"}),
        ('{ span.gen_ai.response.finish_reasons = "tool_call" }', OPENAI),
        ('{ span.gen_ai.tool.definitions =~ ".*lookup_order.*" }', {"refund"}),
        ('{ span.gen_ai.output.messages =~ ".*tea kettle.*" }', {"refund"}),
        ("{ span.http.response.status_code = 429 }", {"weather", "search"}),
        ("{ kind = client && status = error }", {"weather", "search"}),
        ("{ nestedSetParent < 0 && status = error }", {"search"}),
        ('{ rootName = "invoke_agent desk" }', {"refund"}),
        ('{ rootServiceName = "library" }', {"research"}),
        ("{ traceDuration > 1ns && trace:duration < 1h }", ALL),
        ("{ duration > 1h }", set[str]()),
        ('{ event:name = "exception" }', set[str]()),
        ('{ event.exception.message != nil || link.why = "x" }', set[str]()),
        ('{ instrumentation:name = "playhead" }', ALL),
        ('{ .server.address = "127.0.0.1" } | select(status, .server.port)', ALL),
        ('{ name = "POST" } | count() > 20', set[str]()),
        ("{ nestedSetParent<0 } >> { span.http.response.status_code = 429 }", {"weather", "search"}),
        # Traces Drilldown
        ("{nestedSetParent<0 && true}", ALL),
        ("{true && duration > 1ns} | select(resource.service.name, name)", ALL),
        (
            "({nestedSetParent<0 && status = error} &>> { status = error }) || "
            "({nestedSetParent<0 && status = error}) | select(status, resource.service.name, name, "
            "nestedSetParent, nestedSetLeft, nestedSetRight)",
            {"search"},
        ),
        (
            "{true && status = error} | select(resource.service.name, event.exception.message, "
            "event.exception.stacktrace, event.exception.type) with(most_recent=true)",
            {"weather", "search"},
        ),
    ],
)
def test_a_search(demo: Demo, q: str, agents: set[str]):
    assert demo.find(q, limit=200, spss=20) == agents


def test_a_trace_by_its_id_in_traceql(demo: Demo):
    for name, run in demo.runs.items():
        assert demo.find(f'{{ trace:id = "{run.trace_id}" }}') == {name}
        [trace] = searched(demo.api, f'{{ rootName = "{ROOTS[name]}" }}', **demo.window)
        assert trace["rootTraceName"] == ROOTS[name]
        assert trace["rootServiceName"].startswith(SERVICES.get(name, f"{name}_agent"))
        stats = trace["serviceStats"][trace["rootServiceName"]]
        rows = demo.receiver.store.outline(bytes.fromhex(run.trace_id))
        assert stats["spanCount"] == len(rows)


def test_tags_and_their_values(demo: Demo):
    found = demo.api.get("/tempo/api/v2/search/tags", params={"limit": 5000, **demo.window}).json()
    tags = {one["name"]: set(one["tags"]) for one in found["scopes"]}
    assert {a.GEN_AI_REQUEST_MODEL, a.GEN_AI_INPUT_MESSAGES, "url.full"} <= tags["span"]
    assert {"service.name", "telemetry.sdk.name"} <= tags["resource"]
    assert {"duration", "status", "rootServiceName"} <= tags["intrinsic"]
    old = demo.api.get("/tempo/api/search/tags", params=demo.window).json()["tagNames"]
    assert set(old) == set[str]().union(*(tags[one] for one in tags if one != "intrinsic"))

    def values(tag: str, **more: str) -> set[str]:
        asked = {"limit": "5000", **demo.window, **more}
        answer = demo.api.get(f"/tempo/api/v2/search/tag/{tag}/values", params=asked)
        return {one["value"] for one in answer.json()["tagValues"]}

    assert values("resource.service.name") >= {*SERVICES.values()}
    assert values("span.gen_ai.request.model") == {"gpt-5.5", "claude-sonnet-5-5"}
    claude = '{ .gen_ai.provider.name = "anthropic" }'
    assert values("span.gen_ai.request.model", q=claude) == {"claude-sonnet-5-5"}
    assert values("span.http.response.status_code") == {"200", "429"}
    assert values("rootName") == {*ROOTS.values()}
    old = demo.api.get("/tempo/api/search/tag/gen_ai.request.model/values", params=demo.window).json()
    assert old["tagValues"] == ["claude-sonnet-5-5", "gpt-5.5"]


def test_metrics(demo: Demo):
    def counted(q: str) -> dict[tuple[Any, ...], float]:
        asked = {"q": q, **demo.window, "step": "60"}
        found = series_of(demo.api.get("/tempo/api/metrics/query_range", params=asked))
        return {key: sum(value for _, value in points) for key, points in found.items()}

    model = "span.gen_ai.request.model"
    asked = "{ span.gen_ai.request.model != nil }"
    calls = {(model, "gpt-5.5"): 0, (model, "claude-sonnet-5-5"): 0}
    tokens = dict(calls)
    for run in demo.runs.values():
        for stored in demo.receiver.store.spans(bytes.fromhex(run.trace_id)):
            span = ResourceSpans.FromString(stored.otlp).scope_spans[0].spans[0]
            at = attributes_of(span.attributes)
            if a.GEN_AI_REQUEST_MODEL in at:
                calls[model, at[a.GEN_AI_REQUEST_MODEL]] += 1
                tokens[model, at[a.GEN_AI_REQUEST_MODEL]] += at.get(a.GEN_AI_USAGE_INPUT_TOKENS, 0)
    assert counted(f"{asked} | count_over_time() by({model})") == calls
    assert counted(f"{asked} | sum_over_time(span.gen_ai.usage.input_tokens) by({model})") == tokens
    [cost] = counted(f"{asked} | sum_over_time(span.playhead.cost.usd)").values()
    assert cost == pytest.approx(sum(run.cost_usd or 0.0 for run in demo.runs.values()))
    assert demo.find("{ span.playhead.cost.usd > 0 } | select(span.playhead.cost.usd)") == ALL
    [roots] = counted("{nestedSetParent<0 && true} | rate()  with(sample=true)").values()
    assert round(roots * 60) == len(ALL)
    errors = counted("{nestedSetParent<0 && true && status=error} | rate() by(rootName)")
    assert {key[1] for key in errors} == {"run search_agent.py"}
    buckets = counted("{nestedSetParent<0 && true} | histogram_over_time(duration) with(sample=true)")
    assert sum(buckets.values()) == len(ALL)
    middle = counted(f"{{true && {model} != nil}} | quantile_over_time(duration, 0.9) by({model})")
    assert {key[1] for key in middle} == {"gpt-5.5", "claude-sonnet-5-5"}
    compared = counted("{nestedSetParent<0 && true} | compare({status = error}, 10)")
    assert compared["__meta_type", "selection", "name", "run search_agent.py"] == 1
    assert compared["__meta_type", "baseline_total", "name", "nil"] == len(ALL) - 1
    whole = {"q": f"{asked} | count_over_time()", **demo.window}
    [series] = demo.api.get("/tempo/api/metrics/query", params=whole).json()["series"]
    assert series["value"] == sum(calls.values())


def text(value: str) -> dict[str, str]:
    return {"string_value": value}


@pytest.mark.parametrize(
    ("wanted", "agents"),
    [
        ({}, ALL),
        ({"service_name": "travel"}, {"weather"}),
        ({"service_name": "travel", "operation_name": "chat gpt-5.5"}, {"weather"}),
        ({"service_name": "library", "operation_name": "chat gpt-5.5"}, set[str]()),
        ({"operation_name": "chat gpt-5.5"}, OPENAI),
        ({"attributes": [{"key": "error", "value": text("true")}]}, {"weather", "search"}),
        (
            {"attributes": [{"key": "http.response.status_code", "value": text("429")}]},
            {"weather", "search"},
        ),
        ({"attributes": [{"key": "http.response.status_code", "value": {"int_value": 200}}]}, ALL),
        (
            {"attributes": [{"key": "gen_ai.request.stream", "value": {"bool_value": True}}]},
            ALL - {"search"},
        ),
        ({"attributes": [{"key": "gen_ai.response.id", "value": text("resp_1")}]}, {"refund"}),
        ({"attributes": [{"key": "service.name", "value": text("desk")}]}, {"refund"}),
        ({"attributes": [{"key": "otel.scope.name", "value": text("playhead")}]}, ALL),
        (
            {
                "attributes": [
                    {"key": "span.kind", "value": text("client")},
                    {"key": "gen_ai.request.model", "value": text("claude-sonnet-5-5")},
                ]
            },
            {"research"},
        ),
        ({"duration_min": {"nanos": 1}}, ALL),
        ({"duration_min": {"seconds": 3600}}, set[str]()),
        ({"duration_max": {"seconds": 3600}}, ALL),
        ({"operation_name": "invoke_agent desk", "duration_max": {"nanos": 1}}, set[str]()),
    ],
)
def test_jaeger_finds(demo: Demo, wanted: Any, agents: set[str]):
    assert demo.asked_for(**wanted) == agents


def test_jaegers_search_depth_and_window(demo: Demo):
    assert len(demo.asked_for(search_depth=2)) == 2
    late = jaeger_query(start_time_min={"seconds": demo.since_s + 3600})
    assert demo.ask("FindTraces", query=late) == []


def test_jaegers_services_operations_and_dependencies(demo: Demo):
    assert set(demo.ask("GetServices").services) >= {*SERVICES.values()}
    found = demo.ask("GetOperations", service="desk").operations
    assert {(one.name, one.span_kind) for one in found} == {
        ("GET", "client"),
        ("POST", "client"),
        ("chat gpt-5.5", "client"),
        ("invoke_agent desk", "internal"),
    }
    [run] = demo.ask("GetOperations", service="desk", span_kind="internal").operations
    assert run.name == "invoke_agent desk"
    window = {"start_time": {"seconds": demo.since_s}, "end_time": {"seconds": demo.since_s + 3600}}
    calls = demo.ask("GetDependencies", of="DependencyReader", **window).dependencies
    assert list(calls) == []  # no agent calls another's service
    assert demo.ask("GetCapabilities", of="Capabilities").search.without_service_name


def test_jaegers_page(demo: Demo):
    services = demo.api.get("/jaeger/api/v3/services").json()["services"]
    assert set(services) >= {*SERVICES.values()}
    asked = {"service": "library"}
    operations = demo.api.get("/jaeger/api/v3/operations", params=asked).json()["operations"]
    assert {one["name"] for one in operations} == {
        "POST",
        "chat claude-sonnet-5-5",
        "invoke_agent library",
    }
    window = {
        f"query.startTime{end}": datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")
        for end, at in (("Min", demo.since_s), ("Max", demo.since_s + 3600))
    }
    model = {"query.attributes": json.dumps({a.GEN_AI_REQUEST_MODEL: "gpt-5.5"})}
    path = "/jaeger/api/v3/trace-summaries"
    told = demo.api.get(path, params={**window, **model}).json()["summaries"]
    assert demo.agents({one["traceId"] for one in told}) == OPENAI
    for one in told:
        [service] = one["services"]
        assert service["spanCount"] == one["spanCount"] > one["errorSpanCount"]
        assert one["orphanSpanCount"] == 0
    whole = demo.api.get("/jaeger/api/v3/traces", params={**window, "query.serviceName": "desk"}).json()
    assert len(whole["result"]["resourceSpans"]) == demo.runs["refund"].spans


def test_jaegers_older_endpoints(demo: Demo):
    assert set(demo.api.get("/jaeger/api/services").json()["data"]) >= {*SERVICES.values()}
    names = demo.api.get("/jaeger/api/services/desk/operations").json()["data"]
    assert names == ["GET", "POST", "chat gpt-5.5", "invoke_agent desk"]
    window = {"start": demo.since_s * 10**6, "end": (demo.since_s + 3600) * 10**6}
    asked = {"service": "travel", "tags": '{"http.response.status_code":"429"}', **window}
    [trace] = demo.api.get("/jaeger/api/traces", params=asked).json()["data"]
    assert trace["traceID"] == demo.runs["weather"].trace_id
    [refused] = [one for one in trace["spans"] if any(tag["key"] == "error" for tag in one["tags"])]
    assert refused["operationName"] == "POST"
    parents = {one["spanID"] for one in trace["spans"]}
    assert all(ref["spanID"] in parents for one in trace["spans"] for ref in one["references"])
    calls = {"endTs": window["end"] // 1000, "lookback": 3_600_000}
    assert demo.api.get("/jaeger/api/dependencies", params=calls).json()["data"] == []
