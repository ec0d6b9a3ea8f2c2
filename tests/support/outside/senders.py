"""Senders that track acknowledgements, receivers in processes of their own, and checks of the store."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import grpc
import httpx
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.starting.running import until
from support.tapes.batches import facts_of, span_of

from playhead_core.otlp import pack, pack_resource, resource_logs

STAND = """
import sys
from playhead_receiver.config.configuration import Addresses, Configuration, Storage
from playhead_receiver.server import Receiver
kept = Configuration(Addresses(http_port=0, grpc_port=0), storage=Storage(sys.argv[2]))
receiver = Receiver(sys.argv[1], kept)
receiver.run_forever(lambda ready: print(ready.http_endpoint, ready.grpc_endpoint, flush=True))
"""
LOOK = """
import json, sys
from playhead_receiver.storage import open_store
store = open_store(sys.argv[1], read_only=True)
found = {}
for instance in sys.argv[2:]:
    trace = bytes.fromhex(instance)
    facts = [fact.seq for fact in store.tape(trace).facts()]
    spans = [span.span_id.hex() for span in store.spans(trace)]
    found[instance] = [facts, spans]
wrong = [str(finding) for finding in store.verify()]
print(json.dumps([found, wrong]))
"""
SERVICES = {
    "traces": "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    "logs": "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
}
FACTS = 20
SPANS = 5

Send = Callable[[str, bytes], bool]
"""Whether a request was acknowledged; if not, it may be sent again. Raises if nothing listens."""


class Sender:
    """Sends the data of one instance in portions; a portion without acknowledgement is sent again."""

    def __init__(self, number: int) -> None:
        self.instance = bytes([number]) * 16
        self.acknowledged = {"traces": 0, "logs": 0}
        self.refused = 0
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

    def run(self, send: Send, stop: threading.Event) -> None:
        """Send until told to stop, or until the receiver is gone."""
        while not stop.is_set():
            for signal in ("logs", "traces"):
                try:
                    while not send(signal, self.request(signal)):
                        self.refused += 1
                        if stop.wait(0.05):
                            return
                except (httpx.HTTPError, grpc.RpcError):
                    return
                self.acknowledged[signal] += 1


def over_http(endpoint: str) -> Send:
    client = httpx.Client(
        base_url=endpoint, headers={"content-type": "application/x-protobuf"}, timeout=60
    )

    def send(signal: str, body: bytes) -> bool:
        answer = client.post(f"/v1/{signal}", content=body)
        if answer.status_code == 503:
            assert answer.headers["retry-after"] == "1"
            return False
        assert (answer.status_code, answer.content) == (200, b"")
        return True

    return send


def over_grpc(endpoint: str) -> Send:
    channel = grpc.insecure_channel(endpoint)

    def send(signal: str, body: bytes) -> bool:
        try:
            assert channel.unary_unary(SERVICES[signal])(body, timeout=60) == b""
        except grpc.RpcError as problem:
            said = {str(key) for key, _ in problem.trailing_metadata() or ()}
            if problem.code() is grpc.StatusCode.UNAVAILABLE and "grpc-status-details-bin" in said:
                return False
            raise
        return True

    return send


class Standing:
    """A receiver in a process of its own; ``within``: words before its command.

    ``store``: the database that it writes to, else the data folder.
    """

    def __init__(self, data_dir: Path, within: Sequence[str] = (), store: str = "") -> None:
        self.process = subprocess.Popen(
            [*within, sys.executable, "-c", STAND, str(data_dir), store],
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.http, self.grpc = self.process.stdout.readline().split()

    @staticmethod
    def refused(data_dir: Path, within: Sequence[str] = ()) -> str:
        """The error message of a receiver that does not start."""
        command = [*within, sys.executable, "-c", STAND, str(data_dir), ""]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        assert done.returncode == 1
        return done.stderr

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        self.process.kill()
        self.process.communicate()


@contextmanager
def sending(senders: Sequence[Sender], standing: Standing) -> Generator[None]:
    """All senders send, every other one over gRPC, to the end or until the receiver is gone."""
    stop = threading.Event()
    threads = [
        threading.Thread(
            target=sender.run,
            args=(over_grpc(standing.grpc) if place % 2 else over_http(standing.http), stop),
        )
        for place, sender in enumerate(senders)
    ]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def total(senders: Sequence[Sender]) -> int:
    """Number of acknowledged requests."""
    return sum(sum(sender.acknowledged.values()) for sender in senders)


def more(senders: Sequence[Sender], count: int) -> None:
    """Wait until this many more requests were acknowledged."""
    enough = total(senders) + count
    until(lambda: total(senders) >= enough, "acknowledged enough")


def all_are_refused(senders: Sequence[Sender]) -> None:
    """Wait until each sender was told repeatedly to come again."""
    before = [sender.refused for sender in senders]
    until(
        lambda: all(sender.refused > was + 1 for sender, was in zip(senders, before, strict=True)),
        "refused",
    )


def nothing_is_missing(place: Path | str, senders: Sequence[Sender], within: Sequence[str] = ()) -> None:
    """Check that all acknowledged data is stored exactly once, and that `verify` finds nothing wrong."""
    instances = [sender.instance.hex() for sender in senders]
    said = subprocess.run(
        [*within, sys.executable, "-c", LOOK, str(place), *instances],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    found, wrong = json.loads(said)
    assert wrong == []
    for sender in senders:
        facts, spans = found[sender.instance.hex()]
        assert facts == list(range(len(facts)))
        assert len(facts) >= sender.acknowledged["logs"] * FACTS, (
            len(facts),
            sender.acknowledged,
            len(spans),
        )
        assert len(set(spans)) == len(spans) >= sender.acknowledged["traces"] * SPANS
