import http.client
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.starting.running import until
from support.tapes.batches import facts_of, span_of

from playhead_core.errors import ConfigurationError, StoreBusy, UsageError
from playhead_receiver.config.configuration import Access, Addresses, Configuration
from playhead_receiver.server import Receiver
from playhead_receiver.storage import Batch, open_store
from playhead_receiver.system.writer_lock import Listening, running

STAND = """
import sys
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver
receiver = Receiver(sys.argv[1], Configuration(Addresses(http_port=0, grpc_port=0)))
receiver.run_forever(lambda ready: print(ready.http_endpoint, ready.grpc_endpoint, flush=True))
print("stopped", flush=True)
"""


def test_an_embedded_receiver_takes_free_ports_and_says_where_it_listens(tmp_path: Path):
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0))) as receiver:
        assert running(tmp_path) == Listening(
            os.getpid(), receiver.http_endpoint, receiver.grpc_endpoint
        )
        assert httpx.get(f"{receiver.http_endpoint}/health").json() == {"status": "ok"}
        assert receiver.http_endpoint.startswith("http://127.0.0.1:")
        assert receiver.grpc_endpoint.startswith("127.0.0.1:")
        endpoint = receiver.http_endpoint
    assert running(tmp_path) is None
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{endpoint}/health")
    with pytest.raises(UsageError, match="not running"):
        _ = receiver.store


def test_two_on_two_directories_live_side_by_side(tmp_path: Path):
    with (
        Receiver(tmp_path / "a", Configuration(Addresses(http_port=0, grpc_port=0))) as one,
        Receiver(tmp_path / "b", Configuration(Addresses(http_port=0, grpc_port=0))) as two,
    ):
        ports = {one.http_endpoint, one.grpc_endpoint, two.http_endpoint, two.grpc_endpoint}
        assert len(ports) == 4


def test_without_grpc_there_is_no_grpc(tmp_path: Path):
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        assert receiver.grpc_endpoint == ""
        assert running(tmp_path) == Listening(os.getpid(), receiver.http_endpoint)


def test_a_second_on_one_directory_is_told_where_the_first_listens(tmp_path: Path):
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))) as receiver:
        with pytest.raises(StoreBusy) as caught:
            Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None))).start()
        assert receiver.http_endpoint in caught.value.what
        assert httpx.get(f"{receiver.http_endpoint}/health").status_code == 200


@pytest.mark.parametrize(("which", "option"), [("http", "--http-port"), ("grpc", "--grpc-port")])
def test_a_port_in_use_is_said_and_nothing_stays_behind(tmp_path: Path, which: str, option: str):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        ports = {"http_port": 0, "grpc_port": 0, f"{which}_port": port}
        receiver = Receiver(tmp_path, Configuration(Addresses(**ports)))
        with pytest.raises(UsageError) as caught:
            receiver.start()
        assert caught.value.what == (f"port {port} on 127.0.0.1 is in use by another program")
        assert caught.value.hint == f"choose another, or any free one: {option} 0"
        assert receiver.http_endpoint == ""
    assert running(tmp_path) is None
    open_store(tmp_path).close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_elsewhere_than_loopback_only_with_a_token(tmp_path: Path, host: str):
    with pytest.raises(ConfigurationError, match="can be reached from elsewhere, and there is no token"):
        Receiver(tmp_path, Configuration(Addresses(host=host, http_port=0, grpc_port=None))).start()
    assert not (tmp_path / "receiver.lock").exists()


def test_everywhere_with_a_token(tmp_path: Path):
    with Receiver(
        tmp_path,
        Configuration(Addresses(host="0.0.0.0", http_port=0, grpc_port=0), Access(token="s3cret")),
    ) as receiver:
        port = receiver.http_endpoint.rpartition(":")[2]
        assert httpx.get(f"http://127.0.0.1:{port}/health").status_code == 200
        assert httpx.post(f"http://127.0.0.1:{port}/v1/traces").status_code == 401


def test_stopping_twice_and_starting_again(tmp_path: Path):
    receiver = Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0)))
    for _ in range(2):
        receiver.start()
        receiver.store.commit(Batch(facts=facts_of(b"i" * 16, [0])))
        receiver.stop()
        receiver.stop()
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0))) as again:
        assert again.store.position() == 1


def test_no_thread_stays_when_it_stops(tmp_path: Path):
    before = set(threading.enumerate())
    with Receiver(
        tmp_path, Configuration(Addresses(http_port=0, grpc_port=None), forward=("http://127.0.0.1:9",))
    ) as receiver:
        assert httpx.get(f"{receiver.http_endpoint}/health").status_code == 200
    left = {thread.name for thread in set(threading.enumerate()) - before}
    assert not {name for name in left if name.startswith("playhead")}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_standing_receiver_finishes_in_order_when_asked_to(tmp_path: Path, number: int):
    process = subprocess.Popen(
        [sys.executable, "-c", STAND, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    http_endpoint, grpc_endpoint = process.stdout.readline().split()
    assert running(tmp_path) == Listening(process.pid, http_endpoint, grpc_endpoint)
    otlp = span_of(b"i" * 16, 1).otlp
    body = b"\x0a" + bytes([len(otlp) & 0x7F | 0x80, len(otlp) >> 7]) + otlp
    headers = {"content-type": "application/x-protobuf"}
    assert httpx.post(f"{http_endpoint}/v1/traces", content=body, headers=headers).status_code == 200
    process.send_signal(number)
    assert process.stdout.readline() == "stopped\n"
    assert process.wait(timeout=60) == 0
    process.stdout.close()
    assert running(tmp_path) is None
    store = open_store(tmp_path, read_only=True)
    assert len(list(store.spans(b"i" * 16))) == 1
    store.close()


def test_what_it_writes_only_the_owner_may_read(tmp_path: Path):
    old = os.umask(0)
    try:
        with Receiver(
            tmp_path / "data",
            Configuration(Addresses(http_port=0, grpc_port=0), forward=("http://127.0.0.1:9",)),
        ) as receiver:
            receiver.store.commit(Batch([span_of(b"i" * 16, 1)]))
    finally:
        os.umask(old)
    for path in (tmp_path / "data", *(tmp_path / "data").rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_what_is_under_way_when_it_stops_is_taken(tmp_path: Path):
    receiver = Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=None)))
    receiver.start()
    address = ("127.0.0.1", int(receiver.http_endpoint.rpartition(":")[2]))
    body = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans.FromString(span_of(b"i" * 16, 1).otlp)]
    ).SerializeToString()
    head = (
        "POST /v1/traces HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/x-protobuf\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    with socket.create_connection(address) as slow:
        slow.sendall(head.encode() + body[:10])
        until(lambda: receiver.tenants.budget.taken_bytes, "the request is under way")
        stopping = threading.Thread(target=receiver.stop, args=(60,))
        stopping.start()
        until(lambda: not _listens(address), "nobody else is let in")
        slow.sendall(body[10:])
        assert slow.recv(100).startswith(b"HTTP/1.1 200 OK")
    stopping.join()
    store = open_store(tmp_path, read_only=True)
    assert len(list(store.spans(b"i" * 16))) == 1
    store.close()


def test_what_is_under_way_over_grpc_is_taken_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    receiver = Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0)))
    receiver.start()
    begun, goes_on = threading.Event(), threading.Event()
    commit = receiver.store.commit

    def commits_late(batch: Any) -> None:
        begun.set()
        assert goes_on.wait(60)
        commit(batch)

    monkeypatch.setattr(receiver.store, "commit", commits_late)
    body = ExportTraceServiceRequest(
        resource_spans=[ResourceSpans.FromString(span_of(b"i" * 16, 1).otlp)]
    ).SerializeToString()
    path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
    host, port = receiver.grpc_endpoint.split(":")
    with grpc.insecure_channel(receiver.grpc_endpoint) as channel:
        under_way = channel.unary_unary(path).future(body, timeout=60)
        assert begun.wait(60)
        stopping = threading.Thread(target=receiver.stop, args=(60,))
        stopping.start()
        until(lambda: not _listens((host, int(port))), "nobody else is let in")
        goes_on.set()
        assert under_way.result() == b""
    stopping.join()
    store = open_store(tmp_path, read_only=True)
    assert len(list(store.spans(b"i" * 16))) == 1
    store.close()


def _listens(address: tuple[str, int]) -> bool:
    try:
        socket.create_connection(address).close()
    except ConnectionRefusedError:
        return False
    except ConnectionResetError:  # it closes just now
        return True
    return True


def test_connections_are_kept(tmp_path: Path):
    with Receiver(tmp_path, Configuration(Addresses(http_port=0, grpc_port=0))) as receiver:
        client = http.client.HTTPConnection("127.0.0.1", int(receiver.http_endpoint.rpartition(":")[2]))
        ports: set[int] = set()
        for _ in range(3):
            client.request("POST", "/v1/traces", b"", {"content-type": "application/x-protobuf"})
            answer = client.getresponse()
            assert (answer.status, answer.read()) == (200, b"")
            ports.add(client.sock.getsockname()[1])
        client.close()
        assert len(ports) == 1
        host, port = receiver.grpc_endpoint.split(":")
        with socket.create_connection((host, int(port)), timeout=60) as pinging:
            pinging.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + _frame(4, b""))
            pinging.sendall(b"".join(_frame(6, bytes([number] * 8)) for number in range(9)))
            with pinging.makefile("rb") as answers:
                answered: list[int] = []
                while len(answered) < 9:
                    size, kind, flags = struct.unpack(">xHBB4x", answers.read(9))
                    payload = answers.read(size)
                    assert kind != 7, payload
                    if (kind, flags) == (6, 1):
                        answered.append(payload[0])
        assert answered == list(range(9))


def _frame(kind: int, payload: bytes) -> bytes:
    """A frame of HTTP/2 that concerns the connection."""
    return struct.pack(">I", len(payload))[1:] + bytes([kind]) + bytes(5) + payload


def test_neither_path_nor_header_nor_token_is_in_what_it_says(tmp_path: Path):
    secret = "ph_s3cret_" + "x" * 40
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            STAND.replace("import Addresses", "import Access, Addresses")
            .replace("grpc_port=0)", f"grpc_port=0, query_port=0), Access({secret!r})")
            .replace("ready.grpc_endpoint", "ready.query_endpoint"),
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert process.stdout is not None
    for endpoint in process.stdout.readline().split():
        for token in (secret, "ph_wr0ng"):
            headers = {"authorization": f"Bearer {token}", "x-key": "h3ader"}
            for path in ("/v1/p4th", "/v1/traces", "/v1/runs/p4th", "/v1/runs?q=p4th", "/metrics"):
                httpx.get(endpoint + path, headers=headers)
                httpx.post(endpoint + path, headers=headers, content=b"\xff", timeout=60)
        address = endpoint.removeprefix("http://").split(":")
        with socket.create_connection((address[0], int(address[1]))) as broken:
            broken.sendall(b"GET /p4th HTTP/9\r\nauthorization h3ader\r\n\r\n")
            broken.recv(100)
    process.send_signal(signal.SIGTERM)
    said = process.communicate(timeout=60)[0]
    assert "stopped" in said
    assert not [word for word in (secret, "ph_wr0ng", "p4th", "h3ader") if word in said], said
