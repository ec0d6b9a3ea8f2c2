"""What another OTLP endpoint gets: whole spans, each once, whatever happens in between."""

import gzip
import os
import random
import threading
import time
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
from support.servers import ports
from support.servers.scripted import Gate, Reply, Request, ScriptedServer
from support.starting.running import until
from support.tapes.batches import facts_of, span_of
from support.tapes.handmade import INSTANCE, TRACE, HandMade
from support.tapes.leftout import attributes, chat

from playhead_core.errors import ConfigurationError
from playhead_core.otlp import unpack
from playhead_exporter.delivery import Signal
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.forward import Destination, Forwarder, destinations_of
from playhead_receiver.forward import sampling as sampling_module
from playhead_receiver.forward.delivery import (
    LONGEST_WISH_S,
    REQUEST_BYTES,
    Counts,
    DestinationConnection,
)
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, Query, Store, StoredSpan, open_store
from playhead_semconv import attributes as a
from playhead_semconv import events as e

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
    """``endpoint``: a destination in words."""
    (destination,) = destinations_of([endpoint])
    made = Forwarder(store, destination, tmp_path / "data", **options)  # type: ignore[arg-type]
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
        Receiver(tmp_path / "there", Configuration(Addresses(http_port=0, grpc_port=0))) as there,
        Receiver(
            tmp_path / "here",
            Configuration(Addresses(http_port=0, grpc_port=None), forward=(there.http_endpoint,)),
        ) as here,
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
        Receiver(tmp_path / "there", Configuration(Addresses(http_port=0, grpc_port=0))) as there,
        Receiver(
            tmp_path / "here",
            Configuration(
                Addresses(http_port=0, grpc_port=None), forward=(f"grpc://{there.grpc_endpoint}",)
            ),
        ) as here,
    ):
        here.store.commit(Batch([span(1)]))
        until(lambda: list(there.store.spans(b"f" * 16)) == [span(1)], "forwarded")


def test_several_destinations_each_get_everything(tmp_path: Path):
    with (
        Receiver(tmp_path / "1", Configuration(Addresses(http_port=0, grpc_port=None))) as one,
        Receiver(tmp_path / "2", Configuration(Addresses(http_port=0, grpc_port=None))) as two,
        Receiver(
            tmp_path / "here",
            Configuration(
                Addresses(http_port=0, grpc_port=None),
                forward=(
                    one.http_endpoint,
                    f"{two.http_endpoint}/v1/traces",
                ),
            ),
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
        running = forwarder(store, tmp_path, f"{server.url} tape")
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


def test_patience_with_facts_ends(
    store: Store, tmp_path: Path, destination: ScriptedServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("playhead_receiver.forward.forwarder.FACTS_PATIENCE_S", 0.3)
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, destination.url)
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
    port = ports.free()
    running = forwarder(store, tmp_path, f"http://127.0.0.1:{port}")
    store.commit(Batch([span(1)]))
    until(lambda: running.problem, "noticed")
    assert running.sent == 0
    with Receiver(tmp_path / "there", Configuration(Addresses(http_port=port, grpc_port=None))) as there:
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
        with Receiver(
            tmp_path / "data",
            Configuration(Addresses(http_port=0, grpc_port=None), forward=(server.url,)),
        ) as receiver:
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


# What a destination gets


@pytest.fixture
def looks_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling_module, "FIRST_LOOK_S", 0.02)


def trace(number: int) -> bytes:
    """A trace id whose random bits are ``number`` hundredths of all."""
    return b"t" * 9 + (number * (1 << 56) // 100).to_bytes(7, "big")


def in_trace(number: int, id: int = 1, **fields: object) -> StoredSpan:
    return span_of(trace(number), id, name=f"span {id} of {number}", **fields)  # type: ignore[arg-type]


def test_attributes_are_left_out_and_cut_on_the_way_only(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    words = f"{destination.url} drop=secret.*,gen_ai.input.messages limit=100"
    running = forwarder(store, tmp_path, words, base_url="http://here:4319")
    given = {
        "secret__key": "k",
        "gen_ai__input__messages": "m",
        "gen_ai__output__messages": "o" * 500,
        "kept": 7,
    }
    stored = span(1, **given)
    store.commit(Batch([stored]))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    (entry,) = traces_in(destination.requests[0])
    where = f"http://here:4319/v1/spans/{'66' * 16}/0000000000000001"
    assert attributes(entry) == {
        "gen_ai.output.messages": f"{'o' * 100}… [500 bytes, full: {where}]",
        "kept": 7,
        a.PLAYHEAD_URL: where,
    }
    assert entry.scope_spans[0].spans[0].dropped_attributes_count == 2
    assert entry.resource.attributes[0].value.string_value == "refund"
    assert list(store.spans(b"f" * 16)) == [stored]


def test_only_attributes_that_are_named_are_kept(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, f"{destination.url} keep=gen_ai.*,http.* drop=*.messages")
    given = {"gen_ai__request__model": "m", "gen_ai__input__messages": "[]", "http__x": 1, "other": "o"}
    store.commit(Batch([span(1, **given)]))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    (entry,) = traces_in(destination.requests[0])
    assert attributes(entry) == {"gen_ai.request.model": "m", "http.x": 1}
    assert [pair.key for pair in entry.resource.attributes] == [a.SERVICE_NAME]


def test_content_that_travelled_as_a_reference_is_left_out_too(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, f"{destination.url} drop=gen_ai.*.messages,playhead.*")
    made = HandMade().start()
    call = chat(made, "question", "answer")
    store.commit(Batch([call.stored], made.facts))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    (entry,) = traces_in(destination.requests[0])
    assert a.GEN_AI_INPUT_MESSAGES in call.whole
    assert attributes(entry) == {
        name: value
        for name, value in {a.GEN_AI_OPERATION_NAME: "chat", **call.whole}.items()
        if not name.endswith(".messages") and not name.startswith("playhead.")
    }


def running_now(trace_id: bytes) -> HandMade:
    """A process that is taken to be alive for the next minute."""
    made = HandMade(trace_id=trace_id)
    made.at_ns = time.time_ns()
    return made.start(**{a.PLAYHEAD_PROCESS_HEARTBEAT_MS: 20_000})


@pytest.mark.usefixtures("looks_soon")
def test_a_share_of_the_traces_goes_and_all_that_failed(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, f"{destination.url} sample=0.2")
    spans = [in_trace(number, error=number == 45) for number in range(5, 100, 10)]
    spans.append(in_trace(55, 2, parent=1, error=True))  # its run went well
    store.commit(Batch(spans))
    until(lambda: running.sent == 5 and running.left_out == 6, "all decided")
    running.stop()
    kept = ["span 1 of 45", "span 1 of 55", "span 1 of 85", "span 1 of 95", "span 2 of 55"]
    assert sorted(names_in(destination.requests)) == kept
    assert len(list(store.runs(Query()))) == 10


@pytest.mark.usefixtures("looks_soon")
def test_a_run_that_fails_at_its_end_goes_whole(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    running = forwarder(store, tmp_path, f"{destination.url} sample=0")
    made = running_now(trace(1))
    store.commit(Batch([in_trace(1, id, parent=99, instance=INSTANCE) for id in (2, 3)], made.facts))
    store.commit(Batch([in_trace(2)]))
    until(lambda: running.left_out == 1, "the other one")
    assert running.sent == 0
    store.commit(Batch(facts=made.exit(1).facts))
    until(lambda: running.sent == 2, "the beginning of it")
    store.commit(Batch([in_trace(1, 4, parent=99, instance=INSTANCE)]))
    until(lambda: running.sent == 3, "what came later")
    running.stop()
    assert names_in(destination.requests) == ["span 2 of 1", "span 3 of 1", "span 4 of 1"]


@pytest.mark.usefixtures("looks_soon")
def test_what_is_not_decided_yet_is_decided_after_a_restart(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    words = f"{destination.url} sample=0"
    made = running_now(trace(1))
    running = forwarder(store, tmp_path, words)
    store.commit(Batch([in_trace(1, 2, parent=99, instance=INSTANCE)], made.facts))
    until(lambda: running.position == store.position(), "read")
    running.stop()
    store.commit(Batch(facts=made.exit(1).facts))
    again = forwarder(store, tmp_path, words)
    until(lambda: again.sent == 1, "sent")
    again.stop()
    assert names_in(destination.requests) == ["span 2 of 1"]


def test_destinations_have_queues_and_tenants_of_their_own(tmp_path: Path):
    with ScriptedServer() as dead, ScriptedServer() as one, ScriptedServer() as two:
        dead.script([Reply([b""], 503)], repeat=True)
        for server in (one, two):
            server.script([TAKEN], repeat=True)
        forward = [f"{dead.url}; {one.url} drop=text", f"{two.url} tenant=acme"]
        with Receiver(
            tmp_path, Configuration(Addresses(http_port=0, grpc_port=None), forward=tuple(forward))
        ) as receiver:
            receiver.store.commit(Batch([span(1, text="long")]))
            receiver.tenants.services("acme").store.commit(Batch([span(2, text="long")]))
            until(lambda: len(one.requests) == len(two.requests) == 1, "both sent")
            until(lambda: dead.requests, "the third was asked")
        assert names_in(one.requests) == ["span 1"]
        assert names_in(two.requests) == ["span 2"]
        assert attributes(traces_in(one.requests[0])[0]) == {}
        assert attributes(traces_in(two.requests[0])[0]) == {"text": "long"}
        with Receiver(
            tmp_path,
            Configuration(Addresses(http_port=0, grpc_port=None), forward=(f"{dead.url} limit=4K",)),
        ):
            before = len(dead.requests)
            until(lambda: len(dead.requests) > before, "it goes on where it was")
        assert set(names_in(dead.requests)) == {"span 1"}


def test_headers_come_from_the_environment(
    store: Store, tmp_path: Path, destination: ScriptedServer, monkeypatch: pytest.MonkeyPatch
):
    destination.script([TAKEN], repeat=True)
    words = f"{destination.url} headers=TEMPO_HEADERS"
    with pytest.raises(ConfigurationError, match="TEMPO_HEADERS has no headers"):
        forwarder(store, tmp_path, words)
    monkeypatch.setenv("TEMPO_HEADERS", "Authorization=Bearer%20abc, x-team = red")
    running = forwarder(store, tmp_path, words)
    store.commit(Batch([span(1)]))
    until(lambda: running.sent == 1, "sent")
    running.stop()
    assert destination.requests[0].headers["authorization"] == "Bearer abc"
    assert destination.requests[0].headers["x-team"] == "red"


def test_over_grpc_headers_open_a_guarded_receiver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("THERE", "authorization=Bearer%20open")
    with Receiver(
        tmp_path / "there", Configuration(Addresses(http_port=0, grpc_port=0), Access(token="open"))
    ) as there:
        words = f"grpc://{there.grpc_endpoint} headers=THERE drop=text"
        with Receiver(
            tmp_path / "here", Configuration(Addresses(http_port=0, grpc_port=None), forward=(words,))
        ) as here:
            here.store.commit(Batch([span(1, text="long")]))
            until(lambda: list(there.store.spans(b"f" * 16)), "forwarded")


def test_a_wish_to_wait_is_heeded(destination: ScriptedServer):
    asked: list[float | None] = []

    class Waits(threading.Event):
        def wait(self, timeout: float | None = None) -> bool:
            asked.append(timeout)
            if len(asked) == 3:
                self.set()
            return True

    for wish in ("120", "1e9", "0.5"):
        destination.script([Reply([b""], 429, [("retry-after", wish)])])
    stopped = Waits()
    delivery = DestinationConnection(Destination(destination.url), stopped, "spans")
    assert not delivery.deliver(Signal.TRACES, [b""], Counts())
    delivery.close()
    assert asked == [120.0, LONGEST_WISH_S, 0.5]


def test_who_runs_the_receiver_hears_when_nothing_gets_through_and_no_secret(
    store: Store, tmp_path: Path, destination: ScriptedServer, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TEMPO", "authorization=Bearer%20s3cret-token,x-org=7")
    monkeypatch.setattr("playhead_receiver.forward.delivery.SAY_AFTER", 1)
    text = [("content-type", "text/plain")]
    echo = Reply([b"Bearer s3cret-token is unknown to 7"], 401, text)
    bad = Reply([b"s3cret-token sends nonsense"], 400, text)
    destination.script([echo.but(headers=[*text, ("retry-after", "0")]), bad, TAKEN, TAKEN])
    said: list[str] = []
    monkeypatch.setattr("playhead_receiver.forward.delivery.FIRST_PAUSE_S", 0.01)
    forwarding = forwarder(store, tmp_path, f"{destination.url} headers=TEMPO", say=said.append)
    store.commit(Batch([span(1)]))
    until(lambda: forwarding.refused == 1, "refused")
    store.commit(Batch([span(2)]))
    until(lambda: forwarding.sent == 1 and forwarding.behind == 0, "sent")
    forwarding.stop()
    store.commit(Batch([span(3), span(4)]))
    assert forwarding.behind == 2
    host = destination.url
    assert said == [
        f"spans to {host} cannot be delivered and are queued: {host} answered 401 at /v1/traces:"
        " Bearer *** is unknown to 7",
        f"spans to {host} are delivered again",
        f"some spans to {host} are permanently refused: {host} answered 400 at /v1/traces:"
        " *** sends nonsense",
    ]


def test_an_endpoint_may_be_named_twice_with_queues_of_its_own(
    store: Store, tmp_path: Path, destination: ScriptedServer
):
    destination.script([TAKEN], repeat=True)
    one = forwarder(store, tmp_path, destination.url)
    other = forwarder(store, tmp_path, f"{destination.url} queue=short limit=64")
    store.commit(Batch([span(1)]))
    until(lambda: one.sent == other.sent == 1, "each has sent")
    one.stop()
    other.stop()
    assert len(list((tmp_path / "data" / "forward").glob("*.json"))) == 2


def test_a_receiver_does_not_forward_to_itself(tmp_path: Path):
    with Receiver(tmp_path / "a", Configuration(Addresses(http_port=0, grpc_port=0))) as running:
        ports = [one.rpartition(":")[2] for one in (running.http_endpoint, running.grpc_endpoint)]
    http, grpc_ = map(int, ports)
    for url in (f"http://localhost:{http}", f"grpc://127.0.0.1:{grpc_}"):
        itself = Receiver(
            tmp_path / "b", Configuration(Addresses(http_port=http, grpc_port=grpc_), forward=(url,))
        )
        with pytest.raises(ConfigurationError, match=f"{url} is this receiver"):
            itself.start()


def test_destinations_are_read_from_words():
    one, two = destinations_of(
        ["http://t:4318/v1/traces keep=a.*,b drop=c limit=2K sample=.5; grpcs://h:1"]
    )
    assert one == Destination(
        "http://t:4318/v1/traces", keep=("a.*", "b"), drop=("c",), limit_bytes=2048, sample=0.5
    )
    assert two == Destination("grpcs://h:1")
    assert destinations_of(["", " ; "]) == []
    assert len(destinations_of(["http://h:1", "http://h:1 tenant=acme tape"])) == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("ftp://h", "not an http"),
        ("tempo:4318", "not an http"),
        ("http://bob:secret@h", "a password does not belong"),
        ("http://h sample=2", "not a share"),
        ("http://h sample=much", "not a share"),
        ("http://h limit=much", "not a size"),
        ("http://h colour=red", "'colour=red' is not an option"),
        ("http://h drop=", "'drop=' is not an option"),
        ("http://h tenant=../up", "cannot be the name of a tenant"),
        ("http://h tape sample=0.5", "whole or not at all"),
        ("http://h; http://h drop=x", "named twice"),
    ],
)
def test_what_says_nothing_is_refused(words: str, problem: str, tmp_path: Path):
    with pytest.raises(ConfigurationError, match=problem) as caught:
        Receiver(tmp_path, Configuration(forward=(words,)))
    assert "secret" not in str(caught.value)
