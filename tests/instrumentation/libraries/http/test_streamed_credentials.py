"""A credential over two pieces of a request body: sent as it is, recorded nowhere, replayed."""

from __future__ import annotations

import asyncio
import gzip
import http.client
import io
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator

import aiohttp
import httpx
import pytest
import requests
import zstandard
from support.servers.scripted import ScriptedServer, json_reply
from support.tapes.sessions import record, replay

from playhead_core.tape.frames import encode
from playhead_genai.providers.encodings import decode_body
from playhead_instrumentation.redaction import Redactor

SECRET = "UNKNOWNunderitsname9876543210abc"
BODY = b'{"note": "an ordinary sentence", "password": "%s", "x": 1}' % SECRET.encode()
CUT = BODY.index(SECRET.encode()) + 9
PIECES = [BODY[:CUT], BODY[CUT:]]


def pieces() -> Iterator[bytes]:
    yield from PIECES


async def later() -> AsyncIterator[bytes]:
    for one in PIECES:
        yield one


def httpx_generator(url: str) -> None:
    httpx.post(url, content=pieces())


def httpx_async_generator(url: str) -> None:
    async def program() -> None:
        async with httpx.AsyncClient() as client:
            await client.post(url, content=later())

    asyncio.run(program())


def httpx_multipart(url: str) -> None:
    httpx.post(
        url, data={"note": "an ordinary sentence"}, files={"file": io.BytesIO(BODY)}, headers=BOUNDARY
    )


def requests_generator(url: str) -> None:
    requests.post(url, data=pieces())


def requests_file(url: str) -> None:
    requests.post(url, data=io.BytesIO(BODY))


def urllib_iterable(url: str) -> None:
    headers = {"Content-Length": str(len(BODY))}
    with urllib.request.urlopen(urllib.request.Request(url, data=pieces(), headers=headers)):  # type: ignore[arg-type]
        pass


def http_client_by_hand(url: str) -> None:
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    connection.putrequest("POST", "/")
    connection.putheader("Content-Length", str(len(BODY)))
    connection.endheaders()
    for one in PIECES:
        connection.send(one)
    connection.getresponse().read()
    connection.close()


def aiohttp_generator(url: str) -> None:
    async def program() -> None:
        async with aiohttp.ClientSession() as client, client.post(url, data=later()) as answer:
            await answer.read()

    asyncio.run(program())


BOUNDARY = {"content-type": "multipart/form-data; boundary=0123456789abcdef0123456789abcdef"}
PROGRAMS: list[Callable[[str], None]] = [
    httpx_generator,
    httpx_async_generator,
    httpx_multipart,
    requests_generator,
    requests_file,
    urllib_iterable,
    http_client_by_hand,
    aiohttp_generator,
]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_it_is_sent_unchanged_recorded_nowhere_and_replayed(program: Callable[[str], None]):
    with ScriptedServer() as server:
        server.script([json_reply({"ok": True})])
        _, tape = record(lambda: program(server.url))
        (request,) = server.requests
        url = server.url
    assert BODY in request.body.replace(b"\r\n", b"") or all(one in request.body for one in PIECES)
    on_tape = b"".join(encode(fact) for fact in tape.facts())
    assert b"an ordinary sentence" in on_tape
    assert not any(SECRET[at : at + 6].encode() in on_tape for at in range(len(SECRET) - 6))
    _, now = replay(lambda: program(url), tape)
    (exchange,) = now.exchanges().values()
    assert exchange.ask.details["playhead.fidelity"] == "exact"


def packed_at_once(url: str) -> None:
    httpx.post(url, content=gzip.compress(BODY, mtime=0), headers={"content-encoding": "gzip"})


def packed_in_pieces(url: str) -> None:
    data = zstandard.compress(BODY)
    httpx.post(url, content=iter([data[:20], data[20:]]), headers={"content-encoding": "zstd"})


@pytest.mark.parametrize("program", [packed_at_once, packed_in_pieces], ids=lambda one: one.__name__)
def test_a_compressed_body_is_looked_into(program: Callable[[str], None]):
    with ScriptedServer() as server:
        server.script([json_reply({"ok": True})])
        _, tape = record(lambda: program(server.url))
        url = server.url
    [exchange] = tape.exchanges().values()
    flat = exchange.ask.details["playhead.http.headers"]
    headers = list(zip(flat[::2], flat[1::2], strict=True))
    text, problem = decode_body(headers, [tape.read(exchange.ask.body)])
    assert (text, problem) == (BODY.replace(SECRET.encode(), b"[redacted]"), "")
    _, now = replay(lambda: program(url), tape)
    (exchange,) = now.exchanges().values()
    assert exchange.ask.details["playhead.fidelity"] == "exact"


def test_a_body_that_only_begins_like_a_compressed_one_stays():
    assert Redactor().body(b"\x1f\x8b\x08 no gzip") == (b"\x1f\x8b\x08 no gzip", 0)
