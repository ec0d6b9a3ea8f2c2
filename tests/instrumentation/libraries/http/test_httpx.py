"""Real clients over a real server: what is seen is unchanged, what is on tape is true, and replays."""

import asyncio

import httpx
import httpx2
import pytest
from support.observed.http_programs import CANCELLED, CASES, EVENTS, HELD, Case
from support.servers.scripted import Gate, ScriptedServer, json_reply, sse_reply
from support.tapes.sessions import record, recording, replay

from playhead_core.facts import ExchangeId, Fidelity, digest_of
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LIBRARIES = [httpx, httpx2]
ASYNC = [False, True]


@pytest.fixture(autouse=True)
def let_go():
    yield
    HELD.clear()


def ends(tape: MemoryTape) -> list[str]:
    return [one.end.how if one.end else "none" for one in tape.exchanges().values()]


def joined(result):
    """The same with chunks put together: where TCP cut them is not the program's doing."""
    if isinstance(result, tuple):
        return tuple(joined(one) for one in result)
    if isinstance(result, list) and all(isinstance(one, bytes) for one in result):
        return b"".join(result)
    return result


def fidelities(now: MemoryTape) -> list[str]:
    return [str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("is_async", ASYNC, ids=["sync", "async"])
@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
def test_seen_recorded_and_replayed(case: Case, library, is_async):
    with ScriptedServer() as server:
        server.script(case.script())
        alone = case.run(library, server.url, is_async)
        server.script(case.script())
        recorded, tape = record(lambda: case.run(library, server.url, is_async))
    assert joined(recorded) == joined(alone)
    assert ends(tape) == case.ends
    replayed, now = replay(lambda: case.run(library, server.url, is_async), tape)
    assert replayed == recorded
    assert fidelities(now) == ["exact"] * len(case.ends)
    assert ends(now) == case.ends
    sizes = [[part.data.size for part in one.parts] for one in tape.exchanges().values()]
    assert [[part.data.size for part in one.parts] for one in now.exchanges().values()] == sizes


def connection_of(library, url: str):
    """The events of the connection, its peer, and the parts of the bodies."""
    seen: list[object] = []

    def trace(name, details):
        seen.append((name, sorted(details), details.get("port")))

    with library.Client() as client:
        with client.stream("GET", url, extensions={"trace": trace}) as answer:
            stream = answer.extensions["network_stream"]
            seen.append((stream.get_extra_info("server_addr"), answer.read()))
        with pytest.raises(library.ConnectError):
            client.get("http://127.0.0.1:1", extensions={"trace": trace})
    return seen


async def connection_of_async(library, url: str):
    seen: list[object] = []

    async def trace(name, details):
        seen.append((name, sorted(details), details.get("port")))

    async with library.AsyncClient() as client:
        async with client.stream("GET", url, extensions={"trace": trace}) as answer:
            stream = answer.extensions["network_stream"]
            seen.append((stream.get_extra_info("server_addr"), await answer.aread()))
        with pytest.raises(library.ConnectError):
            await client.get("http://127.0.0.1:1", extensions={"trace": trace})
    return seen


@pytest.mark.parametrize("level", ["exchanges", "strict"])
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("is_async", ASYNC, ids=["sync", "async"])
def test_a_replay_shows_the_recorded_connection(library, is_async, level):
    def program():
        if is_async:
            return asyncio.run(connection_of_async(library, url))
        return connection_of(library, url)

    settings = Settings(quiet=True, level=level)
    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"a": 1})])
        recorded, tape = record(program, settings=settings)
    assert ("connection.connect_tcp.complete", ["return_value"], None) in recorded
    assert replay(program, tape, settings=settings)[0] == recorded


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda one: one.__name__)
def test_cancelled(library):
    with ScriptedServer() as server:
        server.script(CANCELLED.script())
        recorded, tape = record(lambda: CANCELLED.run(library, server.url, True))
    assert recorded == ([EVENTS[0]], "cancelled")
    [exchange] = tape.exchanges().values()
    assert exchange.end is not None and exchange.end.error is not None
    assert exchange.end.how == "error"
    assert exchange.end.delivery is not None  # at which the program went on
    assert exchange.end.error.qualname == "CancelledError"
    replayed, now = replay(lambda: CANCELLED.run(library, server.url, True), tape)
    assert replayed == recorded
    assert ends(now) == ["error"]


@pytest.mark.parametrize("library", LIBRARIES, ids=lambda one: one.__name__)
def test_what_stands_on_the_tape(library):
    with ScriptedServer() as server:
        server.script([json_reply({"a": 1}, headers={"x-request-id": "r1"})])
        _, tape = record(lambda: library.post(f"{server.url}/v1/x?q=1", content=b'{"x": 1}'))
    [(id, exchange)] = tape.exchanges().items()
    assert id == ExchangeId(id.lane, "http", 0)
    assert exchange.ask.key == f"POST {server.url}/v1/x?q=1"
    assert exchange.ask.effect == "write"
    assert tape.read(exchange.ask.body) == b'{"x": 1}'
    assert exchange.head[a.HTTP_RESPONSE_STATUS_CODE] == 200
    assert exchange.head[a.PLAYHEAD_HTTP_VERSION] == "HTTP/1.1"
    assert exchange.head[a.PLAYHEAD_HTTP_REASON] == "OK"
    assert exchange.head[a.PLAYHEAD_HTTP_HEADERS] == [
        "date", "Tue, 14 Nov 2023 22:13:20 GMT", "content-type", "application/json",
        "x-request-id", "r1", "content-length", "7",
    ]  # fmt: skip
    assert [tape.read(part.data) for part in exchange.parts] == [b'{"a":1}']
    names = [fact.name for fact in tape.facts()]
    assert names == [
        e.PLAYHEAD_PROCESS_START,
        e.PLAYHEAD_LANE,
        e.PLAYHEAD_READ,
        e.PLAYHEAD_EXCHANGE_REQUEST,
        e.PLAYHEAD_EXCHANGE_RESPONSE,
        e.PLAYHEAD_EXCHANGE_DATA,
        e.PLAYHEAD_EXCHANGE_END,
        e.PLAYHEAD_PROCESS_EXIT,
    ]
    deliveries = [fact.delivery for fact in tape.facts() if fact.delivery]
    assert [(one.batch, one.order) for one in deliveries] == [(1, 0), (2, 0), (3, 0)]


def test_a_chunk_is_on_the_tape_before_the_program_has_it_and_not_held_back():
    gate = Gate()
    with ScriptedServer() as server, recording() as sink:
        server.script([sse_reply([EVENTS[0], gate, *EVENTS[1:]])])
        with httpx2.stream("POST", server.url) as response:
            parts = response.iter_raw()
            assert next(parts) == EVENTS[0]
            chunks = [fact.body.inline for fact in sink.named(e.PLAYHEAD_EXCHANGE_DATA)]
            assert chunks == [EVENTS[0]]
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

        httpx.post(server.url, content=body())
        assert server.requests[0].body == b"".join(pieces)
    [exchange] = sink.tape().exchanges().values()
    assert sink.tape().read(exchange.ask.body) == b"".join(pieces)
    request = sink.named(e.PLAYHEAD_EXCHANGE_REQUEST)[0]
    assert request.body is None


def test_a_transport_of_the_program_is_recorded_and_not_called_at_replay():
    calls = []

    def answer(request):
        calls.append(request.url.path)
        return httpx.Response(200, json={"from": "transport"})

    def program():
        with httpx.Client(transport=httpx.MockTransport(answer)) as client:
            return client.get("http://example.test/a").json()

    recorded, tape = record(program)
    assert recorded == {"from": "transport"}
    assert replay(program, tape)[0] == recorded
    assert calls == ["/a"]
    [exchange] = tape.exchanges().values()
    assert [tape.read(part.data) for part in exchange.parts] == [b'{"from":"transport"}']


def test_a_client_beneath_a_transport_is_not_an_exchange_of_its_own():
    class Relay(httpx.BaseTransport):
        def handle_request(self, request):
            answer = httpx.get(str(request.url))
            return httpx.Response(answer.status_code, content=answer.content)

    with ScriptedServer() as server:
        server.script([json_reply({"a": 1})])
        with httpx.Client(transport=Relay()) as client:
            result, tape = record(lambda: client.get(server.url).json())
    assert result == {"a": 1}
    assert len(tape.exchanges()) == 1


def test_auth_flow_is_an_attempt_each():
    class Twice(httpx.Auth):
        def auth_flow(self, request):
            yield request
            request.headers["authorization"] = "Bearer second-token"
            yield request

    with ScriptedServer() as server:
        server.script([json_reply({}, 401), json_reply({"ok": True})])
        result, tape = record(lambda: httpx.get(server.url, auth=Twice()).json())
    assert result == {"ok": True}
    statuses = [one.head[a.HTTP_RESPONSE_STATUS_CODE] for one in tape.exchanges().values()]
    assert statuses == [401, 200]


def test_what_an_exporter_sends_is_not_recorded():
    from opentelemetry.instrumentation.utils import suppress_instrumentation

    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})])
        with suppress_instrumentation():
            httpx.get(server.url)
    assert not sink.tape().exchanges()


@pytest.mark.parametrize("words", [1, 30_000])
def test_the_digest_of_an_answer_is_that_of_all_its_chunks(words):
    with ScriptedServer() as server:
        server.script([json_reply({"said": "word " * words})])
        body, tape = record(lambda: httpx.get(server.url).content)
    (one,) = tape.exchanges().values()
    assert (len(one.parts) > 1) == (words > 1)
    assert one.end is not None and one.end.digest == digest_of(body)


def test_without_a_session_nothing_stands_in_the_way():
    with ScriptedServer() as server:
        server.script([json_reply({"a": 1})])
        assert httpx2.get(server.url).json() == {"a": 1}


def test_elapsed_and_a_second_iteration():
    gate = Gate()
    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({"a": 1}), sse_reply([EVENTS[0], gate, *EVENTS[1:]])])
        assert httpx2.get(server.url).elapsed.total_seconds() > 0
        with httpx2.stream("GET", server.url) as response:
            first = iter(response.stream)
            assert next(first) == EVENTS[0]
            gate.open()
            assert b"".join(response.stream) == b"".join(EVENTS[1:])
    exchange = list(sink.tape().exchanges().values())[1]
    assert b"".join(sink.tape().read(part.data) for part in exchange.parts) == b"".join(EVENTS)
    assert exchange.end is not None and exchange.end.how == "complete"


def test_a_changed_request_is_refused_with_the_place_of_the_difference():
    def ask(text):
        return httpx2.post(f"{url}/v1", json={"messages": [{"role": "user", "content": text}]}).json()

    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"a": 1})])
        _, tape = record(lambda: ask("one"))

    def changed():
        with pytest.raises(Exception) as caught:
            ask("two")
        return caught.value

    error, now = replay(changed, tape)
    assert type(error).__name__ == "ExchangeUnmatched"
    assert str(error) == (
        f"error[exchange-unmatched]: the tape has no answer to POST {url}/v1\n"
        'cause: nearest is main#0; first difference at $.messages[0].content: tape "one", now "two"'
    )
    [exchange] = now.exchanges().values()
    assert exchange.ask.details[a.PLAYHEAD_FIDELITY] == Fidelity.BLOCKED
    assert exchange.end is not None and exchange.end.error is not None
    assert exchange.end.error.qualname == "ExchangeUnmatched"


def test_once_more_than_the_tape_is_refused():
    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"a": 1})])
        _, tape = record(lambda: httpx.get(url).json())

    def twice():
        first = httpx.get(url).json()
        with pytest.raises(Exception) as caught:
            httpx.get(url)
        return first, str(caught.value)

    (first, text), _ = replay(twice, tape)
    assert first == {"a": 1}
    assert text.startswith(f"error[exchange-exhausted]: main#0 matches GET {url};")


def test_json_that_says_the_same_in_other_bytes_is_answered():
    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"a": 1})])
        _, tape = record(lambda: httpx.post(url, content=b'{"a": 1, "b": 2}').json())
    again, now = replay(lambda: httpx.post(url, content=b'{"b":2,"a":1}').json(), tape)
    assert again == {"a": 1}
    assert fidelities(now) == ["exact"]


def test_headers_do_not_count():
    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"a": 1})])
        _, tape = record(lambda: httpx.get(url, headers={"x-sdk": "1"}).json())
    assert replay(lambda: httpx.get(url, headers={"x-sdk": "2"}).json(), tape)[0] == {"a": 1}


def test_a_growing_history_is_on_tape_once():
    history = [{"role": "user", "content": "word " * 400}]
    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})], repeat=True)
        for turn in range(20):
            history.append({"role": "assistant", "content": f"turn {turn} " * 50})
            httpx.post(server.url, json={"messages": history})
        sent = [request.body for request in server.requests]
    tape = sink.tape()
    exchanges = list(tape.exchanges().values())
    assert [tape.read(one.ask.body) for one in exchanges] == sent
    written = sum(len(one.ask.body.inline or b"") for one in exchanges)
    assert written < len(sent[-1]) + 20 * 1024
    assert all(one.ask.body.base for one in exchanges[1:])
