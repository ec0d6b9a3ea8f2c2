"""What another OTLP endpoint gets: whole spans, each once, whatever happens in between."""

import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.batches import facts_of, span_of
from support.handmade import INSTANCE, TRACE, HandMade
from support.leftout import attributes, chat
from support.running import until
from support.scripted import Gate, Reply, Request, ScriptedServer

from playhead_receiver.forward import REQUEST_BYTES, Forwarder
from playhead_receiver.server import Receiver
from playhead_receiver.store import Batch, Store, StoredSpan, open_store
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.otlp import unpack

PROTOBUF = [("content-type", "application/x-protobuf")]
TAKEN = Reply([b""], 200, PROTOBUF)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    opened = open_store(tmp_path / "data")
    yield opened
    opened.close()


@pytest.fixture
def destination() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


def forwarder(store: Store, tmp_path: Path, endpoint: str, **options: object) -> Forwarder:
    made = Forwarder(store, endpoint, tmp_path / "data", **options)  # type: ignore[arg-type]
    made.start()
    return made


def traces_in(request: Request) -> list[ResourceSpans]:
    assert request.path == "/v1/traces"
    assert request.headers["content-encoding"] == "gzip"
    return list(ExportTraceServiceRequest.FromString(gzip.decompress(request.body)).resource_spans)


def names_in(requests: list[Request]) -> list[str]:
    return [entry.scope_spans[0].spans[0].name for request in requests for entry in traces_in(request)]


def span(number: int, **fields: object) -> StoredSpan:
    return span_of(b"f" * 16, number, name=f"span {number}", **fields)  # type: ignore[arg-type]


def test_another_receiver_gets_what_this_one_took_whole(tmp_path: Path):
    made = HandMade().start()
    call = chat(made, "question", "answer")
    with (
        Receiver(tmp_path / "there", http_port=0, grpc_port=0) as there,
        Receiver(tmp_path / "here", http_port=0, grpc_port=None, forward=[there.http_endpoint]) as here,
    ):
        here.store.commit(Batch([*made.spans, call.stored], made.facts))
        got = until(lambda: len(found := list(there.store.spans(TRACE))) == 2 and found, "forwarded")
        assert got[0] == made.spans[0]
        assert attributes(ResourceSpans.FromString(got[1].otlp)) == {
            a.GEN_AI_OPERATION_NAME: "chat",
            **call.whole,
        }
        assert there.intake.counted.facts == 0


def test_over_grpc_too(tmp_path: Path):
    with (
        Receiver(tmp_path / "there", http_port=0, grpc_port=0) as there,
        Receiver(
            tmp_path / "here", http_port=0, grpc_port=None, forward=[f"grpc://{there.grpc_endpoint}"]
        ) as here,
    ):
        here.store.commit(Batch([span(1)]))
        until(lambda: list(there.store.spans(b"f" * 16)) == [span(1)], "forwarded")


def test_several_destinations_each_get_everything(tmp_path: Path):
    with (
        Receiver(tmp_path / "1", http_port=0, grpc_port=None) as one,
        Receiver(tmp_path / "2", http_port=0, grpc_port=None) as two,
        Receiver(
            tmp_path / "here",
            http_port=0,
            grpc_port=None,
            forward=[one.http_endpoint, f"{two.http_endpoint}/v1/traces"],
        ) as here,
    ):
        here.store.commit(Batch([span(1)]))
        for there in (one, two):
            until(lambda there=there: list(there.store.spans(b"f" * 16)) == [span(1)], "forwarded")


def test_the_tape_goes_only_where_it_is_asked_for(store: Store, tmp_path: Path):
    made = HandMade().start()
    made.chat(chunks=(b"data: a\n\n", b"data: b\n\n"))
    with ScriptedServer() as server:
        server.script([TAKEN], repeat=True)
        running = forwarder(store, tmp_path, server.url, facts_too=True)
        resource = Resource()
        resource.attributes.add(key="playhead.instance").value.string_value = INSTANCE.hex()
        store.commit(Batch(made.spans, made.facts, {INSTANCE: resource.SerializeToString()}))
        until(lambda: running.sent == len(made.spans), "spans sent")
        running.stop()
        logs = [request for request in server.requests if request.path == "/v1/logs"]
        found = [
            fact
            for request in logs
            for entry in ExportLogsServiceRequest.FromString(gzip.decompress(request.body)).resource_logs
            for fact in unpack(entry)
        ]
        assert found == made.facts


def test_what_was_there_before_a_destination_was_named_is_not_sent(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    store.commit(Batch([span(1)]))
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, destination.url)
    store.commit(Batch([span(2)]))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    assert names_in(destination.requests) == ["span 2"]


def test_a_span_waits_for_its_facts_and_holds_nothing_else_up(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, destination.url)
    made = HandMade().start()
    call = chat(made, "question", "answer")
    store.commit(Batch([call.stored, span(1)]))
    until(lambda: running.sent == 1 and running.waiting == 1, "the other one sent")
    assert names_in(destination.requests) == ["span 1"]
    store.commit(Batch(facts=made.facts))
    until(lambda: running.sent == 2, "sent when its facts came")
    running.stop()
    (entry,) = traces_in(destination.requests[-1])
    assert attributes(entry)[a.GEN_AI_OUTPUT_MESSAGES] == call.whole[a.GEN_AI_OUTPUT_MESSAGES]
    assert running.waiting == 0


def test_a_span_whose_facts_are_lost_goes_as_it_is(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, destination.url)
    made = HandMade().start()
    call = chat(made, "question", "answer")
    store.commit(Batch([call.stored]))
    until(lambda: running.waiting == 1, "waiting")
    beat = made.fact(
        e.PLAYHEAD_PROCESS_HEARTBEAT, attributes={a.PLAYHEAD_PROCESS_LAST_SEQ: call.rests_on}
    )
    store.commit(Batch(facts=[*made.facts[:2], beat]))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    assert traces_in(destination.requests[0]) == [ResourceSpans.FromString(call.stored.otlp)]


def test_patience_with_facts_ends(store: Store, tmp_path: Path, destination: ScriptedServer):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, destination.url, patience_s=0.3)
    made = HandMade().start()
    call = chat(made, "question", "answer")
    store.commit(Batch([call.stored]))
    until(lambda: running.sent == 1, "sent as it is")
    running.stop()
    assert traces_in(destination.requests[0]) == [ResourceSpans.FromString(call.stored.otlp)]


def test_after_a_restart_it_goes_on_where_it_was(store: Store, tmp_path: Path):
    made = HandMade().start()
    call = chat(made, "question", "answer")
    with ScriptedServer() as server:
        server.script([TAKEN], repeat=True)
        running = forwarder(store, tmp_path, server.url)
        store.commit(Batch([call.stored, span(1)]))
        until(lambda: running.sent == 1 and running.position == 2, "first")
        running.stop()
        store.commit(Batch([span(2)]))
        again = forwarder(store, tmp_path, server.url)
        until(lambda: again.sent == 1 and again.waiting == 1, "second, and the first still waits")
        store.commit(Batch(facts=made.facts))
        until(lambda: again.sent == 2, "the one that waited")
        again.stop()
        assert names_in(server.requests) == ["span 1", "span 2", "chat gpt-4o"]
    cursors = list((tmp_path / "data" / "forward").iterdir())
    assert [path.suffix for path in cursors] == [".json"]


def test_a_destination_that_is_away_gets_it_when_it_is_back(store: Store, tmp_path: Path):
    server = ScriptedServer()
    port = server.port
    server.close()
    running = forwarder(store, tmp_path, f"http://127.0.0.1:{port}")
    store.commit(Batch([span(1)]))
    until(lambda: running.problem, "noticed")
    assert running.sent == 0
    with Receiver(tmp_path / "there", http_port=port, grpc_port=None) as there:
        until(lambda: running.sent == 1, "sent")
        assert list(there.store.spans(b"f" * 16)) == [span(1)]
        assert running.problem == ""
    running.stop()


def test_it_comes_again_when_it_is_told_to(store: Store, tmp_path: Path, destination: ScriptedServer):
    busy = Reply([Status(message="busy").SerializeToString()], 429, [*PROTOBUF, ("retry-after", "0")])
    away = Reply([b""], 503, [("retry-after", "0")])
    destination.script([busy, away, TAKEN])
    running = forwarder(store, tmp_path, destination.url)
    store.commit(Batch([span(1)]))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    assert names_in(destination.requests) == ["span 1"] * 3


def test_what_is_refused_is_counted_and_not_sent_again(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    partial = ExportTraceServiceResponse()
    partial.partial_success.rejected_spans = 1
    partial.partial_success.error_message = "no such tenant"
    refused = Reply([Status(message="bad").SerializeToString()], 400, PROTOBUF)
    destination.script([refused, Reply([partial.SerializeToString()], 200, PROTOBUF), TAKEN])
    running = forwarder(store, tmp_path, destination.url)
    store.commit(Batch([span(1)]))
    until(lambda: running.refused == 1, "refused")
    assert "bad" in running.problem
    store.commit(Batch([span(2), span(3)]))
    until(lambda: running.refused == 2, "one of two refused")
    assert (running.sent, running.problem) == (1, "no such tenant")
    store.commit(Batch([span(4)]))
    until(lambda: running.sent == 2, "goes on")
    running.stop()
    assert names_in(destination.requests) == ["span 1", "span 2", "span 3", "span 4"]


def test_one_span_that_is_refused_does_not_take_the_others_with_it(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    def judge(request: Request) -> Reply:
        bad = "span 3" in names_in([request])
        return Reply([b""], 400, PROTOBUF) if bad else TAKEN

    destination.script([judge], repeat=True)
    running = forwarder(store, tmp_path, destination.url)
    store.commit(Batch([span(number) for number in range(1, 6)]))
    until(lambda: running.sent + running.refused == 5, "all judged")
    running.stop()
    assert (running.sent, running.refused) == (4, 1)


def test_a_wrong_address_or_token_loses_nothing(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([Reply([b""], 404), Reply([b""], 401), TAKEN])
    running = forwarder(store, tmp_path, destination.url)
    store.commit(Batch([span(1)]))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    assert running.refused == 0


def test_requests_are_bounded_in_bytes_and_in_order(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    noise = random.Random(1)
    spans = [span(number, text=noise.randbytes(200_000).hex()) for number in range(1, 41)]
    spans.append(span(41, text=noise.randbytes(3_000_000).hex()))
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, destination.url)
    store.commit(Batch(spans))
    until(lambda: running.sent == 41, "sent")
    running.stop()
    sizes = [len(gzip.decompress(request.body)) for request in destination.requests]
    assert [size for size in sizes if size > REQUEST_BYTES] == sizes[-1:]
    assert len(sizes) == 5
    assert names_in(destination.requests) == [f"span {number}" for number in range(1, 42)]


def test_a_destination_that_hangs_holds_nobody_up(tmp_path: Path):
    gate = Gate()
    with ScriptedServer() as server:
        server.script([TAKEN.but(before=gate)], repeat=True)
        with Receiver(tmp_path / "data", http_port=0, grpc_port=None, forward=[server.url]) as receiver:
            receiver.store.commit(Batch([span(1)]))
            gate.wait_reached()
            for number in range(2, 30):
                receiver.store.commit(Batch([span(number)], facts_of(b"i" * 16, [number])))
            assert receiver.store.position() == 57
            gate.open()
            until(lambda: len(names_in(list(server.requests))) == 29, "all sent")


def test_its_files_are_the_owners(store: Store, tmp_path: Path, destination: ScriptedServer):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, destination.url)
    store.commit(Batch([span(1)]))
    until(lambda: running.position == 1, "sent")
    running.stop()
    folder = tmp_path / "data" / "forward"
    assert os.stat(folder).st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}
