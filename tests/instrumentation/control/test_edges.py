"""Every HTTP library: its request waits, is edited, rejected or answered by hand, and replays so."""

from __future__ import annotations

import asyncio
import http.client
import json
import urllib.error
import urllib.request
from collections.abc import Callable
from urllib.parse import urlsplit

import aiohttp
import httpx
import pytest
import requests
from support.outside.halting import at_control_server, going
from support.servers.scripted import Reply, Request, ScriptedServer, json_reply
from support.tapes.sessions import replay

from playhead_core.control.messages import HandAnswer
from playhead_core.rerun.plans import Edit
from playhead_core.tape.indexed_tapes import MemoryTape
from playhead_semconv import attributes as a

BODY = b'{"x":1}'
JSON = {"content-type": "application/json"}
Program = Callable[[str], tuple[int, str]]


def by_httpx(url: str) -> tuple[int, str]:
    answer = httpx.post(url, content=BODY, headers=JSON, timeout=60)
    return answer.status_code, answer.text


def by_httpx_async(url: str) -> tuple[int, str]:
    async def program() -> tuple[int, str]:
        async with httpx.AsyncClient(timeout=60) as client:
            answer = await client.post(url, content=BODY, headers=JSON)
            return answer.status_code, answer.text

    return asyncio.run(program())


def by_requests(url: str) -> tuple[int, str]:
    answer = requests.post(url, data=BODY, headers=JSON, timeout=60)
    return answer.status_code, answer.text


def by_urllib(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, BODY, JSON)) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def by_http_client(url: str) -> tuple[int, str]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.netloc)
    connection.request("POST", parts.path, BODY, JSON)
    answer = connection.getresponse()
    found = answer.status, answer.read().decode()
    connection.close()
    return found


def by_aiohttp(url: str) -> tuple[int, str]:
    async def program() -> tuple[int, str]:
        async with (
            aiohttp.ClientSession() as client,
            client.post(url, data=BODY, headers=JSON) as answer,
        ):
            return answer.status, await answer.text()

    return asyncio.run(program())


PROGRAMS = (by_httpx, by_httpx_async, by_requests, by_urllib, by_http_client, by_aiohttp)


def twice(request: Request) -> Reply:
    return json_reply({"twice": 2 * request.json["x"]})


def told(tape: MemoryTape) -> list[tuple[str, object]]:
    """What the tape says was done to each exchange before it went out."""
    return [
        (fact.name.rpartition(".")[2], fact.attributes.get(a.PLAYHEAD_CONTROL_ACTION))
        for exchange in tape.exchanges().values()
        for fact in exchange.controls
    ]


def replayed(program: Program, url: str, tape: MemoryTape) -> tuple[tuple[int, str], MemoryTape]:
    found, now = replay(lambda: going(lambda: program(url)).result(60), tape)
    assert [one.ask.details[a.PLAYHEAD_FIDELITY] for one in now.exchanges().values()] == ["exact"]
    assert told(now) == told(tape)
    return found, now


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_edited_request_goes_out_and_replays(program: Program):
    with ScriptedServer() as server, at_control_server() as operator:
        server.script([twice])
        url = f"{server.url}/v1/x"
        assert operator.order("pause") == ""
        running = going(lambda: program(url))
        (waits,) = operator.halted()
        assert (waits.key, waits.body) == (f"POST {url}", BODY.decode())
        assert "matches nothing" in operator.order("edit", edits=[Edit("y", 2)])
        assert operator.order("edit", edits=[Edit("x", 20)]) == ""
        assert operator.halted()[0].body == '{"x":20}'
        assert server.requests == []
        assert operator.order("continue") == ""
        assert running.result(60) == (200, '{"twice":40}')
        assert [one.body for one in server.requests] == [b'{"x":20}']
        tape = operator.sink.tape()
    (exchange,) = tape.exchanges().values()
    assert exchange.asked is not None
    assert (tape.read(exchange.asked), tape.read(exchange.ask.body)) == (BODY, b'{"x":20}')
    assert told(tape) == [("halt", None), ("edit", None), ("release", "continue")]
    found, now = replayed(program, url, tape)
    assert found == (200, '{"twice":40}')
    (again,) = now.exchanges().values()
    assert again.asked is not None
    assert (now.read(again.asked), now.read(again.ask.body)) == (BODY, b'{"x":20}')


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_rejected_request_does_not_go_out_and_replays(program: Program):
    with ScriptedServer() as server, at_control_server() as operator:
        operator.order("pause")
        url = f"{server.url}/v1/x"
        running = going(lambda: program(url))
        operator.halted()
        assert operator.order("reject", said="not today") == ""
        status, text = running.result(60)
        assert (status, json.loads(text)["error"]["message"]) == (403, "not today")
        assert server.requests == []
        tape = operator.sink.tape()
    assert told(tape) == [("halt", None), ("release", "reject")]
    assert replayed(program, url, tape)[0] == (status, text)


@pytest.mark.parametrize("program", PROGRAMS)
def test_an_answer_by_hand_is_what_the_program_gets(program: Program):
    with ScriptedServer() as server, at_control_server() as operator:
        operator.order("pause")
        url = f"{server.url}/v1/x"
        running = going(lambda: program(url))
        operator.halted()
        assert operator.order("answer", answer=HandAnswer('{"by":"hand"}', 201)) == ""
        assert running.result(60) == (201, '{"by":"hand"}')
        assert server.requests == []
        tape = operator.sink.tape()
    assert told(tape) == [("halt", None), ("release", "answer")]
    assert replayed(program, url, tape)[0] == (201, '{"by":"hand"}')
