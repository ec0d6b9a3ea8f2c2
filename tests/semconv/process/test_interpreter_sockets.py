"""Connections of the interpreter's own: what they promise."""

import socket

import pytest

from playhead_core.process import interpreter_sockets


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as found:
        yield found


def test_a_connection_is_open_until_somebody_says_something(listener: socket.socket):
    with interpreter_sockets.connect(listener.getsockname(), 20.0) as made:
        other, _ = listener.accept()
        assert interpreter_sockets.is_open(made)
        assert made.gettimeout() == 20.0
        other.sendall(b"unasked")
        made.recv(1, socket.MSG_PEEK)
        assert not interpreter_sockets.is_open(made)
        assert made.recv(20) == b"unasked"
        other.close()
        assert made.recv(1) == b""
        assert not interpreter_sockets.is_open(made)
    assert not interpreter_sockets.is_open(made)


def test_options_are_set(listener: socket.socket):
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    with interpreter_sockets.connect(listener.getsockname(), None, options) as made:
        assert made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert made.gettimeout() is None


def test_why_there_is_no_connection():
    with socket.socket() as bound:  # its port is nobody else's, and nobody listens
        bound.bind(("127.0.0.1", 0))
        with pytest.raises(ConnectionRefusedError):
            interpreter_sockets.connect(bound.getsockname(), 20.0)
    with pytest.raises(socket.gaierror):
        interpreter_sockets.connect(("nowhere.invalid", 1), 20.0)
