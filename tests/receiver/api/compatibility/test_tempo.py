"""What Grafana's Tempo data source asks, over stored runs."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, TracesData
from support.answers.dialects import OPENINFERENCE, OPENLLMETRY
from support.outside.viewers import PROTOBUF, SPAN_KEYS, TRACE_KEYS, spans_of
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import TRACE

from playhead_core.otlp import attributes_of
from playhead_receiver.api.tempo.http import TraceByIDResponse
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_semconv import attributes as a

START_S = START_NS // 10**9
WINDOW = {"start": str(START_S - 60), "end": str(START_S + 60)}
CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}


@pytest.fixture
def stored(receiver: Receiver) -> Receiver:
    receiver.store.commit(
        Batch(
            [
                span_of(b"1" * 16, 1, service="front", name="run", end_ns=START_NS + 2 * 10**9),
                span_of(b"1" * 16, 2, parent=1, service="back", error=True, size=7, **CHAT),
                span_of(b"2" * 16, 3, service="back", name="plan", color="red", end_ns=START_NS + 10**9),
            ]
        )
    )
    return receiver


@pytest.fixture(params=["", "/tempo"])
def prefix(request: pytest.FixtureRequest) -> str:
    return request.param


def searched(api: httpx.Client, q: str, **more: Any) -> list[Any]:
    answer = api.get("/api/search", params={"q": q, **WINDOW, **more})
    assert answer.status_code == 200, answer.text
    return answer.json()["traces"]


def test_save_and_test(api: httpx.Client, prefix: str):
    answer = api.get(f"{prefix}/api/echo")
    assert (answer.status_code, answer.text) == (200, "echo")
    assert api.get(f"{prefix}/api/status/buildinfo").json()["version"] == "2.9.0"


def test_a_trace_by_its_id_is_otlp(api: httpx.Client, receiver: Receiver, prefix: str):
    ids = {row.span_id for row in receiver.store.outline(TRACE)}
    answer = api.get(f"{prefix}/api/v2/traces/{TRACE.hex()}", headers=PROTOBUF)
    assert answer.headers["content-type"] == "application/protobuf"
    whole = TraceByIDResponse.FromString(answer.content)
    assert (whole.status, whole.message) == (0, "")
    assert {span.span_id for span in spans_of(whole.trace)} == ids
    old = api.get(f"{prefix}/api/traces/{TRACE.hex()}", headers=PROTOBUF)
    assert {span.span_id for span in spans_of(TracesData.FromString(old.content))} == ids
    spoken = api.get(f"{prefix}/api/v2/traces/{TRACE.hex()}").json()["trace"]["resourceSpans"]
    assert len(spoken) == len(ids)
    assert api.get(f"/tempo/api/traces/{TRACE.hex()}").json()["batches"] == spoken


def test_what_came_in_goes_out_as_it_came(api: httpx.Client, receiver: Receiver):
    trace = b"s" * 16
    stored = span_of(trace, 1, text="x" * 1000, many=["a", 1, {"b": None}], **CHAT)
    receiver.store.commit(Batch([stored]))
    data = TracesData.FromString(api.get(f"/api/traces/{trace.hex()}", headers=PROTOBUF).content)
    assert data.resource_spans[0] == ResourceSpans.FromString(stored.otlp)


def test_a_trace_that_is_not_there(api: httpx.Client, prefix: str):
    for path in ("/api/v2/traces/", "/api/traces/"):
        for id in ("9" * 32, "xyz", "1" * 33):
            assert api.get(f"{prefix}{path}{id}", headers=PROTOBUF).status_code == 404


def test_large_values_are_cut_with_a_link(api: httpx.Client, receiver: Receiver):
    trace = b"l" * 16
    receiver.store.commit(Batch([span_of(trace, 1, text="x" * 100_000)]))
    answer = api.get(f"/api/v2/traces/{trace.hex()}", headers=PROTOBUF)
    [span] = spans_of(TraceByIDResponse.FromString(answer.content).trace)
    found = attributes_of(span.attributes)
    url = f"https://playhead.example/v1/spans/{trace.hex()}/{1:016x}"
    assert found["text"] == "x" * 2048 + f"… [100000 bytes, full: {url}]"
    assert found[a.PLAYHEAD_URL] == url


@pytest.mark.parametrize(
    ("query", "traces"),
    [
        ("{}", "21"),
        ('{ resource.service.name = "front" }', "1"),
        ('{ resource.service.name = "back" && name = "plan" }', "2"),
        ("{ status = error }", "1"),
        ("{ duration > 1500ms }", "1"),
        ('{ span.gen_ai.request.model =~ "gpt.*" }', "1"),
        ('{ .color = "blue" }', ""),
        ('{ name = "run" } >> { span.size = 7 }', "1"),
    ],
)
def test_traces_are_searched(api: httpx.Client, stored: Receiver, query: str, traces: str):
    assert [one["traceID"] for one in searched(api, query)] == [f"3{one}" * 16 for one in traces]


def test_a_found_trace_has_what_grafana_knows(api: httpx.Client, stored: Receiver):
    [found] = searched(api, "{ span.size = 7 } | select(status, kind, resource.service.name)")
    assert found.keys() == TRACE_KEYS
    assert (found["rootServiceName"], found["rootTraceName"]) == ("front", "run")
    assert (found["startTimeUnixNano"], found["durationMs"]) == (str(START_NS + 1000), 1999)
    assert found["serviceStats"] == {
        "front": {"spanCount": 1},
        "back": {"spanCount": 1, "errorCount": 1},
    }
    [spanset] = found["spanSets"]
    assert spanset == found["spanSet"]
    assert spanset["matched"] == 1
    [span] = spanset["spans"]
    assert span.keys() == SPAN_KEYS
    assert (span["spanID"], span["durationNanos"]) == (f"{2:016x}", "500")
    assert span["attributes"] == [
        {"key": "size", "value": {"intValue": "7"}},
        {"key": "status", "value": {"stringValue": "error"}},
        {"key": "kind", "value": {"stringValue": "client"}},
        {"key": "service.name", "value": {"stringValue": "back"}},
    ]


def test_limits_of_a_search(api: httpx.Client, receiver: Receiver):
    for number in range(1, 31):
        spans = [span_of(bytes([number]) * 16, one, **CHAT) for one in range(1, 6)]
        receiver.store.commit(Batch(spans))
    assert len(searched(api, "{}")) == 20
    assert {len(one["spanSet"]["spans"]) for one in searched(api, "{}")} == {3}
    assert len(searched(api, "{}", limit=25)) == 25
    [one] = searched(api, "{}", limit=1, spss=5)
    assert (len(one["spanSet"]["spans"]), one["spanSet"]["matched"]) == (5, 5)
    assert searched(api, "{}", start=str(START_S + 5), end=str(START_S + 60)) == []


def test_a_search_in_what_was_said(api: httpx.Client, receiver: Receiver):
    trace = b"t" * 16
    said = '[{"role":"user","parts":[{"type":"text","content":"' + "order 81? " * 300 + '"}]}]'
    receiver.store.commit(Batch([span_of(trace, 1, **{a.GEN_AI_INPUT_MESSAGES: said}, **CHAT)]))
    assert searched(api, '{ span.gen_ai.input.messages =~ ".*order 82.*" }') == []
    [found] = searched(api, '{ span.gen_ai.input.messages =~ ".*order 81.*" }')
    assert found["traceID"] == trace.hex()


def test_a_run_that_goes_on_is_seen_as_it_is(api: httpx.Client, receiver: Receiver):
    trace = b"g" * 16
    receiver.store.commit(Batch([span_of(trace, 1, name="run")]))
    assert searched(api, '{ name = "later" }') == []
    receiver.store.commit(Batch([span_of(trace, 2, parent=1, name="later")]))
    assert [one["traceID"] for one in searched(api, '{ name = "later" }')] == [trace.hex()]


def test_the_search_of_older_clients(api: httpx.Client, stored: Receiver):
    asked = {**WINDOW, "tags": 'service.name=back color="red"', "minDuration": "10ms"}
    assert [one["traceID"] for one in api.get("/api/search", params=asked).json()["traces"]] == [
        "32" * 16
    ]
    failed = {**WINDOW, "tags": "status=error kind=client"}
    assert [one["traceID"] for one in api.get("/api/search", params=failed).json()["traces"]] == [
        "31" * 16
    ]


def test_tags_and_their_values(api: httpx.Client, stored: Receiver, prefix: str):
    scopes = api.get(f"{prefix}/api/v2/search/tags", params={"limit": 5000, **WINDOW}).json()["scopes"]
    found = {one["name"]: one["tags"] for one in scopes}
    assert {"size", "color", "gen_ai.request.model"} <= set(found["span"])
    assert found["resource"] == ["service.name"]
    assert {"duration", "name", "status", "rootServiceName"} <= set(found["intrinsic"])
    only = api.get(f"{prefix}/api/v2/search/tags", params={"scope": "resource", **WINDOW}).json()
    assert [one["name"] for one in only["scopes"]] == ["resource"]
    red = {"q": '{ .color = "red" }', "scope": "span", **WINDOW}
    [only] = api.get(f"{prefix}/api/v2/search/tags", params=red).json()["scopes"]
    assert only["tags"] == ["color"]
    assert "color" in api.get(f"{prefix}/api/search/tags", params=WINDOW).json()["tagNames"]

    def values(tag: str, **more: str) -> list[tuple[str, str]]:
        answer = api.get(f"{prefix}/api/v2/search/tag/{tag}/values", params={**WINDOW, **more})
        return [(one["type"], one["value"]) for one in answer.json()["tagValues"]]

    assert values("resource.service.name") == [("string", "back"), ("string", "front")]
    assert values("resource.service.name", q="{ status = error }") == [("string", "back")]
    assert values("span.size") == [("int", "7")]
    assert values("name") == [("string", "chat gpt-4o"), ("string", "plan"), ("string", "run")]
    assert values("resource.service.name", q="{ status = ") == [("string", "back"), ("string", "front")]
    assert ("keyword", "error") in values("status")
    assert ("keyword", "client") in values("kind")
    old = api.get(f"{prefix}/api/search/tag/service.name/values", params=WINDOW)
    assert old.json() == {"tagValues": ["back", "front"]}


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/api/search", {"q": "{ name = }"}),
        ("/api/search", {"q": "{} | rate()"}),
        ("/api/search", {"q": "({} | rate()) * 2"}),
        ("/api/search", {"q": '{ status = "error" }'}),
        ("/api/search", {"tags": "status=bad"}),
        ("/api/metrics/query_range", {"q": "({} | rate()) * ({})"}),
        ("/api/search", {"q": "{}", "limit": "many"}),
        ("/api/search", {"q": "{}", "start": "20", "end": "10"}),
        ("/api/search", {"q": "{}", "start": "soon"}),
        ("/api/v2/search/tag/nothing/values", {}),
        ("/api/metrics/query_range", {"q": "{}"}),
        ("/api/metrics/query_range", {"q": "{} | rate()", "step": "0"}),
        ("/api/metrics/query_range", {"q": "{} | rate()", "start": "1", "end": "99999999", "step": "1"}),
    ],
)
def test_a_wrong_question_is_said_to_be_one(api: httpx.Client, path: str, params: dict[str, str]):
    answer = api.get(path, params=params)
    assert answer.status_code == 400
    assert answer.headers["content-type"].startswith("text/plain")
    assert answer.text
    assert "Traceback" not in answer.text


def metrics(api: httpx.Client, q: str, **more: str) -> dict[Any, dict[int, float]]:
    asked = {"q": q, "start": str(START_S), "end": str(START_S + 20), "step": "10", **more}
    answer = api.get("/api/metrics/query_range", params=asked)
    assert answer.status_code == 200, answer.text
    found: dict[Any, dict[int, float]] = {}
    for one in answer.json()["series"]:
        assert one.keys() == {"labels", "samples", "exemplars"}
        key = tuple((label["key"], *label["value"].values()) for label in one["labels"])
        assert all(int(sample["timestampMs"]) % 10_000 == 0 for sample in one["samples"])
        found[key] = {
            int(sample["timestampMs"]) // 1000 - START_S: sample["value"] for sample in one["samples"]
        }
    return found


def test_a_step_ends_at_a_multiple_of_its_length_which_belongs_to_it(
    api: httpx.Client, receiver: Receiver
):
    """As in Tempo since 2.9: a span that starts at the edge of two steps is in the earlier one."""
    second = 1_000_000  # numbers of `span_of` are microseconds
    numbers = (1, 10 * second, 10 * second + 1, 20 * second, 20 * second + 1)
    receiver.store.commit(Batch([span_of(b"e" * 16, number, service="edges") for number in numbers]))
    found = metrics(api, '{ resource.service.name = "edges" } | count_over_time()')
    assert found == {(("__name__", "count_over_time"),): {10: 2.0, 20: 2.0}}
    at_start = {"start": str(START_S + 10)}
    found = metrics(api, '{ resource.service.name = "edges" } | count_over_time()', **at_start)
    assert found == {(("__name__", "count_over_time"),): {20: 2.0}}


def test_what_the_drilldown_asks(api: httpx.Client, stored: Receiver):
    rate = metrics(api, "{nestedSetParent<0 && true} | rate()  with(sample=true)")
    assert rate == {(("__name__", "rate"),): {10: 0.2, 20: 0.0}}
    errors = metrics(api, "{status = error} | rate() by(resource.service.name)")
    assert errors == {(("resource.service.name", "back"),): {10: 0.1, 20: 0.0}}
    assert metrics(api, "{ .nothing = 1 } | rate()") == {(("__name__", "rate"),): {10: 0.0, 20: 0.0}}
    buckets = metrics(api, "{nestedSetParent<0} | histogram_over_time(duration) with(sample=true)")
    assert buckets == {
        (("__bucket", 1.0),): {10: 1.0, 20: 0.0},
        (("__bucket", 2.0),): {10: 1.0, 20: 0.0},
    }
    assert metrics(api, "{} | quantile_over_time(duration, 0, 1)") == {
        (("p", 0.0),): {10: 5e-07},
        (("p", 1.0),): {10: pytest.approx(1.999999)},
    }
    assert metrics(api, "{} | max_over_time(span.size)") == {(("__name__", "max_over_time"),): {10: 7.0}}
    compared = metrics(api, "{} | compare({ status = error }, 10)")
    assert compared[("__meta_type", "selection"), ("name", "chat gpt-4o")][10] == 1.0
    assert compared[("__meta_type", "baseline"), ("resource.service.name", "back")][10] == 1.0
    assert compared[("__meta_type", "baseline_total"), ("name", "nil")][10] == 2.0
    top = metrics(api, "{} | count_over_time() by(resource.service.name) | topk(1)")
    assert top[(("resource.service.name", "back"),)][10] == 2.0
    assert (("resource.service.name", "front"),) not in top or top[
        (("resource.service.name", "front"),)
    ].keys() == {10}


def test_what_calls_cost(api: httpx.Client, receiver: Receiver):
    """A span that sums up those below it costs nothing itself, nor does a model without a price."""
    used = {"gen_ai__usage__input_tokens": 1_000_000}
    calls = [
        span_of(b"1" * 16, 1, gen_ai__operation__name="invoke_agent", **used),
        span_of(b"1" * 16, 2, parent=1, **CHAT, **used),
        span_of(b"2" * 16, 3, **{**CHAT, "gen_ai__request__model": "of-nobody"}, **used),
    ]
    receiver.store.commit(Batch(calls))
    [(_, points)] = metrics(api, "{} | sum_over_time(span.playhead.cost.usd)").items()
    assert points == {10: pytest.approx(2.5)}
    [found] = searched(api, "{ span.playhead.cost.usd > 1 } | select(span.playhead.cost.usd)")
    [span] = found["spanSet"]["spans"]
    assert span["spanID"] == f"{2:016x}"
    assert {"key": "playhead.cost.usd", "value": {"doubleValue": 2.5}} in span["attributes"]


def test_a_number_over_all_of_the_time(api: httpx.Client, stored: Receiver):
    asked = {"q": "{} | count_over_time()", "start": str(START_S), "end": str(START_S + 20)}
    [series] = api.get("/api/metrics/query", params=asked).json()["series"]
    assert series.keys() == {"labels", "value"}
    assert series["value"] == 3.0


def test_numbers_beyond_a_limit(api: httpx.Client, stored: Receiver):
    by = "{} | count_over_time() by(resource.service.name)"
    assert metrics(api, f"{by} > 1") == {(("resource.service.name", "back"),): {10: 2.0}}
    assert metrics(api, f"{by} | topk(1) < 2") == {(("resource.service.name", "back"),): {20: 0.0}}
    assert metrics(api, "{} | max_over_time(duration) > 1500ms") == {
        (("__name__", "max_over_time"),): {10: pytest.approx(1.999999)}
    }
    assert metrics(api, "{} | max_over_time(duration) >= 2s") == {}


def test_series_are_told_apart_by_values_with_their_types(api: httpx.Client, receiver: Receiver):
    values = {1: 200, 2: "200", 3: 0.5, 4: True}
    spans = [span_of(bytes([number]) * 16, 1, code=code) for number, code in values.items()]
    receiver.store.commit(Batch([*spans, span_of(b"5" * 16, 1)]))
    asked = {"q": "{} | count_over_time() by(span.code, kind)", "start": START_S, "end": START_S + 10}
    series = api.get("/api/metrics/query", params=asked).json()["series"]
    assert [one["labels"][0]["value"] for one in series] == [
        {"boolValue": True},
        {"doubleValue": 0.5},
        {"intValue": "200"},
        {"stringValue": "200"},
        {"stringValue": "nil"},
    ]
    assert {one["labels"][1]["value"]["stringValue"] for one in series} == {"client"}
    assert [one["value"] for one in series] == [1.0] * 5


def test_arithmetic_of_metrics(api: httpx.Client, stored: Receiver):
    errors, all_of = "{ status = error } | count_over_time()", "{} | count_over_time()"
    name = ("__name__", "(count_over_time / count_over_time)")
    share = metrics(api, f"({errors}) / ({all_of})")
    assert share == {(name,): {10: pytest.approx(1 / 3)}}  # no point where there is nothing to divide by
    [(_, percent)] = metrics(api, f"100 * ({errors}) / ({all_of}) > 30").items()
    assert percent == {10: pytest.approx(100 / 3)}
    assert metrics(api, f"100 * ({errors}) / ({all_of}) > 40") == {}
    by = "by(resource.service.name)"
    parts = metrics(api, f"({all_of} {by}) / ({all_of})")
    assert parts == {
        (("resource.service.name", "back"),): {10: pytest.approx(2 / 3)},
        (("resource.service.name", "front"),): {10: pytest.approx(1 / 3)},
    }
    both = metrics(api, f"({all_of} {by}) - ({errors} {by}) | topk(1)")
    assert both == {(("resource.service.name", "back"),): {10: 1.0, 20: 0.0}}
    assert metrics(api, "({} | rate()) * 60 + 1") == {(("__name__", "rate"),): {10: 19.0, 20: 1.0}}
    asked = {"q": f"({errors}) / ({all_of})", "start": str(START_S), "end": str(START_S + 20)}
    [series] = api.get("/api/metrics/query", params=asked).json()["series"]
    assert series["value"] == pytest.approx(1 / 3)


def test_a_comparison_with_a_time_of_its_own(api: httpx.Client, stored: Receiver):
    """Those who drag over a stretch of a diagram compare it with the rest."""
    second = 10**9

    def chosen(begin_ns: int, end_ns: int) -> float:
        found = metrics(api, f"{{}} | compare({{ status != ok }}, 10, {begin_ns}, {end_ns})")
        return found.get((("__meta_type", "selection_total"), ("name", "nil")), {10: 0.0})[10]

    assert chosen(START_NS, START_NS + second) == 3.0
    assert chosen(START_NS + second, START_NS + 2 * second) == 0.0


def test_spans_of_another_dialect_are_found_by_our_names(api: httpx.Client, receiver: Receiver):
    told = {b"1" * 16: OPENINFERENCE, b"2" * 16: OPENLLMETRY}
    long = {"llm.output_messages.0.message.content": "umbrella " * 500}
    receiver.store.commit(Batch([span_of(trace, 1, **one) for trace, one in told.items()]))
    receiver.store.commit(Batch([span_of(b"3" * 16, 1, **(OPENINFERENCE | long))]))
    receiver.store.commit(
        Batch([span_of(b"4" * 16, 1, instance=b"i" * 16, **OPENINFERENCE)])
    )  # told by spans of ours, too
    while receiver.store.index():
        pass

    def found(q: str) -> str:
        traces = sorted(one["traceID"] for one in searched(api, q))
        return "".join(bytes.fromhex(one)[:1].decode() for one in traces)

    assert found('{ span.gen_ai.operation.name = "chat" }') == "123"
    assert found('{ .gen_ai.request.model =~ "gpt-4o|gpt-5" && name != "run" }') == "123"
    assert found("{ span.gen_ai.usage.input_tokens > 811 }") == "123"
    assert found('{ span.gen_ai.output.messages =~ ".*umbrella umbrella.*" }') == "3"
    assert found('{ span.gen_ai.input.messages =~ ".*Bonn.*" }') == "123"
    assert found('{ span.gen_ai.operation.name = "embeddings" }') == ""
    assert found('{ span.llm.model_name = "gpt-4o" }') == "134"
    tokens = "{} | sum_over_time(span.gen_ai.usage.output_tokens) by(span.gen_ai.request.model)"
    assert metrics(api, tokens)[(("span.gen_ai.request.model", "gpt-4o"),)][10] == 3 * 64
    data = TracesData.FromString(api.get(f"/api/traces/{'31' * 16}", headers=PROTOBUF).content)
    assert attributes_of(spans_of(data)[0].attributes) == OPENINFERENCE


def test_a_point_leads_to_a_trace(api: httpx.Client, stored: Receiver):
    asked = {"q": "{ .size = 7 } | rate()", "start": str(START_S), "end": str(START_S + 20)}
    [series] = api.get("/api/metrics/query_range", params=asked).json()["series"]
    [exemplar] = series["exemplars"]
    assert exemplar["labels"] == [{"key": "trace:id", "value": {"stringValue": "31" * 16}}]
    [series] = api.get("/api/metrics/query_range", params=asked | {"exemplars": "0"}).json()["series"]
    assert series["exemplars"] == []
