"""Checkpoints of senders without a client of playhead: plain HTTP, in JSON, MessagePack and bytes."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest

from playhead_checkpoint import Lineage, RemoteCheckpoints
from playhead_receiver.config.configuration import Addresses, Configuration
from playhead_receiver.server import Receiver

RUN, SPAN = "4f2a1111111111111111111111111111", "00f067aa0ba902b7"
FIRST, SECOND, THIRD, FOURTH = (f"{number:032x}" for number in range(1, 5))
STATE = {"messages": [{"role": "user", "content": "x" * 5000}], "step": 1, "done": False}


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    ports = Addresses(http_port=0, grpc_port=None, query_port=0)
    with Receiver(tmp_path_factory.mktemp("receiver"), Configuration(ports)) as running:
        yield running.query_endpoint


def put(receiver: str, id: str, body: bytes, kind: str, **query: str) -> httpx.Response:
    url = f"{receiver}/v1/checkpoints/{id}/state"
    return httpx.put(url, content=body, headers={"content-type": kind}, params=query, timeout=60)


def test_any_sender_stores_compares_and_restores(receiver: str):
    """JSON, MessagePack and bytes come back, and a client in Python sees the same checkpoints."""
    linked = {"run": RUN, "span": SPAN, "thread": "chat", "name": "1", "label": "start"}
    text = msgspec.json.encode(STATE)
    first = put(receiver, FIRST, text, "application/json; charset=utf-8", **linked).json()
    assert (first["run"], first["span"], first["labels"]) == (RUN, SPAN, ["start"])
    assert put(receiver, FIRST, text, "application/json", **linked).json() == first
    other = put(receiver, FIRST, b'{"step":2}', "application/json", **linked)
    assert (other.status_code, other.json()["type"]) == (422, "urn:playhead:checkpoint-taken")

    later = {**STATE, "step": 2, "note": "ø"}
    packed = msgspec.msgpack.encode(later)
    second = put(receiver, SECOND, packed, "application/msgpack", run=RUN, parent=FIRST).json()
    assert second["parent"] == FIRST
    state = f"{receiver}/v1/checkpoints/{SECOND}/state"
    assert httpx.get(state).json() == later
    again = httpx.get(state, headers={"accept": "application/msgpack"})
    assert msgspec.msgpack.decode(again.content) == later

    data = os.urandom(300_000)
    assert put(receiver, THIRD, data, "application/x-tar", run=RUN).status_code == 200
    assert httpx.get(f"{receiver}/v1/checkpoints/{THIRD}/state").content == data

    listed = httpx.get(f"{receiver}/v1/checkpoints", params={"run": RUN}).json()["checkpoints"]
    assert [one["id"] for one in listed] == [THIRD, SECOND, FIRST]
    with RemoteCheckpoints(receiver) as store:
        fourth = store.put({**later, "step": 3}, Lineage(id=bytes.fromhex(FOURTH)))
        assert store.state(bytes.fromhex(FIRST)) == STATE
    assert fourth.digest.hex() != second["digest"]
    found = httpx.get(f"{receiver}/v1/checkpoints/{FOURTH}/differences", params={"since": FIRST}).json()
    assert found["count"] == 2
    assert {(*one["path"], one["kind"], one["after"]) for one in found["differences"]} == {
        ("step", "changed", 3),
        ("note", "added", "ø"),
    }


@pytest.mark.parametrize(
    ("body", "kind", "said"),
    [
        (b"{", "application/json", "not application/json"),
        (b"[" * 5000 + b"]" * 5000, "application/json", ""),
        (b"\xc1", "application/msgpack", "not application/msgpack"),
        (b"\xd4\x05\x00", "application/msgpack", ""),  # an extension type
    ],
)
def test_a_body_that_is_no_state_is_refused(receiver: str, body: bytes, kind: str, said: str):
    answer = put(receiver, "e" * 32, body, kind)
    assert answer.status_code == 422, answer.text
    assert said in answer.text
    assert httpx.get(f"{receiver}/v1/checkpoints/{'e' * 32}/state").status_code == 404


def test_a_body_that_is_too_large_is_refused_before_it_is_sent(receiver: str):
    address = urlsplit(receiver)
    with socket.create_connection((address.hostname, address.port or 0), timeout=60) as connection:
        head = f"PUT /v1/checkpoints/{FIRST}/state HTTP/1.1\r\nhost: {address.netloc}\r\n"
        connection.sendall(f"{head}content-length: 999999999\r\n\r\n".encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 413 ")


def test_a_path_or_link_that_is_none_is_refused(receiver: str, tmp_path: Path):
    assert put(receiver, "x" * 32, b"1", "application/json").status_code == 422
    assert put(receiver, "e" * 32, b"1", "application/json", run="../etc").status_code == 422
