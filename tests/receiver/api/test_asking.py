"""Search, sums, conversations, the live stream, and what is for those who run the receiver."""

import json
import threading
from collections.abc import Iterator
from random import Random
from typing import Any

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from prometheus_client.parser import text_string_to_metric_families
from support.starting.cli import refund
from support.tapes.batches import START_NS, span_of
from support.tapes.handmade import HandMade

from playhead_exporter.shipping.endpoint_answers import WATCHED
from playhead_receiver.api.routes import operations
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch
from playhead_receiver.storage.content.words import highlights
from playhead_semconv import attributes as a

CHAT: dict[str, Any] = {"gen_ai__operation__name": "chat", "gen_ai__request__model": "gpt-4o"}


def test_a_search_shows_where_the_words_stand(api: httpx.Client):
    found = api.get("/v1/search", params={"q": '"order 81" agent:refund'}).json()
    assert found["behind"] == 0
    assert found["hits"]
    for hit in found["hits"]:
        assert hit["run"] == "refund-1"
        spans = [hit["excerpt"][begin:end].lower() for begin, end in hit["highlights"]]
        assert spans and all(span.startswith("order") and span.endswith("81") for span in spans)
    assert api.get("/v1/search", params={"q": '"order 81" agent:other'}).json()["hits"] == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("order", ["Order", "order"]),
        ("ord*", ["Order", "ord", "order"]),
        ('"order 81"', ["Order 81", "order: 81"]),
        ("81 order", ["Order", "81", "order", "81"]),
        ('"', []),
    ],
)
def test_highlights_are_words_and_phrases(text: str, found: list[str]):
    excerpt = "Order 81, border; order: 81"
    shown = [excerpt[begin:end] for begin, end in highlights(excerpt, text)]
    if text == "ord*":
        assert [one.lower() for one in shown] == ["ord", "ord"]
    else:
        assert shown == found


def test_highlights_are_found_whatever_the_accents():
    excerpt = "un café crème, cafes"
    assert [excerpt[begin:end] for begin, end in highlights(excerpt, "cafe CREME")] == ["café", "crème"]
    assert highlights("a cafe", "café") == [(2, 6)]


@pytest.mark.parametrize(
    ("text", "search"),
    [
        ("请退还订单编号12345的款项", "订单 12345"),
        ("東京タワーの営業時間を教えてください", "営業時間"),
        ("ฉันต้องการคืนเงิน", "คืนเงิน"),
        ("주문을 취소해 주세요", "취소 주문"),
        ("open /var/log/app_error.log for ORD_77812", "error 77812"),
    ],
)
def test_search_and_list_find_the_same_words(
    api: httpx.Client, receiver: Receiver, text: str, search: str
):
    asked = json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])
    receiver.store.commit(Batch([span_of(b"l" * 16, 1, **CHAT, gen_ai__input__messages=asked)]))
    while receiver.store.index():
        pass
    [listed] = api.get("/v1/runs", params={"q": search}).json()["runs"]
    [hit] = api.get("/v1/search", params={"q": search}).json()["hits"]
    assert hit["run"] == listed["name"]
    assert hit["highlights"]


def test_a_search_finds_names_of_called_tools_and_of_models(api: httpx.Client, receiver: Receiver):
    call = {"type": "tool_call", "id": "call-7", "name": "lookup_marmot", "arguments": {"city": "Oslo"}}
    said = json.dumps([{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}])
    receiver.store.commit(
        Batch([span_of(b"l" * 16, 1, service="shop", **CHAT, gen_ai__output__messages=said)])
    )
    while receiver.store.index():
        pass
    for search, who, excerpt in [
        ("marmot", "gen_ai.output.messages", "lookup_marmot"),
        ("call-7", "gen_ai.output.messages", "call-7"),
        ("gpt-4o", "step", "chat gpt-4o"),
        ("oslo", "calls lookup_marmot", '"Oslo"'),
    ]:
        hits = api.get("/v1/search", params={"q": f"{search} agent:shop"}).json()["hits"]
        assert [(hit["who"], hit["excerpt"]) for hit in hits][:1] == [(who, excerpt)]


def test_a_cost_that_nobody_knows_is_not_nothing(api: httpx.Client, receiver: Receiver):
    used = {"gen_ai__usage__input_tokens": 1_000_000, "gen_ai__conversation__id": "c-1"}
    nobody = {**CHAT, "gen_ai__request__model": "of-nobody"}
    receiver.store.commit(Batch([span_of(b"1" * 16, 1, service="dear", **nobody, **used)]))

    def cost(path: str, which: str, **wanted: str) -> tuple[float | None, int]:
        [one] = api.get(path, params=wanted).json()[which]
        return one["cost_usd"], one["unpriced_runs"]

    assert cost("/v1/stats", "groups", by="agent", q="agent:dear") == (None, 1)
    assert cost("/v1/conversations", "conversations") == (None, 1)
    receiver.store.commit(Batch([span_of(b"2" * 16, 1, service="dear", **CHAT, **used)]))
    assert cost("/v1/stats", "groups", by="agent", q="agent:dear") == (2.5, 1)
    assert cost("/v1/conversations", "conversations") == (2.5, 1)


def test_sums_over_runs_and_groups(api: httpx.Client, receiver: Receiver):
    receiver.store.commit(Batch([span_of(b"h" * 16, 1, service="helper", **CHAT)]))
    found = api.get("/v1/stats", params={"by": "agent"}).json()
    assert found["total"]["runs"] == 2
    assert found["total"]["statuses"] == {"failure": 1, "success": 1}
    assert [(one["key"], one["runs"], one["steps"]) for one in found["groups"]] == [
        ("helper", 1, 1),
        ("refund", 1, 11),
    ]
    only = api.get("/v1/stats", params={"q": "agent:refund", "by": "status"}).json()
    assert (only["total"]["input_tokens"], only["total"]["output_tokens"]) == (4068, 322)
    assert [one["key"] for one in only["groups"]] == ["failure"]
    assert found["size_bytes"] > 0 and found["truncated"] is False


def lines_of(answer: httpx.Response) -> Iterator[dict[str, Any]]:
    event: dict[str, Any] = {}
    for line in answer.iter_lines():
        name, _, value = line.partition(": ")
        if not line and event:
            yield event
            event = {}
        elif name:
            event[name] = json.loads(value) if name == "data" else value


def export_of(*spans: bytes) -> bytes:
    entries = [ResourceSpans.FromString(span) for span in spans]
    return ExportTraceServiceRequest(resource_spans=entries).SerializeToString()


def test_what_comes_in_is_told_as_it_comes(api: httpx.Client, receiver: Receiver):
    with api.stream("GET", "/v1/live") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = lines_of(answer)
        stored = span_of(b"l" * 16, 5, service="helper", **CHAT)
        sent = httpx.post(
            f"{receiver.http_endpoint}/v1/traces",
            content=export_of(stored.otlp),
            headers={"content-type": "application/x-protobuf"},
        )
        assert sent.status_code == 200
        event = next(one for one in events if "event" in one)
    assert event["event"] == "span.ended"
    assert event["data"]["trace_id"] == (b"l" * 16).hex()
    assert event["data"]["name"] == "chat gpt-4o"
    assert int(event["id"]) == receiver.store.position()


def test_a_stream_goes_on_where_it_was_left(api: httpx.Client, receiver: Receiver):
    with api.stream("GET", "/v1/live", params={"after": 0, "run": "refund-1"}) as answer:
        events = [event for event, _ in zip(lines_of(answer), range(6), strict=False)]
    assert [event["event"] for event in events[:2]] == ["process.started", "span.started"]
    left = events[2]["id"]
    with api.stream("GET", "/v1/live", headers={"last-event-id": left}) as answer:
        again = next(lines_of(answer))
    assert again == events[3]


def test_a_stream_tells_of_what_was_asked_for_alone(api: httpx.Client, receiver: Receiver):
    receiver.store.commit(Batch([span_of(b"h" * 16, 1, service="helper", **CHAT)]))
    made = refund(b"q" * 16, b"p" * 16)
    receiver.store.commit(Batch(made.spans, made.facts))
    with api.stream("GET", "/v1/live", params={"after": 0, "q": "agent:helper"}) as answer:
        event = next(lines_of(answer))
    assert event["data"]["trace_id"] == (b"h" * 16).hex()
    assert api.get("/v1/live", params={"q": "words"}).status_code == 422


def test_streams_end_when_the_receiver_does(api: httpx.Client, receiver: Receiver):
    ended = threading.Event()

    def follow() -> None:
        with api.stream("GET", "/v1/live", params={"after": 0}) as answer:
            pieces = answer.iter_bytes()
            assert next(pieces).startswith(b"event: process.started")
            begun.set()
            for _ in pieces:
                pass
        ended.set()

    begun = threading.Event()
    threading.Thread(target=follow, daemon=True).start()
    assert begun.wait(60)
    receiver.stop(60)
    assert ended.wait(60)


def test_exporters_are_told_whether_somebody_watches(api: httpx.Client, receiver: Receiver):
    headers = {"content-type": "application/x-protobuf"}

    def watched() -> str:
        sent = httpx.post(f"{receiver.http_endpoint}/v1/traces", content=b"", headers=headers)
        return sent.headers[WATCHED]

    assert watched() == "0"
    made = refund(b"q" * 16, b"p" * 16)
    receiver.store.commit(Batch(made.spans, made.facts))
    with api.stream("GET", "/v1/live", params={"after": 0}) as answer:
        lines = lines_of(answer)  # the stream is closed with it
        next(lines)
        assert watched() == "1"


def test_figures_for_prometheus(api: httpx.Client, receiver: Receiver):
    stored = span_of(b"l" * 16, 5, service="helper", **CHAT)
    headers = {"content-type": "application/x-protobuf"}
    for body, status in ((export_of(stored.otlp), 200), (b"\x0a\x04\x12\x02\x12\x00", 200)):
        sent = httpx.post(f"{receiver.http_endpoint}/v1/traces", content=body, headers=headers)
        assert sent.status_code == status
    answer = api.get("/metrics")
    figures = {
        sample.name: sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }
    assert figures["playhead_spans_received_total"] == 1
    assert figures["playhead_items_rejected_total"] == 1
    assert figures["playhead_intake_bytes"] == 0
    assert figures["playhead_store_position"] == receiver.store.position()
    assert figures["playhead_store_bytes"] > 0


def test_health_and_readiness(api: httpx.Client, receiver: Receiver):
    assert api.get("/health").json() == {"status": "ok", "problem": None}
    assert api.get("/ready").json() == {"status": "ok", "problem": None}
    receiver.store.close()
    assert api.get("/health").status_code == 200
    answer = api.get("/ready")
    assert (answer.status_code, answer.json()["type"]) == (503, "urn:playhead:store-unavailable")


def test_a_receiver_that_can_store_nothing_is_not_ready(
    api: httpx.Client, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    """The file may not grow, as on a disk that is full."""
    monkeypatch.setattr(operations, "REFUSING_S", 600.0)
    store: Any = receiver.store
    url, headers = (
        f"{receiver.http_endpoint}/v1/traces",
        {"content-type": "application/x-protobuf"},
    )

    def send(number: int, size: int = 300_000) -> int:
        text = Random(number).randbytes(size // 2).hex()
        body = export_of(span_of(bytes([number]) * 16, 1, text=text).otlp)
        return httpx.post(url, content=body, headers=headers).status_code

    store._writer.run(lambda db: db.pragma("max_page_count", 1))  # not below what there is
    assert (send(1), api.get("/ready").status_code) == (503, 503)
    said = api.get("/ready").json()
    assert said["type"] == "urn:playhead:store-unavailable"
    assert "playhead_requests_refused_total 1.0" in api.get("/metrics").text
    assert api.get("/v1/runs").status_code == api.get("/health").status_code == 200
    store._writer.run(lambda db: db.pragma("max_page_count", 1_000_000))
    assert (send(2), api.get("/ready").status_code) == (200, 200)


def test_conversations_are_runs_that_belong_together(api: httpx.Client, receiver: Receiver):
    for number in (1, 2, 3):
        attributes = {**CHAT, "gen_ai__conversation__id": "c-1" if number < 3 else "c-2"}
        spans = [span_of(bytes([number]) * 16, number, service="helper", **attributes)]
        receiver.store.commit(Batch(spans))
    found = api.get("/v1/conversations").json()["conversations"]
    assert [(one["id"], one["runs"], one["steps"]) for one in found] == [("c-2", 1, 1), ("c-1", 2, 2)]
    assert [run["name"] for run in api.get("/v1/runs?q=conversation:c-1").json()["runs"]] == [
        "helper-2",
        "helper-1",
    ]


def test_a_replay_of_a_conversation_is_no_part_of_it(api: httpx.Client, receiver: Receiver):
    for number, mode in ((1, "record"), (2, "replay")):
        made = HandMade(bytes([number]) * 16, bytes([number + 2]) * 16)
        made.start(**{a.PLAYHEAD_RUN_MODE: mode, a.PLAYHEAD_RUN_ORIGIN: f"{'03' * 16}-{'0' * 16}"})
        said = {a.GEN_AI_OPERATION_NAME: "chat", a.GEN_AI_CONVERSATION_ID: "c-3"}
        made.finish(made.begin("chat gpt-4o", kind=3, **said), **said)
        made.exit()
        receiver.store.commit(Batch(made.spans, made.facts))

    def counted(q: str) -> list[int]:
        found = api.get("/v1/conversations", params={"q": q}).json()["conversations"]
        return [one["runs"] for one in found if one["id"] == "c-3"]

    assert counted("") == [1]
    assert counted("mode:all") == [2]
    assert counted("mode:replay") == [1]


def test_sums_say_how_long_runs_took(api: httpx.Client, receiver: Receiver):
    store = receiver.store
    for number, seconds in enumerate((1, 2, 3, 40), 1):
        ended_ns = START_NS + number * 1000 + seconds * 10**9
        store.commit(Batch([span_of(bytes([number]) * 16, number, service="slow", end_ns=ended_ns)]))
    [group] = api.get("/v1/stats", params={"by": "agent", "q": "agent:slow"}).json()["groups"]
    took_ns = [group[f"duration_p{one}_ns"] for one in (50, 90, 99)]
    assert took_ns == [2 * 10**9, 40 * 10**9, 40 * 10**9]
    none = api.get("/v1/stats", params={"q": "agent:nobody"}).json()["total"]
    assert (none["runs"], none["duration_p50_ns"]) == (0, None)
