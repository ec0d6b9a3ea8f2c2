"""Runs over HTTP: lists, windows on trees, spans, messages, events."""

import json
import time
from typing import Any

import httpx
import msgspec
import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from pydantic import TypeAdapter
from support.starting.cli import refund
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import TRACE, HandMade

from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_replay.json_objects.comparisons import Diff
from playhead_semconv import attributes as a

CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}


def names(api: httpx.Client, **wanted: Any) -> list[str]:
    answer = api.get("/v1/runs", params=wanted)
    assert answer.status_code == 200, answer.text
    return [run["name"] for run in answer.json()["runs"]]


def test_a_list_says_of_a_run_what_the_store_knows(api: httpx.Client, receiver: Receiver):
    [run] = api.get("/v1/runs").json()["runs"]
    [summary] = receiver.store.runs(msgspec.convert({}, type=_query()))
    assert run["name"] == "refund-1"
    assert run["trace_id"] == TRACE.hex() == summary.trace_id
    assert (run["status"], run["steps"], run["errors"]) == ("failure", 11, 1)
    assert (run["input_tokens"], run["output_tokens"]) == (4068, 322)
    assert run["models"] == ["gpt-4o"]
    assert run["started_ns"] == summary.started_ns


def _query() -> Any:
    from playhead_receiver.storage import Query

    return Query


def test_runs_are_asked_for_in_the_small_language(api: httpx.Client, receiver: Receiver):
    for number in (1, 2):
        spans = [span_of(bytes([number]) * 16, 1, service="helper", end_ns=START_NS + 10**10, **CHAT)]
        receiver.store.commit(Batch(spans))
    assert names(api) == ["refund-1", "helper-1", "helper-2"]
    assert names(api, q="agent:helper") == ["helper-1", "helper-2"]
    assert names(api, q="status:failure model:gpt-4o") == ["refund-1"]
    assert names(api, q="since:1h") == ["refund-1"]
    assert names(api, q="until:2024-01-01") == ["helper-1", "helper-2"]
    assert names(api, q='"order 81"') == ["refund-1"]
    assert names(api, q='"order 81" agent:helper') == []
    assert names(api, q="duration>=9s", sort="duration") == ["helper-1", "helper-2"]


def test_runs_have_fields_of_their_attributes_an_input_and_a_result(
    api: httpx.Client, receiver: Receiver
):
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": "Hello?"}]}])
    answer = json.dumps([{"role": "assistant", "parts": [{"type": "text", "content": "Hi."}]}])
    at = {"user__id": "anna", "session__id": "s-1", "tag__tags": ["beta"], "plan": "pro"}
    at |= {"gen_ai__input__messages": asked, "gen_ai__output__messages": answer}
    receiver.store.commit(Batch([span_of(b"u" * 16, 1, service="helper", **CHAT, **at)]))
    for query in ("user:anna", "session:s-1 tag:beta", ".plan:pro", "tokens<1"):
        assert names(api, q=query) == ["helper-1"], query
    assert names(api, q="plan.no:x user:anna") == []
    assert names(api, q="tokens>=100 steps>=11") == ["refund-1"]
    [run] = api.get("/v1/runs", params={"q": "user:anna"}).json()["runs"]
    assert (run["users"], run["tags"], run["conversations"]) == (["anna"], ["beta"], ["s-1"])
    assert (run["input"], run["result"]) == ("Hello?", "Hi.")
    assert api.get("/v1/runs/helper-1/summary").json()["input"] == "Hello?"
    groups = api.get("/v1/stats", params={"by": "user", "q": ".plan:pro"}).json()["groups"]
    assert [group["key"] for group in groups] == ["anna"]
    assert api.get("/v1/runs", params={"q": "usr:x"}).status_code == 422


def test_a_list_is_read_page_by_page(api: httpx.Client, receiver: Receiver):
    for number in range(1, 8):
        receiver.store.commit(Batch([span_of(bytes([number]) * 16, number, service="helper", **CHAT)]))
    for sort, order in (("started", range(7, 0, -1)), ("steps", range(1, 8))):
        found: list[str] = []
        after = ""
        for late in (b"\x0f", b"\x10", b"\x11", b"\x12"):  # what comes meanwhile changes no page
            wanted = {"limit": 3, "after": after, "q": "agent:helper", "sort": sort}
            page = api.get("/v1/runs", params=wanted).json()
            found += [run["name"] for run in page["runs"]]
            if page["next"] is None:
                break
            after = page["next"]
            spans = [span_of(late * 16, one, service="helper", **CHAT) for one in (50, 51)]
            receiver.store.commit(Batch(spans))
            receiver.store.sum_up()
        assert found == [f"helper-{number}" for number in order]
        receiver.store.delete([late * 16 for late in (b"\x0f", b"\x10", b"\x11", b"\x12")])


def test_what_is_said_and_listed_together_is_paged_too(api: httpx.Client, receiver: Receiver):
    for number in range(1, 6):
        spans = [span_of(bytes([number]) * 16, number, service="helper", text="a rare word", **CHAT)]
        receiver.store.commit(Batch(spans))
    while receiver.store.index():
        pass
    first = api.get("/v1/runs", params={"limit": 3, "q": '"rare word"'}).json()
    rest = api.get("/v1/runs", params={"limit": 3, "q": '"rare word"', "after": first["next"]}).json()
    assert [run["name"] for run in first["runs"] + rest["runs"]] == [
        f"helper-{number}" for number in range(5, 0, -1)
    ]
    assert rest["next"] is None


def test_a_run_opens_with_a_window_on_its_tree(api: httpx.Client):
    whole = api.get("/v1/runs/refund-1").json()
    assert (whole["total"], whole["next"]) == (19, None)
    root = whole["spans"][0]
    assert (root["name"], root["depth"], root["descendants"]) == ("run agent.py", 0, 18)
    assert root["parent_id"] is None
    assert {line["name"] for line in whole["spans"] if line["failed"]} >= {"execute_tool refund"}
    pieces: list[Any] = []
    offset: int | None = 0
    while offset is not None:
        window = api.get("/v1/runs/last", params={"offset": offset, "limit": 7}).json()
        pieces += window["spans"]
        offset = window["next"]
    assert pieces == whole["spans"]


def test_a_part_of_a_tree_is_its_own(api: httpx.Client):
    whole = api.get("/v1/runs/refund-1").json()["spans"]
    at = next(number for number, line in enumerate(whole) if line["descendants"] == 2)
    part = api.get("/v1/runs/refund-1", params={"under": whole[at]["span_id"]}).json()
    assert part["total"] == 3
    assert [line["span_id"] for line in part["spans"]] == [one["span_id"] for one in whole[at : at + 3]]
    assert [line["depth"] for line in part["spans"]] == [0, 1, 1]
    top = api.get("/v1/runs/refund-1", params={"under": whole[at]["span_id"], "depth": 0}).json()
    assert [line["children"] for line in top["spans"]] == [2]
    assert api.get("/v1/runs/refund-1", params={"under": "f" * 16}).status_code == 404


def test_spans_in_a_ring_and_without_their_parents_are_shown(api: httpx.Client, receiver: Receiver):
    trace = b"r" * 16
    spans = [span_of(trace, 1, parent=2), span_of(trace, 2, parent=1), span_of(trace, 3, parent=9)]
    receiver.store.commit(Batch(spans))
    lines = api.get(f"/v1/runs/{trace.hex()}").json()["spans"]
    assert [(line["span_id"][-1], line["depth"]) for line in lines] == [("1", 0), ("2", 1), ("3", 0)]


@pytest.mark.acceptance
def test_a_run_of_fifty_thousand_spans_opens_in_its_first_window(api: httpx.Client, receiver: Receiver):
    trace = b"w" * 16
    for begin in range(1, 50_001, 5000):
        spans = [span_of(trace, one, parent=one // 10) for one in range(begin, begin + 5000)]
        receiver.store.commit(Batch(spans))
    begin = time.perf_counter()
    window = api.get(f"/v1/runs/{trace.hex()}", params={"depth": 2, "limit": 100}).json()
    print(f"first window of 50,000 spans: {1000 * (time.perf_counter() - begin):.0f} ms")
    assert window["spans"][0]["descendants"] + window["spans"][0]["children"] > 10_000
    assert len(window["spans"]) == 100
    last = api.get(f"/v1/runs/{trace.hex()}", params={"offset": 49_999}).json()
    assert (last["total"], len(last["spans"]), last["next"]) == (50_000, 1, None)


def test_a_span_comes_whole_and_as_it_came(api: httpx.Client, receiver: Receiver):
    trace = b"s" * 16
    stored = span_of(trace, 7, text="x" * 3_000_000, error=True, **CHAT)
    receiver.store.commit(Batch([stored]))
    path = f"/v1/spans/{trace.hex()}/{7:016x}"
    span = api.get(path).json()
    assert span["attributes"]["text"] == "x" * 3_000_000
    assert (span["status"], span["name"], span["parent_id"]) == ("error", "chat gpt-4o", None)
    assert span["resource"] == {"service.name": "refund"}
    assert api.get(f"{path}/raw").content == stored.otlp
    otlp = api.get(f"{path}/otlp").json()["resourceSpans"][0]["scopeSpans"][0]["spans"][0]
    assert otlp["traceId"] == trace.hex()
    assert api.get(f"/v1/spans/{trace.hex()}/{8:016x}").status_code == 404


def test_what_a_span_left_to_its_exchange_is_there(api: httpx.Client, receiver: Receiver):
    lines = api.get("/v1/runs/refund-1").json()["spans"]
    tool = next(line for line in lines if line["operation"] == "execute_tool")
    assert tool["tool"] == "search"
    stored = next(receiver.store.spans(TRACE, [bytes.fromhex(tool["span_id"])]))
    assert ResourceSpans.FromString(stored.otlp).scope_spans[0].spans[0].name == tool["name"]


def test_messages_at_a_span_are_typed(api: httpx.Client, receiver: Receiver):
    trace = b"m" * 16
    said = '[{"role":"user","parts":[{"type":"text","content":"order 81?"}]}]'
    receiver.store.commit(Batch([span_of(trace, 1, **{a.GEN_AI_INPUT_MESSAGES: said}, **CHAT)]))
    found = api.get(f"/v1/spans/{trace.hex()}/{1:016x}/messages").json()
    assert found["input_messages"] == [
        {"role": "user", "parts": [{"type": "text", "content": "order 81?"}]}
    ]
    assert found["output_messages"] == []


def test_events_between_two_points(api: httpx.Client):
    whole = api.get("/v1/runs/refund-1/events", params={"limit": 1000}).json()
    numbers = [one["seq"] for one in whole["events"]]
    assert numbers == list(range(len(numbers)))
    lines = api.get("/v1/runs/refund-1").json()["spans"]
    call = next(line for line in lines if line["descendants"] == 2)
    between = {"from": call["span_id"], "to": call["span_id"], "limit": 1000}
    some = api.get("/v1/runs/refund-1/events", params=between).json()["events"]
    assert 0 < len(some) < len(numbers)
    assert all(call["started_ns"] <= one["time_ns"] <= call["ended_ns"] for one in some)
    assert {one["name"] for one in some} >= {"playhead.exchange.request", "playhead.exchange.end"}
    pieces: list[Any] = []
    after = ""
    while True:
        page = api.get("/v1/runs/refund-1/events", params={"limit": 9, "after": after}).json()
        pieces += page["events"]
        if page["next"] is None:
            break
        after = page["next"]
    assert pieces == whole["events"]
    newest = api.get("/v1/runs/refund-1/events", params={"limit": 9, "order": "newest"}).json()
    times = [(one["time_ns"], one["seq"]) for one in whole["events"]]
    assert [(one["time_ns"], one["seq"]) for one in newest["events"]] == sorted(times)[:-10:-1]
    assert newest["next"] is None
    group = api.get("/v1/runs/refund-1/events", params={"name": "playhead.exchange"}).json()["events"]
    in_group = [one for one in whole["events"] if one["name"].startswith("playhead.exchange.")]
    assert group == in_group != []
    named = {"name": "playhead.process.exit"}
    [last] = api.get("/v1/runs/refund-1/events", params=named).json()["events"]
    assert last["seq"] == numbers[-1]


def test_bytes_in_an_event_are_spelt_out(api: httpx.Client, receiver: Receiver):
    words = ["agent.py", b"x\xff", b"y"]
    made = HandMade(b"\5" * 16, b"b" * 16).start(
        **{a.PLAYHEAD_RUN_ARGV: words, "map": {"in": [b"\xfe"]}}
    )
    receiver.store.commit(Batch(made.spans, made.facts))
    named = {"name": "playhead.process.start"}
    [start] = api.get(f"/v1/runs/{(b'b' * 16).hex()}/events", params=named).json()["events"]
    assert start["attributes"][a.PLAYHEAD_RUN_ARGV] == ["agent.py", "x\\xff", "y"]
    assert start["attributes"]["map"] == {"in": ["\\xfe"]}


def test_a_body_comes_whole_however_it_is_stored(api: httpx.Client, receiver: Receiver):
    """Histories that go on from one another, and one that is a blob."""
    made = HandMade(b"\5" * 16, b"b" * 16).start()
    long = [{"role": "user", "content": "x" * 700_000}]
    histories = [json.dumps({"messages": long * count}).encode() for count in (1, 2, 3)]
    for history in histories:
        made.exchange(request=history, span=made.begin("POST", kind=3))
    receiver.store.commit(Batch(made.spans, made.facts))
    run = (b"b" * 16).hex()
    asked = api.get(f"/v1/runs/{run}/events", params={"name": "playhead.exchange.request"}).json()
    bodies = [
        api.get(f"/v1/runs/{run}/events/{one['instance']}/{one['seq']}/body") for one in asked["events"]
    ]
    assert [one.content for one in bodies] == histories
    assert bodies[0].headers["content-type"] == "application/octet-stream"
    assert [one["size_bytes"] for one in asked["events"]] == [len(one) for one in histories]
    there = asked["events"][0]
    for where in (
        f"{run}/events/{there['instance']}/0",
        f"{run}/events/{'0' * 32}/{there['seq']}",
        f"refund-1/events/{there['instance']}/{there['seq']}",
    ):
        assert api.get(f"/v1/runs/{where}/body").status_code == 404


@pytest.mark.parametrize(
    ("path", "status", "code"),
    [
        ("/v1/runs/refund-2", 404, "run-unknown"),
        ("/v1/runs?q=status:well", 422, "usage"),
        ("/v1/runs?q=colour:red", 422, "usage"),
        ("/v1/runs?after=x", 422, "usage"),
        ("/v1/runs?limit=501", 422, "usage"),
        ("/v1/search?q=agent:refund", 422, "usage"),
        ("/v1/spans/abc/def", 422, "usage"),
        ("/v1/nothing", 404, ""),
    ],
)
def test_a_problem_is_said_in_one_form(api: httpx.Client, path: str, status: int, code: str):
    answer = api.get(path)
    assert (answer.status_code, answer.headers["content-type"]) == (status, "application/problem+json")
    said = answer.json()
    assert said["status"] == status
    assert said["type"] == (f"urn:playhead:{code}" if code else "about:blank")
    assert said["detail"]


def test_two_runs_are_compared(api: httpx.Client):
    found = api.get("/v1/diff", params={"left": "refund-1", "right": "last"}).json()
    assert found["identical"] is True
    assert found["same_steps"] == list(range(1, 12))


def test_what_a_comparison_holds_is_described(api: httpx.Client, receiver: Receiver):
    other = refund(b"d" * 16, b"e" * 16)
    other.chat(b'{"model":"gpt-4.1"}')
    receiver.store.commit(Batch(other.spans, other.facts, {}))
    path = api.get("/openapi.json").json()["paths"]["/v1/diff"]["get"]
    schema = path["responses"]["200"]["content"]["application/json"]["schema"]
    assert schema == {"$ref": "#/components/schemas/Diff"}
    found = api.get("/v1/diff", params={"left": "refund-1", "right": "refund-2"}).json()
    assert not found["identical"] and found["first_difference"]
    said = TypeAdapter(Diff).validate_python(found, extra="forbid")
    assert said == found


def test_what_was_asked_and_answered_in_a_span_is_given_whole(api: httpx.Client):
    steps = api.get("/v1/runs/refund-1").json()["spans"]
    call = next(line for line in steps if line["name"] == "chat gpt-4o")
    path = f"/v1/spans/{TRACE.hex()}/{call['span_id']}/exchanges"
    [one] = api.get(path).json()["exchanges"]
    assert one["key"] == "POST http://provider/v1/chat/completions"
    assert json.loads(one["request"]["text"])["messages"] == [{"role": "user", "content": "order 81?"}]
    assert (one["status_code"], one["response"]) == (200, {"text": '{"id":"1"}'})
    assert [chunk["text"] for chunk in one["chunks"]] == ['{"id":', '"1"}']
    whole = api.get(f"/v1/spans/{TRACE.hex()}/{0xA0:016x}/exchanges").json()["exchanges"]
    assert len(whole) == 7


def test_marks_and_deletion(api: httpx.Client, receiver: Receiver):
    assert api.put("/v1/runs/refund-1/marks/held").json()["marks"] == ["held"]
    assert api.delete("/v1/runs/refund-1").status_code == 422
    assert api.delete("/v1/runs/refund-1/marks/held").json()["marks"] == []
    assert api.delete("/v1/runs/refund-1").json()["runs"] == 1
    assert api.get("/v1/runs").json()["runs"] == []
    assert list(receiver.store.spans(TRACE)) == []


def test_a_span_that_names_itself_as_its_parent_counts(api: httpx.Client, receiver: Receiver):
    used = {"gen_ai__usage__input_tokens": 7, "gen_ai__usage__output_tokens": 2}
    trace = b"\x08" * 16
    receiver.store.commit(Batch([span_of(trace, 1, parent=1, **CHAT, **used)]))
    run = api.get(f"/v1/runs/{trace.hex()}/summary").json()
    assert (run["steps"], run["input_tokens"], run["output_tokens"]) == (1, 7, 2)
