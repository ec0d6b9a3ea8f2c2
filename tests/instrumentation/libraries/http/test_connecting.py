"""Connections that a program opens before it has a request: refused again where they were refused."""

from __future__ import annotations

import http.client
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import urllib3.connection
from support.observed.blocking_programs import REFUSED
from support.servers.scripted import ScriptedServer, json_reply
from support.tapes.sessions import record, replay

from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_semconv import attributes as a

CLOSED = REFUSED.removeprefix("http://").rstrip("/")
LEVELS = [Settings(quiet=True, level=level) for level in ("exchanges", "strict")]


class Httplib2Connection(http.client.HTTPConnection):
    """Looks its addresses up and tries each, as `httplib2.HTTPConnectionWithTimeout` does."""

    def connect(self) -> None:
        """Connect to the first address that accepts."""
        failure: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            self.host, self.port, 0, socket.SOCK_STREAM
        ):
            try:
                self.sock = socket.socket(family, kind, protocol)
                self.sock.connect(address)
                return
            except OSError as problem:
                failure = problem
                self.sock.close()
                self.sock = None
        raise failure or OSError("no address")


Connection = type[http.client.HTTPConnection]


def attempt(kind: Connection, server: str) -> str:
    """Ask a server as httplib2 does: connect, then send the request."""
    connection = kind(server, timeout=60)
    try:
        if connection.sock is None:
            connection.connect()
        connection.request("POST", "/x", b"body")
        return connection.getresponse().read().decode()
    except OSError as problem:
        return f"{type(problem).__qualname__} {problem.errno} {problem.args}"
    finally:
        connection.close()


def keys(tape: MemoryTape) -> list[str]:
    return [one.ask.key.partition("127.0.0.1")[0] for one in tape.exchanges().values()]


def fidelities(now: MemoryTape) -> set[str]:
    return {str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()}


@contextmanager
def answering() -> Iterator[str]:
    with ScriptedServer() as server:
        server.script([json_reply({"n": 0})], repeat=True)
        yield server.url.removeprefix("http://")


def recorded_and_replayed(
    program: Callable[[], object], settings: Settings, alone: object
) -> tuple[MemoryTape, MemoryTape]:
    recorded, tape = record(program, settings=settings)
    assert recorded == alone
    replayed, now = replay(program, tape, settings=settings)
    assert replayed == recorded
    assert fidelities(now) == {"exact"}
    assert keys(now) == keys(tape)
    return tape, now


@pytest.mark.parametrize("settings", LEVELS, ids=lambda one: one.level)
@pytest.mark.parametrize("kind", [http.client.HTTPConnection, Httplib2Connection])
def test_a_refused_connection_is_refused_again_at_its_place(kind: Connection, settings: Settings):
    with answering() as server:

        def program() -> list[str]:
            return [attempt(kind, one) for one in (CLOSED, server, server, CLOSED, CLOSED, server)]

        alone = program()
        tape, _ = recorded_and_replayed(program, settings, alone)
    assert [one.partition("(")[0] for one in alone] == [
        "ConnectionRefusedError 111 ", '{"n":0}', '{"n":0}',
        "ConnectionRefusedError 111 ", "ConnectionRefusedError 111 ", '{"n":0}',
    ]  # fmt: skip
    assert keys(tape) == [
        "CONNECT http://", "POST http://", "POST http://",
        "CONNECT http://", "CONNECT http://", "POST http://",
    ]  # fmt: skip
    numbers = [id.ordinal for id in tape.exchanges() if id.kind == "http.connect"]
    assert numbers == [0, 3, 4]


def test_each_thread_fails_where_it_failed():
    def program() -> list[str]:
        found: list[str] = ["", ""]

        def ask(at: int, *servers: str) -> None:
            found[at] = " ".join(attempt(http.client.HTTPConnection, one)[:7] for one in servers)

        threads = [
            threading.Thread(target=ask, args=(0, CLOSED, server)),
            threading.Thread(target=ask, args=(1, server, CLOSED)),
        ]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        return found

    with answering() as server:
        recorded_and_replayed(program, LEVELS[0], ['Connect {"n":0}', '{"n":0} Connect'])


def test_a_tunnel_and_tls_that_fail_are_recorded_with_the_server_behind():
    def program() -> list[str]:
        tunnel = http.client.HTTPConnection(CLOSED)
        tunnel.set_tunnel("example.com", 80)
        found = []
        for connection in (http.client.HTTPSConnection(CLOSED), tunnel):
            with pytest.raises(ConnectionRefusedError) as caught:
                connection.connect()
            found.append(str(caught.value))
        return found

    tape, _ = recorded_and_replayed(program, LEVELS[1], ["[Errno 111] Connection refused"] * 2)
    assert [one.ask.key for one in tape.exchanges().values()] == [
        f"CONNECT https://{CLOSED}",
        "CONNECT http://example.com",
    ]


def test_a_connection_of_urllib3_itself_is_refused_again():
    def program() -> str:
        host, _, port = CLOSED.partition(":")
        with pytest.raises(urllib3.exceptions.NewConnectionError) as caught:
            urllib3.connection.HTTPConnection(host, int(port)).connect()
        return str(caught.value)

    tape, _ = recorded_and_replayed(program, LEVELS[0], program())
    assert keys(tape) == ["CONNECT http://"]


def test_a_tape_without_failed_connections_fails_none():
    def program() -> str:
        return attempt(http.client.HTTPConnection, server)

    with answering() as server:
        recorded, tape = record(program)
    assert [id.kind for id in tape.exchanges()] == ["http"]
    assert replay(program, tape)[0] == recorded
