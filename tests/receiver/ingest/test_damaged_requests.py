"""Damaged requests in great number, by every way in and many at once: all are answered."""

import threading
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.tapes.batches import span_of
from support.tapes.handmade import INSTANCE, HandMade
from support.tapes.mutants import PROTOBUF, Mutants

from playhead_core.otlp import pack, pack_resource, resource_logs
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.endpoints.grpc import SERVICES
from playhead_receiver.ingest.otlp_json import export_json
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Query
from playhead_receiver.storage.spans.whole_spans import Deriver

THREADS = 4
PATIENCE_S = 60
SOUND_EVERY = 100
TOLD = {200, 400, 413, 415}
CODES = {grpc.StatusCode.OK, grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED}
METHODS = {signal: f"/{service}/Export" for service, signal in SERVICES.items()}


def sound_requests() -> dict[str, tuple[bytes, bytes]]:
    made = HandMade().start()
    made.chat(chunks=(b"data: a\n\n", b"data: b\n\n"))
    made.exit()
    resource = pack_resource(INSTANCE, {"service.name": "x"})
    logs = ExportLogsServiceRequest(resource_logs=[resource_logs(resource, pack(made.facts))])
    messages = '[{"role":"user","parts":[{"type":"text","content":"é ☃"}]}]'
    traces = ExportTraceServiceRequest()
    for number in range(1, 4):
        stored = span_of(
            b"f" * 16,
            number,
            text="é" * 20,
            error=number == 2,
            flags=0x101,
            instance=INSTANCE,
            gen_ai__operation__name="chat",
            gen_ai__input__messages=messages,
            gen_ai__usage__input_tokens=number,
            list=["a", 1, 2.5, True],
        )
        entry = traces.resource_spans.add()
        entry.MergeFromString(stored.otlp)
        span = entry.scope_spans[0].spans[0]
        event = span.events.add(name="gen_ai.choice", time_unix_nano=span.start_time_unix_nano)
        event.attributes.add(key="message").value.string_value = messages
        span.links.add(trace_id=b"g" * 16, span_id=b"h" * 8, trace_state="a=b")
    metrics = ExportMetricsServiceRequest()
    metric = metrics.resource_metrics.add().scope_metrics.add().metrics.add(name="tokens", unit="1")
    metric.sum.data_points.add(as_int=7, time_unix_nano=1)
    requests = {"logs": logs, "metrics": metrics, "traces": traces}
    return {name: (one.SerializeToString(), export_json(one)) for name, one in requests.items()}


def body_of(trace_id: bytes, number: int) -> bytes:
    entry = ResourceSpans.FromString(span_of(trace_id, number).otlp)
    return ExportTraceServiceRequest(resource_spans=[entry]).SerializeToString()


def send(receiver: Receiver, seed: int, count: int) -> int:
    """Send so many mutants, and a sound span with every hundredth; how many of these."""
    mutants = Mutants(seed, sound_requests())
    trace_id, sound = seed.to_bytes(16, "big"), 0
    with (
        httpx.Client(base_url=receiver.http_endpoint, timeout=PATIENCE_S) as client,
        grpc.insecure_channel(receiver.grpc_endpoint) as channel,
    ):
        for number in range(count):
            one = mutants.next()
            told: Any
            if number % 5 == 0:
                try:
                    channel.unary_unary(METHODS[one.signal])(one.body, timeout=PATIENCE_S)  # pyright: ignore
                except grpc.RpcError as problem:
                    assert problem.code() in CODES, (seed, number, problem)
                continue
            headers = {"content-type": one.kind, "content-encoding": one.encoding}
            told = client.post(f"/v1/{one.signal}", content=one.body, headers=headers)
            assert told.status_code in TOLD, (seed, number, told.text)
            if number % SOUND_EVERY == 1:
                sound += 1
                body = body_of(trace_id, sound)
                told = client.post("/v1/traces", content=body, headers={"content-type": PROTOBUF})
                assert (told.status_code, told.content) == (200, b"")
    return sound


def survive(folder: Path, seed: int, count: int) -> None:
    failures: list[BaseException] = []

    def work(receiver: Receiver, own_seed: int) -> None:
        try:
            sound = send(receiver, own_seed, count // THREADS)
            assert len(list(receiver.store.spans(own_seed.to_bytes(16, "big")))) == sound
        except BaseException as problem:
            failures.append(problem)

    with Receiver(folder, Configuration(Addresses(http_port=0, grpc_port=0))) as receiver:
        seeds = range(1 + seed * THREADS, 1 + (seed + 1) * THREADS)
        threads = [threading.Thread(target=work, args=(receiver, own)) for own in seeds]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        while receiver.store.index():
            pass
        deriver = Deriver(receiver.store)
        for run in receiver.store.runs(Query(mode=None, limit=10**6)):
            for span in receiver.store.spans(bytes.fromhex(run.trace_id)):
                deriver.whole(span)
        assert list(receiver.store.verify()) == []


def test_damaged_requests_are_refused_or_taken(tmp_path: Path):
    survive(tmp_path, 1000, 400)


@pytest.mark.acceptance
@pytest.mark.parametrize("seed", range(20))
def test_a_hundred_thousand_damaged_requests(tmp_path: Path, seed: int):
    survive(tmp_path, seed, 5000)
