"""The firewall of a replay: nothing gets out that the tape does not answer."""

import asyncio
import socket

import pytest
from support.scripted import ScriptedServer
from support.sessions import record, recording

from playhead_instrumentation.boundaries.network import NetworkBlocked
from playhead_semconv import attributes as a
from playhead_semconv import events as e
from playhead_semconv.errors import WorldBlocked


def connect(port):
    socket.create_connection(("127.0.0.1", port))


def connect_raw(port):
    with socket.socket() as raw:
        raw.connect(("127.0.0.1", port))


def connect_ex(port):
    with socket.socket() as raw:
        raw.connect_ex(("127.0.0.1", port))


def send_datagram(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as raw:
        raw.sendto(b"x", ("127.0.0.1", port))


def look_up(port):
    socket.getaddrinfo("localhost", port)


def open_connection(port):
    asyncio.run(asyncio.open_connection("127.0.0.1", port))


@pytest.mark.parametrize(
    "reach", [connect, connect_raw, connect_ex, send_datagram, look_up, open_connection]
)
def test_blocked_and_reported(reach):
    tape = record(lambda: None)[1]
    with ScriptedServer() as server:
        with recording(tape) as sink, pytest.raises(OSError) as caught:
            reach(server.port)
        assert server.connections == 0
    error = caught.value
    assert isinstance(error, NetworkBlocked) and isinstance(error, WorldBlocked)
    assert error.errno == 13
    blocked = [fact.attributes for fact in sink.named(e.PLAYHEAD_EFFECT)]
    host = "localhost" if reach is look_up else "127.0.0.1"
    assert blocked[0] == {
        a.PLAYHEAD_EFFECT_KIND: "socket",
        a.PLAYHEAD_EFFECT_TARGET: f"{host}:{server.port}",
        a.PLAYHEAD_FIDELITY: "blocked",
    }


def test_a_recording_blocks_nothing():
    with ScriptedServer() as server, recording():
        connect(server.port)


def test_pairs_within_the_process_are_no_network():
    tape = record(lambda: None)[1]
    with recording(tape):
        left, right = socket.socketpair()
        left.sendall(b"x")
        assert right.recv(1) == b"x"
        left.close()
        right.close()
