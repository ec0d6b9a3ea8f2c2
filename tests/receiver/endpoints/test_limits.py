"""How large a request may be, after decompression, on every way in; and what a bomb costs."""

from __future__ import annotations

import gc
import gzip
import json
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import grpc
import httpx
import pytest
import zstandard
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.servers.bombs import deflate_bomb, grpc_status, gzip_bomb, zstd_bomb
from support.starting.measured import peak_bytes
from support.starting.running import until
from support.tapes.batches import span_of

from playhead_receiver.config.configuration import Addresses, Configuration, IntakeOptions
from playhead_receiver.endpoints.http import Work
from playhead_receiver.ingest.budget import IN_FLIGHT_BYTES
from playhead_receiver.server import Receiver

TRACE = b"t" * 16
TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
SPAN = f"/v1/spans/{TRACE.hex()}/{1:016x}/raw"
MIB = 1 << 20
LIMIT = MIB
RESOURCE_EXHAUSTED = 8
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "identity": bytes,
    "gzip": lambda data: gzip.compress(data, 1),
    "deflate": lambda data: zlib.compress(data, 1),
    "zstd": zstandard.ZstdCompressor(level=1).compress,
}
BOMBS = {"gzip": gzip_bomb, "deflate": deflate_bomb, "zstd": zstd_bomb}


def request_of(size_bytes: int) -> tuple[bytes, bytes]:
    """A span, and an export request of it that has exactly this size."""
    text = "x" * (size_bytes - 1000)
    while True:
        stored = span_of(TRACE, 1, text=text)
        entry = ResourceSpans.FromString(stored.otlp)
        body = ExportTraceServiceRequest(resource_spans=[entry]).SerializeToString()
        if len(body) == size_bytes:
            return stored.otlp, body
        text += "x" * (size_bytes - len(body))


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[Receiver]:
    with Receiver(
        tmp_path,
        Configuration(
            Addresses(http_port=0, grpc_port=0, query_port=0),
            intake_options=IntakeOptions(limit_bytes=LIMIT),
        ),
    ) as running:
        yield running


def post(endpoint: str, body: bytes, encoding: str) -> int:
    headers = {"content-type": "application/x-protobuf", "content-encoding": encoding}
    url = f"{endpoint}/v1/traces"
    return httpx.post(url, content=body, headers=headers, timeout=120).status_code


def export(endpoint: str, body: bytes, compression: grpc.Compression) -> grpc.StatusCode:
    options = [("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(endpoint, options, compression) as channel:
        try:
            channel.unary_unary(TRACES)(body, timeout=120)
        except grpc.RpcError as problem:
            return problem.code()
    return grpc.StatusCode.OK


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_over_http_the_limit_counts_after_decompression(receiver: Receiver, encoding: str):
    otlp, body = request_of(LIMIT)
    assert post(receiver.http_endpoint, ENCODINGS[encoding](body), encoding) == 200
    assert httpx.get(receiver.query_endpoint + SPAN).content == otlp
    _, body = request_of(LIMIT + 1)
    assert post(receiver.http_endpoint, ENCODINGS[encoding](body), encoding) == 413
    assert receiver.tenants.budget.taken_bytes == 0


@pytest.mark.parametrize("compression", grpc.Compression)
def test_over_grpc_the_limit_counts_after_decompression(
    receiver: Receiver, compression: grpc.Compression
):
    otlp, body = request_of(LIMIT)
    assert export(receiver.grpc_endpoint, body, compression) is grpc.StatusCode.OK
    assert httpx.get(receiver.query_endpoint + SPAN).content == otlp
    _, body = request_of(LIMIT + 1)
    refused = export(receiver.grpc_endpoint, body, compression)
    assert refused is grpc.StatusCode.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("encoding", BOMBS)
def test_a_bomb_is_refused_and_gives_its_memory_back(receiver: Receiver, encoding: str):
    bomb = BOMBS[encoding](256 * MIB)
    assert len(bomb) < LIMIT
    assert post(receiver.http_endpoint, bomb, encoding) == 413
    assert receiver.tenants.budget.taken_bytes == 0


def test_what_is_refused_is_let_go_of_at_once(receiver: Receiver):
    gc.disable()
    try:
        before = {id(one) for one in gc.get_objects() if type(one) is Work}
        for encoding, bomb in BOMBS.items():
            assert post(receiver.http_endpoint, bomb(8 * MIB), encoding) == 413
        assert post(receiver.http_endpoint, b"\xff", "identity") == 400
        until(
            lambda: {id(one) for one in gc.get_objects() if type(one) is Work} <= before,
            "no reference is left when the thread that has answered rests",
        )
    finally:
        gc.enable()


def test_a_bomb_over_grpc_is_refused(receiver: Receiver):
    assert grpc_status(receiver.grpc_endpoint, TRACES, gzip_bomb(256 * MIB)) == RESOURCE_EXHAUSTED


def test_what_is_decompressed_counts_while_it_is(receiver: Receiver):
    budget = receiver.tenants.budget
    budget.take(IN_FLIGHT_BYTES - 10_000)
    packed = gzip.compress(bytes(LIMIT))
    assert post(receiver.http_endpoint, packed, "gzip") == 429
    budget.give_back(IN_FLIGHT_BYTES - 10_000)
    assert budget.taken_bytes == 0


@pytest.mark.acceptance
def test_sixty_mebibytes_are_kept_and_a_bomb_of_ten_gibibytes_costs_little(tmp_path: Path):
    up = [sys.executable, "-m", "playhead_cli", "up", "--json", "--no-config"]
    ports = ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
    with subprocess.Popen(
        [*up, *ports, "--data-dir", str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        for encoding, bomb in BOMBS.items():
            assert post(said["http"], bomb(10240 * MIB), encoding) == 413
        assert grpc_status(said["grpc"], TRACES, gzip_bomb(10240 * MIB)) == RESOURCE_EXHAUSTED
        peak = peak_mib(process.pid)
        print(f"peak after four bombs of 10 GiB: {peak} MiB")
        assert peak < 300
        for encoding, bomb in BOMBS.items():
            packed = bomb(10240 * MIB)
            found = at_once(12, partial(post, said["http"], packed, encoding))
            assert 413 in found
            assert set(found) <= {413, 429}
        peak = peak_mib(process.pid)
        print(f"peak after twelve at once, three times: {peak} MiB")
        assert peak < 400
        packed = gzip_bomb(10240 * MIB)
        found = at_once(12, partial(grpc_status, said["grpc"], TRACES, packed))
        assert set(found) == {RESOURCE_EXHAUSTED}
        print(f"peak after twelve at once over gRPC: {peak_mib(process.pid)} MiB")
        otlp, body = request_of(60 * MIB)
        for encoding, encode in ENCODINGS.items():
            assert post(said["http"], encode(body), encoding) == 200
            assert httpx.get(said["query"] + SPAN, timeout=120).content == otlp
        for compression in grpc.Compression:
            assert export(said["grpc"], body, compression) is grpc.StatusCode.OK
        whole = httpx.get(said["query"] + SPAN.removesuffix("/raw"), timeout=120).json()
        assert len(whole["attributes"]["text"]) > 60 * MIB - 1000
        _, body = request_of(65 * MIB)
        for encoding, encode in ENCODINGS.items():
            assert post(said["http"], encode(body), encoding) == 413
        for compression in grpc.Compression:
            refused = export(said["grpc"], body, compression)
            assert refused is grpc.StatusCode.RESOURCE_EXHAUSTED
        print(f"peak in the end: {peak_mib(process.pid)} MiB")
        process.terminate()


def at_once(count: int, ask: Callable[[], int]) -> list[int]:
    """What so many ask at one time are told."""
    with ThreadPoolExecutor(count) as pool:
        return [asked.result() for asked in [pool.submit(ask) for _ in range(count)]]


def peak_mib(pid: int) -> int:
    return peak_bytes(pid) >> 20
