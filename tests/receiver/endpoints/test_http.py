"""OTLP/HTTP as the specification has it, against a real receiver on loopback."""

import base64
import gzip
import json
import socket
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard
from google.protobuf.json_format import MessageToJson
from google.rpc import code_pb2
from google.rpc.error_details_pb2 import BadRequest, RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.starting.running import until
from support.tapes.handmade import INSTANCE, TRACE, HandMade

from playhead_core.facts import digest_of
from playhead_core.otlp import pack, pack_resource, resource_logs, set_attributes
from playhead_core.otlp_bytes import field
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.ingest.encodings import MAX_BYTES
from playhead_receiver.server import Receiver
from playhead_receiver.system.writer_lock import destination_of

PROTOBUF = {"content-type": "application/x-protobuf"}
JSON = {"content-type": "application/json"}


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as running:
        yield running


@pytest.fixture
def client(receiver: Receiver) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=receiver.http_endpoint) as opened:
        yield opened


def spans_request(count: int = 3) -> ExportTraceServiceRequest:
    request = ExportTraceServiceRequest()
    entry = request.resource_spans.add()
    entry.resource.attributes.add(key="service.name").value.string_value = "refund"
    scope = entry.scope_spans.add()
    scope.scope.name = "test"
    for number in range(1, count + 1):
        span = scope.spans.add(
            trace_id=TRACE,
            span_id=number.to_bytes(8, "big"),
            parent_span_id=b"" if number == 1 else (1).to_bytes(8, "big"),
            name=f"span {number}",
            start_time_unix_nano=1_700_000_000_000_000_000 + number,
            end_time_unix_nano=1_700_000_001_000_000_000 + number,
        )
        span.attributes.add(key="text").value.string_value = "é" * number
    return request


def facts_request(made: HandMade) -> ExportLogsServiceRequest:
    resource = pack_resource(made.instance, {"service.name": "refund"})
    return ExportLogsServiceRequest(resource_logs=[resource_logs(resource, pack(made.facts))])


def stored(receiver: Receiver, trace: bytes = TRACE) -> list[Any]:
    found = receiver.store.spans(trace)
    return [ResourceSpans.FromString(span.otlp) for span in found]


def test_spans_are_stored_when_the_answer_comes_each_with_resource_and_scope(
    receiver: Receiver, client: httpx.Client
):
    request = spans_request()
    answer = client.post("/v1/traces", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/x-protobuf"
    assert not ExportTraceServiceResponse.FromString(answer.content).HasField("partial_success")
    entries = stored(receiver)
    assert [entry.scope_spans[0].spans[0] for entry in entries] == list(
        request.resource_spans[0].scope_spans[0].spans
    )
    assert {entry.resource.attributes[0].value.string_value for entry in entries} == {"refund"}
    assert {entry.scope_spans[0].scope.name for entry in entries} == {"test"}


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", gzip.compress),
        ("deflate", zlib.compress),
        ("zstd", zstandard.compress),
        ("identity", bytes),
    ],
)
def test_every_content_encoding(receiver: Receiver, client: httpx.Client, encoding: str, encode: Any):
    body = encode(spans_request().SerializeToString())
    answer = client.post("/v1/traces", content=body, headers={**PROTOBUF, "content-encoding": encoding})
    assert answer.status_code == 200
    assert len(stored(receiver)) == 3


def test_json_has_hex_ids_numbers_as_text_and_unknown_fields(receiver: Receiver, client: httpx.Client):
    body = {
        "resourceSpans": [
            {
                "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "r"}}]},
                "newerField": {"a": [1]},
                "scopeSpans": [
                    {
                        "scope": {"name": "test"},
                        "spans": [
                            {
                                "traceId": TRACE.hex().upper(),
                                "spanId": "00000000000000aa",
                                "parentSpanId": "00000000000000bb",
                                "name": "chat gpt-4o",
                                "kind": 3,
                                "startTimeUnixNano": "1700000000000000000",
                                "endTimeUnixNano": 1700000001000000000,
                                "attributes": [
                                    {"key": "count", "value": {"intValue": "9007199254740993"}},
                                    {
                                        "key": "raw",
                                        "value": {"bytesValue": base64.b64encode(b"\0\xff").decode()},
                                    },
                                    {"key": "half", "value": {"doubleValue": 0.5}},
                                ],
                                "links": [{"traceId": "ab" * 16, "spanId": "cd" * 8}],
                                "status": {"code": 2, "message": "no"},
                                "somethingNew": 3,
                            }
                        ],
                    }
                ],
            }
        ]
    }
    answer = client.post("/v1/traces", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {}
    (entry,) = stored(receiver)
    span = entry.scope_spans[0].spans[0]
    assert (span.trace_id, span.span_id, span.parent_span_id) == (
        TRACE,
        bytes.fromhex("00000000000000aa"),
        bytes.fromhex("00000000000000bb"),
    )
    assert (span.start_time_unix_nano, span.end_time_unix_nano) == (
        1_700_000_000_000_000_000,
        1_700_000_001_000_000_000,
    )
    values = {pair.key: pair.value for pair in span.attributes}
    assert values["count"].int_value == 9_007_199_254_740_993
    assert values["raw"].bytes_value == b"\0\xff"
    assert values["half"].double_value == 0.5
    assert (span.links[0].trace_id, span.links[0].span_id) == (b"\xab" * 16, b"\xcd" * 8)
    assert (span.kind, span.status.code, span.status.message) == (3, 2, "no")


def test_facts_come_back_as_they_were_packed(receiver: Receiver, client: httpx.Client):
    made = HandMade().start()
    made.chat(chunks=(b"data: a\n\n", b"data: b\n\n", b"data: [DONE]\n\n"))
    made.exit()
    request = facts_request(made)
    answer = client.post("/v1/logs", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    assert not ExportLogsServiceResponse.FromString(answer.content).HasField("partial_success")
    assert list(receiver.store.tape(INSTANCE).facts()) == made.facts
    assert receiver.store.resource(INSTANCE) == request.resource_logs[0].resource.SerializeToString()


def test_one_bad_span_among_good_ones_is_rejected_alone(receiver: Receiver, client: httpx.Client):
    request = spans_request(6)
    spans = request.resource_spans[0].scope_spans[0].spans
    spans[1].trace_id = b"\1" * 15
    spans[2].span_id = bytes(8)
    spans[4].parent_span_id = b"\1"
    answer = client.post("/v1/traces", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_spans == 3
    assert partial.error_message == (
        "trace_id has 15 bytes instead of 16; span_id is all zeros;"
        " parent_span_id has 1 bytes instead of 8"
    )
    names = [entry.scope_spans[0].spans[0].name for entry in stored(receiver)]
    assert names == ["span 1", "span 4", "span 6"]


def test_a_request_of_rubbish_is_refused_as_a_whole(
    receiver: Receiver, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("playhead_receiver.ingest.spans.MOST_REJECTED", 3)
    for signal, items in (("traces", "spans"), ("logs", "log_records")):
        request = {"traces": ExportTraceServiceRequest, "logs": ExportLogsServiceRequest}[signal]()
        entry = (request.resource_spans if signal == "traces" else request.resource_logs).add()
        scoped = (entry.scope_spans if signal == "traces" else entry.scope_logs).add()
        for _ in range(4):
            getattr(scoped, items).add(**({} if signal == "traces" else {"trace_id": b"\1"}))
        answer = client.post(f"/v1/{signal}", content=request.SerializeToString(), headers=PROTOBUF)
        assert answer.status_code == 400
        assert "more than 3 items of the request" in Status.FromString(answer.content).message


def test_a_bad_id_in_json_is_rejected_alone(receiver: Receiver, client: httpx.Client):
    good = {"traceId": TRACE.hex(), "spanId": "00000000000000aa", "name": "good"}
    bad = {"traceId": "not hex", "spanId": "00000000000000ab", "name": "bad"}
    body = {"resourceSpans": [{"scopeSpans": [{"spans": [bad, good]}]}]}
    answer = client.post("/v1/traces", content=json.dumps(body), headers=JSON)
    assert answer.status_code == 200
    assert answer.json() == {
        "partialSuccess": {
            "rejectedSpans": "1",
            "errorMessage": "trace_id has 0 bytes instead of 16",
        }
    }
    assert [entry.scope_spans[0].spans[0].name for entry in stored(receiver)] == ["good"]


def test_a_span_with_broken_text_is_rejected_alone(receiver: Receiver, client: httpx.Client):
    request = spans_request(2)
    body = request.SerializeToString().replace("é".encode() * 2, b"\xff\xfe\xff\xfe")
    answer = client.post("/v1/traces", content=body, headers=PROTOBUF)
    assert answer.status_code == 200
    partial = ExportTraceServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_spans == 1
    assert partial.error_message.startswith("span cannot be decoded")
    assert len(stored(receiver)) == 1


def test_a_malformed_fact_is_rejected_alone(receiver: Receiver, client: httpx.Client):
    made = HandMade().start()
    made.chat()
    request = facts_request(made)
    records = request.resource_logs[0].scope_logs[0].log_records
    count = len(records)
    numbers = [pair for pair in records[1].attributes if pair.key == "playhead.seq"]
    records[1].attributes.remove(*numbers)
    records[2].span_id = b"\1"
    answer = client.post("/v1/logs", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    partial = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_log_records == 2
    assert "span_id has 1 bytes" in partial.error_message
    kept = [fact.seq for fact in receiver.store.tape(INSTANCE).facts()]
    assert kept == [fact.seq for fact in made.facts if fact.seq not in (1, 2)]
    assert count == len(made.facts)


@pytest.mark.parametrize(
    ("name", "attributes", "said"),
    [
        ("playhead.exchange.request", {}, "playhead.exchange.id is missing"),
        (
            "playhead.exchange.request",
            {"playhead.exchange.id": f"{1:016x}/http/0"},
            "playhead.ask.key is missing",
        ),
        (
            "playhead.exchange.end",
            {"playhead.exchange.id": f"{1:016x}/http/0", "playhead.error.args": 5},
            "playhead.error.args is of the wrong type",
        ),
        (
            "playhead.exchange.end",
            {"playhead.exchange.id": f"{1:016x}/http/{10**20}"},
            "playhead.exchange.id has an ordinal larger than any given",
        ),
        ("playhead.blob", {"playhead.blob.offset": 0}, "playhead.blob.digest is no digest"),
        (
            "playhead.blob",
            {"playhead.blob.digest": "ab" * 32, "playhead.blob.offset": -1},
            "playhead.blob.offset is no offset",
        ),
        (
            "playhead.span.start",
            {"playhead.span.parent": 7},
            "playhead.span.parent is of the wrong type",
        ),
        ("playhead.unheard", {}, "event_name is 'playhead.unheard', which this version does not know"),
    ],
)
def test_a_fact_that_nobody_could_fold_is_rejected(
    receiver: Receiver, client: httpx.Client, name: str, attributes: dict[str, Any], said: str
):
    request = ExportLogsServiceRequest()
    entry = request.resource_logs.add()
    entry.resource.CopyFrom(pack_resource(INSTANCE, {}))
    record = entry.scope_logs.add().log_records.add(event_name=name)
    set_attributes(record.attributes, {"playhead.seq": 0, "playhead.lane": f"{1:016x}", **attributes})
    answer = client.post("/v1/logs", content=request.SerializeToString(), headers=PROTOBUF)
    partial = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert (partial.rejected_log_records, partial.error_message) == (1, said)
    assert list(receiver.store.tape(INSTANCE).facts()) == []


def test_log_records_that_are_no_facts_are_counted_and_said_to_be_dropped(
    receiver: Receiver, client: httpx.Client
):
    request = ExportLogsServiceRequest()
    request.resource_logs.add().scope_logs.add().log_records.add(event_name="gen_ai.choice")
    answer = client.post("/v1/logs", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    partial = ExportLogsServiceResponse.FromString(answer.content).partial_success
    assert partial.rejected_log_records == 1
    assert partial.error_message == "1 log records without a trace id are not stored"


def test_metrics_that_are_not_kept_are_rejected(client: httpx.Client):
    request = ExportMetricsServiceRequest()
    metrics = request.resource_metrics.add().scope_metrics.add().metrics
    metrics.add(name="none")
    metrics.add(name="tokens").sum.data_points.add(as_int=3)
    metrics.add(name="latency").histogram.data_points.add(count=1)
    answer = client.post("/v1/metrics", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    partial = ExportMetricsServiceResponse.FromString(answer.content).partial_success
    said = "2 data points: metrics are not stored, and no destination takes them"
    assert (partial.rejected_data_points, partial.error_message) == (2, said)
    answer = client.post("/v1/metrics", content=MessageToJson(request), headers=JSON)
    told = {"rejectedDataPoints": "2", "errorMessage": said}
    assert (answer.status_code, answer.json()) == (200, {"partialSuccess": told})


def test_profiles_are_no_signal_of_the_receiver(client: httpx.Client):
    answer = client.post("/v1development/profiles", content=b"", headers=PROTOBUF)
    assert answer.status_code == 404  # OTLP does not repeat it


def test_an_empty_request_is_a_success(client: httpx.Client):
    for signal in ("traces", "logs", "metrics"):
        answer = client.post(f"/v1/{signal}", content=b"", headers=PROTOBUF)
        assert (answer.status_code, answer.content) == (200, b"")
        answer = client.post(f"/v1/{signal}", content=b"{}", headers=JSON)
        assert (answer.status_code, answer.json()) == (200, {})


@pytest.mark.parametrize("signal", ["traces", "logs", "metrics"])
def test_what_is_not_understood_is_not_acknowledged(client: httpx.Client, signal: str):
    """Unknown fields alone, and the scopes of OTLP before 0.16, which are understood."""
    assert client.post(f"/v1/{signal}", content=b"\x1a\x00", headers=PROTOBUF).status_code == 400
    assert client.post(f"/v1/{signal}", content=b'{"event": 1}', headers=JSON).status_code == 400


def test_the_scopes_of_older_senders_are_read(receiver: Receiver, client: httpx.Client):
    request = spans_request(2)
    (entry,) = request.resource_spans
    older = b"".join(b"\xc2\x3e" + field(1, one.SerializeToString())[1:] for one in entry.scope_spans)
    entry.ClearField("scope_spans")
    content = field(1, entry.SerializeToString() + older)
    assert client.post("/v1/traces", content=content, headers=PROTOBUF).content == b""
    names = [entry.scope_spans[0].spans[0].name for entry in stored(receiver)]
    assert names == ["span 1", "span 2"]


@pytest.mark.parametrize("signal", ["traces", "logs", "metrics"])
def test_malformed_protobuf_is_400_with_a_status(client: httpx.Client, signal: str):
    answer = client.post(f"/v1/{signal}", content=b"\x0a\xff\xff", headers=PROTOBUF)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/x-protobuf"
    status = Status.FromString(answer.content)
    assert status.code == code_pb2.INVALID_ARGUMENT
    details = BadRequest()
    assert status.details[0].Unpack(details)
    assert details.field_violations[0].description == status.message
    assert "retry-after" not in answer.headers


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"resourceSpans": 3}', b"[" * 100_000])
def test_malformed_json_is_400_with_a_status_in_json(client: httpx.Client, body: bytes):
    answer = client.post("/v1/traces", content=body, headers=JSON)
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/json"
    assert answer.json()["code"] == code_pb2.INVALID_ARGUMENT


@pytest.mark.parametrize(
    ("encoding", "body"),
    [
        ("gzip", b"not gzip"),
        ("gzip", gzip.compress(b"abc")[:-4]),
        ("gzip", b""),
        ("deflate", b"\xff\xff"),
        ("zstd", b"not zstd"),
        ("zstd", zstandard.compress(b"abc" * 100)[:-3]),
    ],
    ids=["gzip no", "gzip cut", "gzip empty", "deflate no", "zstd no", "zstd cut"],
)
def test_a_body_that_cannot_be_decompressed_is_400(client: httpx.Client, encoding: str, body: bytes):
    answer = client.post("/v1/traces", content=body, headers={**PROTOBUF, "content-encoding": encoding})
    assert answer.status_code == 400
    assert Status.FromString(answer.content).code == code_pb2.INVALID_ARGUMENT


@pytest.mark.parametrize(
    "headers", [{"content-type": "text/plain"}, {**PROTOBUF, "content-encoding": "br"}]
)
def test_an_unknown_type_or_encoding_is_415(client: httpx.Client, headers: dict[str, str]):
    answer = client.post("/v1/traces", content=b"", headers=headers)
    assert answer.status_code == 415


@pytest.mark.parametrize(
    ("encoding", "encode"),
    [
        ("gzip", lambda data: gzip.compress(data, 1)),
        ("deflate", lambda data: zlib.compress(data, 1)),
        ("zstd", zstandard.compress),
    ],
)
def test_a_small_body_that_grows_over_the_limit_is_413(client: httpx.Client, encoding: str, encode: Any):
    body = encode(bytes(MAX_BYTES + 1))
    assert len(body) < 1024 * 1024
    answer = client.post("/v1/traces", content=body, headers={**PROTOBUF, "content-encoding": encoding})
    assert answer.status_code == 413
    assert Status.FromString(answer.content).code == code_pb2.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_over_the_limit_is_413_also_for_who_sends_all_of_it(
    client: httpx.Client, announced: bool
):
    piece = bytes(1024 * 1024)
    count = MAX_BYTES // len(piece) + 1
    headers = {**PROTOBUF, "content-length": str(count * len(piece))} if announced else PROTOBUF
    answer = client.post("/v1/traces", content=iter([piece] * count), headers=headers)
    assert answer.status_code == 413
    assert Status.FromString(answer.content).code == code_pb2.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("kind", ["application/x-protobuf", "text/plain"])
def test_a_sender_that_awaits_a_word_is_refused_before_it_sends(receiver: Receiver, kind: str):
    """By the length that it announces, and by any other reason."""
    address = "127.0.0.1", int(receiver.http_endpoint.rpartition(":")[2])
    large = MAX_BYTES + 1 if kind in PROTOBUF.values() else 5
    head = f"POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\n"
    with socket.create_connection(address) as sender, sender.makefile("rb") as answer:
        sender.sendall(f"{head}content-length: {large}\r\nexpect: 100-continue\r\n\r\n".encode())
        said = answer.read()
    status = 413 if large > MAX_BYTES else 415
    assert said.startswith(f"HTTP/1.1 {status} ".encode())
    assert b"\r\nconnection: close\r\n" in said


def test_a_length_over_the_limit_is_refused_before_the_body_arrives(receiver: Receiver):
    with begun(receiver, b"\n", MAX_BYTES + 1) as sender, sender.makefile("rb") as answer:
        assert answer.readline().startswith(b"HTTP/1.1 413 ")


def test_a_client_that_does_not_finish_its_head_is_let_go_of(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    address = "127.0.0.1", int(receiver.http_endpoint.rpartition(":")[2])
    with socket.create_connection(address) as slow, slow.makefile("rb") as answer:
        slow.sendall(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n")
        assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
        monkeypatch.setattr("playhead_receiver.system.impatient_protocol.HEAD_S", 0.1)
        slow.sendall(b"GET /health HTTP/1.1\r\nhost: ")
        assert answer.read().endswith(b'{"status":"ok"}')
    for begin in (b"", b"POST /v1/traces HTTP/1.1\r\nhost: "):
        with socket.create_connection(address) as slow, slow.makefile("rb") as answer:
            with suppress(ConnectionError):  # it may be gone before anything was sent
                slow.sendall(begin)
                assert answer.read() == b""


def test_a_client_that_is_silent_in_a_body_is_let_go_of(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("playhead_receiver.system.impatient_protocol.SILENCE_S", 0.1)
    with (
        begun(receiver, b"\n") as silent,
        silent.makefile("rb") as answer,
        suppress(ConnectionError),
    ):
        assert answer.read() == b""


def test_a_span_of_six_megabytes_is_kept_whole(receiver: Receiver, client: httpx.Client):
    request = spans_request(1)
    span = request.resource_spans[0].scope_spans[0].spans[0]
    span.attributes.add(key="large").value.string_value = "0123456789abcdef" * 400_000
    answer = client.post("/v1/traces", content=request.SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    (entry,) = stored(receiver)
    assert entry.scope_spans[0].spans[0] == span


def test_it_says_what_it_is(client: httpx.Client):
    assert client.get("/v1/playhead").json() == {"playhead": "0.2.0", "schema": 1, "windows": 1}
    assert client.get("/health").json() == {"status": "ok"}
    assert client.get("/v1/traces").status_code == 405
    assert client.get("/elsewhere").status_code == 404


def test_too_much_in_flight_is_429_with_a_delay(receiver: Receiver, client: httpx.Client):
    budget = receiver.intake.budget
    budget.take(10**9)
    answer = client.post("/v1/traces", content=spans_request().SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 429
    assert answer.headers["retry-after"] == "1"
    status = Status.FromString(answer.content)
    assert status.code == code_pb2.UNAVAILABLE
    delay = RetryInfo()
    assert status.details[0].Unpack(delay)
    assert delay.retry_delay.seconds == 1
    budget.give_back(10**9)
    answer = client.post("/v1/traces", content=spans_request().SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 200
    assert budget.taken_bytes == 0


def test_of_a_body_in_chunks_too(receiver: Receiver, client: httpx.Client):
    body = spans_request().SerializeToString()

    def sent() -> httpx.Response:
        return client.post("/v1/traces", content=iter((body[:9], body[9:])), headers=PROTOBUF)

    receiver.intake.budget.take(10**9)
    assert sent().status_code == 429
    receiver.intake.budget.give_back(10**9)
    assert sent().status_code == 200


def begun(receiver: Receiver, sent: bytes, announced: int = MAX_BYTES) -> socket.socket:
    """A request that was begun."""
    opened = socket.create_connection(("127.0.0.1", int(receiver.http_endpoint.rpartition(":")[2])))
    head = "POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
    opened.sendall(f"{head}content-length: {announced}\r\n\r\n".encode() + sent)
    return opened


def test_what_is_announced_and_not_sent_takes_no_room(receiver: Receiver, client: httpx.Client):
    budget = receiver.intake.budget
    with begun(receiver, b"\n"), begun(receiver, b"\n"), begun(receiver, b"\n"):
        until(lambda: budget.taken_bytes == 3, "they are under way")
        body = spans_request().SerializeToString()
        assert client.post("/v1/traces", content=body, headers=PROTOBUF).status_code == 200
    until(lambda: budget.taken_bytes == 0, "they are gone")


def test_a_sender_that_stops_in_the_middle_is_let_go_of(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("playhead_receiver.endpoints.http.STALL_S", 0.1)
    with begun(receiver, b"\n") as stopped, stopped.makefile("rb") as answer:
        head, _, said = answer.read().partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert {b"retry-after: 1", b"connection: close"} <= set(head.split(b"\r\n"))
    assert Status.FromString(said).message == "the request stopped arriving for 0.1 s"
    assert receiver.intake.budget.taken_bytes == 0


def test_a_store_that_cannot_write_is_503_with_a_delay(receiver: Receiver, client: httpx.Client):
    receiver.store.close()
    answer = client.post("/v1/traces", content=spans_request().SerializeToString(), headers=PROTOBUF)
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert Status.FromString(answer.content).code == code_pb2.UNAVAILABLE


def test_with_a_token_only_its_bearer_may_send(tmp_path: Path):
    body = spans_request().SerializeToString()
    with (
        Receiver(
            tmp_path, Configuration(Addresses(http_port=0, grpc_port=None), Access(token="s3cret"))
        ) as receiver,
        httpx.Client(base_url=receiver.http_endpoint) as client,
    ):
        refused = client.post("/v1/traces", content=body, headers=PROTOBUF)
        assert refused.status_code == 401
        assert Status.FromString(refused.content).code == code_pb2.UNAUTHENTICATED
        wrong = {**PROTOBUF, "authorization": "Bearer other"}
        assert client.post("/v1/traces", content=body, headers=wrong).status_code == 401
        assert stored(receiver) == []
        right = {**PROTOBUF, "authorization": "Bearer s3cret"}
        assert client.post("/v1/traces", content=body, headers=right).status_code == 200
        assert len(stored(receiver)) == 3


def test_what_is_meant_for_another_receiver_is_refused(receiver: Receiver, client: httpx.Client):
    body = spans_request().SerializeToString()

    def sent(folder: Path | str) -> int:
        meant = {"playhead-destination": digest_of(destination_of(folder, "").encode()).hex()}
        return client.post("/v1/traces", content=body, headers={**PROTOBUF, **meant}).status_code

    assert sent("/data/of/somebody/else") == 421
    assert stored(receiver) == []
    assert sent(receiver.data_dir) == 200
    assert len(stored(receiver)) == 3
