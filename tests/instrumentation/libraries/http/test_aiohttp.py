"""aiohttp's client: seen unchanged, recorded once, replayed alike."""

import asyncio

import aiohttp
import pytest
from opentelemetry.instrumentation.utils import suppress_instrumentation
from support.observed.aiohttp_programs import CASES, LEVEL_CASES, Case
from support.observed.http_programs import EVENTS
from support.servers.scripted import Gate, ScriptedServer, json_reply, sse_reply
from support.tapes.sessions import record, recording, replay

from playhead_core.facts import Fidelity
from playhead_core.settings import Settings
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_semconv import attributes as a
from playhead_semconv import events as e


def ends(tape: MemoryTape) -> list[str]:
    return [one.end.how if one.end else "none" for one in tape.exchanges().values()]


def fidelities(now: MemoryTape) -> list[str]:
    return [str(one.ask.details[a.PLAYHEAD_FIDELITY]) for one in now.exchanges().values()]


@pytest.mark.parametrize("case", CASES, ids=lambda one: one.name)
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


def outcomes(tape: MemoryTape) -> list[tuple[list[int], str, str]]:
    """Sizes of the parts, and how each exchange ended."""
    return [
        (
            [part.data.size for part in one.parts],
            one.end.how if one.end else "none",
            one.end.error.qualname if one.end and one.end.error else "",
        )
        for one in tape.exchanges().values()
    ]


@pytest.mark.parametrize("level", ["exchanges", "causal", "strict"])
@pytest.mark.parametrize("case", LEVEL_CASES, ids=lambda one: one.name)
def test_a_replay_ends_each_exchange_as_recorded(case: Case, level: str):
    settings = Settings(quiet=True, level=level)
    with ScriptedServer() as server:
        server.script(case.script())
        recorded, tape = record(lambda: case.run(server.url), settings=settings)
    assert ends(tape) == case.ends
    replayed, now = replay(lambda: case.run(server.url), tape, settings=settings)
    assert replayed == recorded
    assert outcomes(now) == outcomes(tape)


def get(url: str):
    async def program():
        async with aiohttp.ClientSession() as client, client.get(url) as answer:
            return await answer.read()

    return asyncio.run(program())


def test_what_stands_on_the_tape():
    async def program(url: str):
        headers = {"authorization": "Bearer s3cr3t-value-2"}
        async with (
            aiohttp.ClientSession(headers=headers) as client,
            client.post(f"{url}/v1/x?q=1", data=b'{"x": 1}') as answer,
        ):
            return await answer.read()

    with ScriptedServer() as server:
        server.script([json_reply({"a": 1}, headers={"x-request-id": "r1"})])
        _, tape = record(lambda: asyncio.run(program(server.url)))
    [(id, exchange)] = tape.exchanges().items()
    assert (id.kind, id.ordinal) == ("http", 0)
    assert exchange.ask.key == f"POST {server.url}/v1/x?q=1"
    assert exchange.ask.effect == "write"
    assert tape.read(exchange.ask.body) == b'{"x": 1}'
    sent = exchange.ask.details[a.PLAYHEAD_HTTP_HEADERS]
    assert dict(zip(sent[::2], sent[1::2], strict=True))["authorization"] == "Bearer [redacted]"
    assert exchange.head[a.HTTP_RESPONSE_STATUS_CODE] == 200
    assert exchange.head[a.PLAYHEAD_HTTP_VERSION] == "HTTP/1.1"
    assert exchange.head[a.PLAYHEAD_HTTP_REASON] == "OK"
    assert exchange.head[a.PLAYHEAD_HTTP_HEADERS] == [
        "date", "Tue, 14 Nov 2023 22:13:20 GMT", "content-type", "application/json",
        "x-request-id", "r1", "content-length", "7",
    ]  # fmt: skip
    assert [tape.read(part.data) for part in exchange.parts] == [b'{"a":1}']
    assert [fact.name for fact in tape.facts() if fact.name != e.PLAYHEAD_LANE] == [
        e.PLAYHEAD_PROCESS_START,
        e.PLAYHEAD_READ,
        e.PLAYHEAD_EXCHANGE_REQUEST,
        e.PLAYHEAD_EXCHANGE_RESPONSE,
        e.PLAYHEAD_EXCHANGE_DATA,
        e.PLAYHEAD_EXCHANGE_END,
        e.PLAYHEAD_PROCESS_EXIT,
    ]


def test_a_piece_is_on_the_tape_before_the_program_has_it_and_not_held_back():
    gate = Gate()
    with ScriptedServer() as server, recording() as sink:
        server.script([sse_reply([EVENTS[0], gate, *EVENTS[1:]])])

        async def program():
            async with aiohttp.ClientSession() as client, client.get(server.url) as answer:
                pieces = answer.content.iter_any()
                assert await anext(pieces) == EVENTS[0]
                chunks = [fact.body.inline for fact in sink.named(e.PLAYHEAD_EXCHANGE_DATA)]
                assert chunks == [EVENTS[0]]
                gate.open()
                assert b"".join([piece async for piece in pieces]) == b"".join(EVENTS[1:])

        asyncio.run(program())


def test_what_an_exporter_sends_is_not_recorded():
    with ScriptedServer() as server, recording() as sink:
        server.script([json_reply({})])
        with suppress_instrumentation():
            get(server.url)
    assert not sink.tape().exchanges()


def test_without_a_session_nothing_stands_in_the_way():
    with ScriptedServer() as server:
        server.script([json_reply({"a": 1})])
        assert get(server.url) == b'{"a":1}'


def test_a_changed_request_is_refused():
    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"a": 1})])
        _, tape = record(lambda: get(f"{url}/one"))

    def changed():
        with pytest.raises(Exception) as caught:
            get(f"{url}/two")
        return caught.value

    error, now = replay(changed, tape)
    assert type(error).__name__ == "ExchangeUnmatched"
    [exchange] = now.exchanges().values()
    assert exchange.ask.details[a.PLAYHEAD_FIDELITY] == Fidelity.BLOCKED


def test_identical_requests_at_once_get_their_own_answers():
    url = ""

    async def program() -> list[bytes]:
        async with aiohttp.ClientSession() as client:

            async def ask(_: int) -> bytes:
                async with client.get(url) as answer:
                    return await answer.read()

            return await asyncio.gather(*(ask(n) for n in range(16)))

    with ScriptedServer() as server:
        url = server.url
        server.script([json_reply({"n": n}) for n in range(16)])
        recorded, tape = record(lambda: asyncio.run(program()))
    assert sorted(recorded) == sorted(f'{{"n":{n}}}'.encode() for n in range(16))
    for _ in range(3):
        replayed, now = replay(lambda: asyncio.run(program()), tape)
        assert replayed == recorded
        assert fidelities(now) == ["exact"] * 16
