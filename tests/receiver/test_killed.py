"""SIGKILL of a receiver under load, over both transports: what it acknowledged is there."""

import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.batches import facts_of, span_of
from support.running import until

from playhead_receiver.store import open_store
from playhead_semconv.otlp import pack, pack_resource, resource_logs

STAND = """
import sys
from playhead_receiver.server import Receiver
receiver = Receiver(sys.argv[1], http_port=0, grpc_port=0)
receiver.run_forever(lambda ready: print(ready.http_endpoint, ready.grpc_endpoint, flush=True))
"""
SERVICES = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
FACTS = 20
SPANS = 5

Send = Callable[[str, bytes], None]


class Sender:
    """Sends one instance, portion by portion; one that was not acknowledged is sent again."""

    def __init__(self, number: int) -> None:
        self.instance = bytes([number]) * 16
        self.acknowledged = {"traces": 0, "logs": 0}
        self._resource = pack_resource(self.instance, {"service.name": f"agent {number}"})

    def request(self, signal: str) -> bytes:
        beat = self.acknowledged[signal]
        if signal == "logs":
            facts = facts_of(self.instance, range(beat * FACTS, (beat + 1) * FACTS))
            logs = resource_logs(self._resource, pack(facts))
            return ExportLogsServiceRequest(resource_logs=[logs]).SerializeToString()
        spans = [
            ResourceSpans.FromString(span_of(self.instance, number + 1, text="x" * 2000).otlp)
            for number in range(beat * SPANS, (beat + 1) * SPANS)
        ]
        return ExportTraceServiceRequest(resource_spans=spans).SerializeToString()

    def run(self, send: Send) -> None:
        """Until the receiver is gone."""
        while True:
            for signal in ("logs", "traces"):
                try:
                    send(signal, self.request(signal))
                except (httpx.HTTPError, grpc.RpcError):
                    return
                self.acknowledged[signal] += 1


def over_http(endpoint: str) -> Send:
    client = httpx.Client(base_url=endpoint, headers={"content-type": "application/x-protobuf"})

    def send(signal: str, body: bytes) -> None:
        answer = client.post(f"/v1/{signal}", content=body)
        assert (answer.status_code, answer.content) == (200, b"")

    return send


def over_grpc(endpoint: str) -> Send:
    channel = grpc.insecure_channel(endpoint)

    def send(signal: str, body: bytes) -> None:
        assert channel.unary_unary(SERVICES[signal])(body, timeout=30) == b""

    return send


def kill_and_look(data_dir: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    senders = [Sender(number) for number in range(1, 5)]
    for _ in range(kills):
        process = subprocess.Popen(
            [sys.executable, "-c", STAND, str(data_dir)], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        http_endpoint, grpc_endpoint = process.stdout.readline().split()

        def total() -> int:
            return sum(sum(sender.acknowledged.values()) for sender in senders)

        enough = total() + chance.randrange(4, 120)
        threads = [
            threading.Thread(
                target=sender.run,
                args=(over_grpc(grpc_endpoint) if place % 2 else over_http(http_endpoint),),
            )
            for place, sender in enumerate(senders)
        ]
        for thread in threads:
            thread.start()
        until(lambda enough=enough, total=total: total() >= enough, "acknowledged enough")
        process.kill()
        process.wait()
        process.stdout.close()
        for thread in threads:
            thread.join()
        store = open_store(data_dir, read_only=True)
        for sender in senders:
            facts = [fact.seq for fact in store.tape(sender.instance).facts()]
            assert facts == list(range(len(facts)))
            assert len(facts) >= sender.acknowledged["logs"] * FACTS
            spans = [span.span_id for span in store.spans(sender.instance)]
            assert len(set(spans)) == len(spans) >= sender.acknowledged["traces"] * SPANS
        store.close()


def test_nothing_acknowledged_is_lost(tmp_path: Path):
    kill_and_look(tmp_path, kills=3, seed=1)


@pytest.mark.acceptance
@pytest.mark.timeout(600)
def test_nothing_acknowledged_is_lost_in_twenty_kills(tmp_path: Path):
    kill_and_look(tmp_path, kills=20, seed=2)
