"""urllib3, requests, botocore, urllib and http.client: seen unchanged, recorded once, replayed alike."""

import http.client
import socket
import threading
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests
from opentelemetry.instrumentation.utils import suppress_instrumentation
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from support.observed.blocking_programs import (
    EVENTS,
    HELD,
    REQUESTS,
    STDLIB,
    URLLIB3,
    Case,
    session_refused,
)
from support.servers.scripted import Gate, ScriptedServer, json_reply, sse_reply
from support.tapes.sessions import record, recording, replay

from playhead_core.facts import ExchangeId, Fidelity
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_instrumentation.patching.lanes import MAIN
from playhead_instrumentation.session.options import Tracing
from playhead_semconv import attributes as a
from playhead_semconv import events as e


@pytest.fixture(autouse=True)
def let_go():
    yield
    HELD.clear()


def ends(tape: MemoryTape) -> list[str]:
    return [one.end.how if one.end else "none" for one in tape.exchanges().values()]


def fidelities(now: MemoryTape) -> list[str]:
    return [str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()]


@pytest.mark.parametrize(
    "case", [*URLLIB3, *REQUESTS, *STDLIB], ids=lambda one: f"{one.run.__name__}-{one.name}"
)
def test_seen_recorded_and_replayed(case: Case):
    with ScriptedServer() as server:
        server.script(case.script())
        alone = case.run(server.url)
        server.script(case.script())
        recorded, tape = record(lambda: case.run(server.url))
    assert recorded == alone
    assert ends(tape) == case.ends
    replayed, now = replay(lambda: case.run(server.url), tape)
    assert replayed == recorded
    assert fidelities(now) == ["exact"] * len(case.ends)
    assert ends(now) == case.ends
    sizes = [[part.data.size for part in one.parts] for one in tape.exchanges().values()]
    assert [[part.data.size for part in one.parts] for one in now.exchanges().values()] == sizes


def test_what_stands_on_the_tape_of_urllib3():
    with ScriptedServer() as server:
        server.script([sse_reply(EVENTS, {"x-request-id": "r1"})])
        _, tape = record(
            lambda: requests.post(
                f"{server.url}/v1/x?q=1",
                data=b'{"x": 1}',
                headers={"authorization": "Bearer s3cr3t-value-1"},
            )
        )
    [(id, exchange)] = tape.exchanges().items()
    assert id == ExchangeId(MAIN.hash, "http", 0)
    assert exchange.ask.key == f"POST {server.url}/v1/x?q=1"
    assert exchange.ask.effect == "write"
    assert tape.read(exchange.ask.body) == b'{"x": 1}'
    sent = exchange.ask.details[a.PLAYHEAD_HTTP_HEADERS]
    assert sent[-4:] == ["authorization", "Bearer [redacted]", "Content-Length", "8"]
    assert exchange.head[a.HTTP_RESPONSE_STATUS_CODE] == 200
    assert exchange.head[a.PLAYHEAD_HTTP_VERSION] == "HTTP/1.1"
    assert exchange.head[a.PLAYHEAD_HTTP_REASON] == "OK"
    assert exchange.head[a.PLAYHEAD_HTTP_HEADERS] == [
        "date", "Tue, 14 Nov 2023 22:13:20 GMT", "content-type", "text/event-stream; charset=utf-8",
        "x-request-id", "r1", "transfer-encoding", "chunked",
    ]  # fmt: skip
    assert [tape.read(part.data) for part in exchange.parts] == EVENTS
    names = [fact.name for fact in tape.facts()]
    assert names == [
        e.PLAYHEAD_PROCESS_START,
        e.PLAYHEAD_LANE,
        e.PLAYHEAD_READ,
        e.PLAYHEAD_EXCHANGE_REQUEST,
        e.PLAYHEAD_EXCHANGE_RESPONSE,
        *[e.PLAYHEAD_EXCHANGE_DATA] * 3,
        e.PLAYHEAD_EXCHANGE_END,
        e.PLAYHEAD_PROCESS_EXIT,
    ]


def test_what_stands_on_the_tape_of_http_client():
    with ScriptedServer() as server:
        server.script([json_reply({"a": 1})])
        ask = urllib.request.Request(f"{server.url}/x", b"k=v", {"x-one": "1"}, method="PUT")
        _, tape = record(lambda: urllib.request.urlopen(ask).read())
    [exchange] = tape.exchanges().values()
    assert exchange.ask.key == f"PUT {server.url}/x"
    assert tape.read(exchange.ask.body) == b"k=v"
    sent = exchange.ask.details[a.PLAYHEAD_HTTP_HEADERS]
    assert dict(zip(sent[::2], sent[1::2], strict=True)) == {
        "Accept-Encoding": "identity",
        "Content-Type": "application/x-www-form-urlencoded",
        "Content-Length": "3",
        "Host": server.url.removeprefix("http://"),
        "User-Agent": sent[sent.index("User-Agent") + 1],
        "X-One": "1",
        "Connection": "close",
    }
    assert [tape.read(part.data) for part in exchange.parts] == [b'{"a":1}']


class OwnSocket(http.client.HTTPConnection):
    """Makes its socket itself, as the connections of httplib2 do."""

    def connect(self) -> None:
        """Connect, with an option that a recorded answer has no use for."""
        self.sock = socket.create_connection((self.host, self.port))
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class AnotherSocket(OwnSocket):
    """Changes the socket that it gets."""

    def connect(self) -> None:
        """Connect, and need a descriptor."""
        super().connect()
        assert self.sock.fileno() >= 0


@pytest.mark.parametrize("kind", [OwnSocket, AnotherSocket])
def test_connections_that_connect_in_their_own_way_before_a_request(kind):
    def asked(url: str) -> list[bytes]:
        connection = kind(url.removeprefix("http://"))
        connection.connect()
        answers = []
        for number in range(2):
            connection.request("POST", f"/{number}", b"body")
            answers.append(connection.getresponse().read())
        connection.close()
        return answers

    with ScriptedServer() as server:
        server.script([json_reply({"a": 1}), json_reply({"a": 2})])
        recorded, tape = record(lambda: asked(server.url))
    replayed, now = replay(lambda: asked(server.url), tape)
    assert replayed == recorded
    assert fidelities(now) == ["exact"] * 2


def test_spans_of_attempts():
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with ScriptedServer() as server:
        server.script([json_reply({}, 404)])
        record(
            lambda: (requests.get(f"{server.url}/x"), session_refused("")),
            tracing=Tracing(provider.get_tracer("test")),
        )
    found, refused = exporter.get_finished_spans()
    assert (found.name, found.status.is_ok) == ("GET", False)
    assert found.attributes is not None and refused.attributes is not None
    assert dict(found.attributes) == {
        a.HTTP_REQUEST_METHOD: "GET",
        a.URL_FULL: f"{server.url}/x",
        a.SERVER_ADDRESS: "127.0.0.1",
        a.SERVER_PORT: server.port,
        a.PLAYHEAD_EXCHANGE_ID: found.attributes[a.PLAYHEAD_EXCHANGE_ID],
        a.HTTP_RESPONSE_STATUS_CODE: 404,
        a.NETWORK_PROTOCOL_VERSION: "1.1",
        a.ERROR_TYPE: "404",
    }
    assert refused.attributes[a.ERROR_TYPE] == "urllib3.exceptions.NewConnectionError"


def test_a_chunk_is_on_the_tape_before_the_program_has_it_and_not_held_back():
    gate = Gate()
    with ScriptedServer() as server, recording() as sink:
        server.script([sse_reply([EVENTS[0], gate, *EVENTS[1:]])])
        with requests.get(server.url, stream=True) as response:
            parts = response.iter_content(None)
            assert next(parts) == EVENTS[0]
            assert [fact.body.inline for fact in sink.named(e.PLAYHEAD_EXCHANGE_DATA)] == [EVENTS[0]]
            gate.open()
            assert b"".join(parts) == b"".join(EVENTS[1:])


def test_of_a_long_request_body_all_but_its_end_is_on_the_tape_before_the_rest_goes_out():
    pieces = [b"1" * 70_000, b"2" * 10]
    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})])

        def body():
            yield pieces[0]
            (first,) = [fact.body.inline for fact in sink.named(e.PLAYHEAD_EXCHANGE_DATA)]
            assert pieces[0].startswith(first) and len(first) > 30_000
            yield pieces[1]

        requests.post(server.url, data=body())
        assert server.requests[0].body == b"".join(pieces)
    [exchange] = sink.tape().exchanges().values()
    assert sink.tape().read(exchange.ask.body) == b"".join(pieces)


def test_what_an_exporter_sends_is_not_recorded():
    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})], repeat=True)
        with suppress_instrumentation():
            requests.get(server.url)
            urllib.request.urlopen(server.url).read()
        for ask in (requests.get, urllib.request.urlopen):
            thread = threading.Thread(target=ask, args=(server.url,), name="playhead-shipper")
            thread.start()
            thread.join()
        assert len(server.requests) == 4
    assert not sink.tape().exchanges()


def test_without_a_session_nothing_stands_in_the_way():
    with ScriptedServer() as server:
        server.script([json_reply({"a": 1})])
        assert requests.get(server.url).json() == {"a": 1}


@pytest.mark.parametrize("library", ["requests", "urllib"])
def test_a_changed_request_is_refused(library):
    def ask(text):
        if library == "requests":
            return requests.post(f"{url}/v1", data=text).json()
        return urllib.request.urlopen(f"{url}/v1", text).read()

    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"a": 1})])
        _, tape = record(lambda: ask(b"one"))

    def changed():
        with pytest.raises(Exception) as caught:
            ask(b"two")
        return caught.value

    error, now = replay(changed, tape)
    assert type(error).__name__ == "ExchangeUnmatched"
    [exchange] = now.exchanges().values()
    assert exchange.ask.details[a.PLAYHEAD_FIDELITY] == Fidelity.BLOCKED


@pytest.mark.parametrize("library", ["requests", "urllib"])
def test_identical_requests_at_once_get_their_own_answers(library):
    url = ""

    def ask(_: int) -> bytes:
        if library == "requests":
            return requests.get(url).content
        return urllib.request.urlopen(url).read()

    def program() -> list[bytes]:
        with ThreadPoolExecutor(8) as pool:
            return list(pool.map(ask, range(16)))

    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"n": n}) for n in range(16)])
        recorded, tape = record(program)
    assert sorted(recorded) == sorted(f'{{"n":{n}}}'.encode() for n in range(16))
    for _ in range(3):
        replayed, now = replay(program, tape)
        assert replayed == recorded
        assert fidelities(now) == ["exact"] * 16
