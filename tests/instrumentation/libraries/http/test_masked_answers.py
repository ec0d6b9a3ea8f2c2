"""A compressed answer in which something is masked is read to its end by every client at a replay."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.request
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import aiohttp
import botocore.awsrequest
import botocore.httpsession
import brotli
import httpx
import pytest
import requests
import zstandard
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import StreamEnded
from support.servers.scripted import Reply, ScriptedServer, json_reply
from support.tapes.sessions import record, replay

from playhead_core.credentials import mask
from playhead_core.tape.frames import encode
from playhead_genai.providers.encodings import decode_body

SECRET = "pass-word-1x"
BODY = json.dumps({"a": "harmless " * 40, "password": SECRET, "city": "NYC", "pad": "x" * 300}).encode()
MASKED = BODY.replace(SECRET.encode(), mask(len(SECRET)))


def raw_deflate(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    return packer.compress(data) + packer.flush()


CODINGS: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": ("gzip", lambda data: zlib.compress(data, wbits=31)),
    "two members": (
        "gzip",
        lambda data: b"".join(zlib.compress(one, wbits=31) for one in (data[:70], data[70:])),
    ),
    "deflate": ("deflate", zlib.compress),
    "raw deflate": ("deflate", raw_deflate),
    "br": ("br", brotli.compress),
    "zstd": ("zstd", zstandard.compress),
    "stacked": ("deflate, gzip", lambda data: zlib.compress(zlib.compress(data), wbits=31)),
}
FRAMINGS: tuple[Any, ...] = ("length", "chunked", "close")
CUTS = (1, 3, 40, 10_000)
"""Sizes of the pieces in which an answer comes: some hold nothing that a decoder can return."""


def replies(known: list[str]) -> list[Reply]:
    made: list[Reply] = []
    for name in known:
        coding, pack = CODINGS[name]
        for framing in FRAMINGS:
            data, parts = pack(BODY), list[bytes]()
            for size in CUTS:
                parts.append(data[:size])
                data = data[size:]
            headers = [
                ("content-type", "application/json"),
                ("content-encoding", coding),
                ("etag", '"x"'),
            ]
            made.append(Reply([one for one in parts if one], headers=headers, framing=framing))
    return made


def with_httpx(url: str, count: int) -> list[bytes]:
    with httpx.Client() as client:
        return [client.get(url).content for _ in range(count)]


def with_httpx_streaming(url: str, count: int) -> list[bytes]:
    async def program() -> list[bytes]:
        found: list[bytes] = []
        async with httpx.AsyncClient() as client:
            for _ in range(count):
                async with client.stream("GET", url) as answer:
                    found.append(b"".join([one async for one in answer.aiter_bytes()]))
        return found

    return asyncio.run(program())


def with_requests(url: str, count: int) -> list[bytes]:
    with requests.Session() as session:
        return [session.get(url).content for _ in range(count)]


def with_urllib(url: str, count: int) -> list[bytes]:
    """Decodes nothing by itself."""
    found: list[bytes] = []
    for _ in range(count):
        with urllib.request.urlopen(url) as answer:
            text, problem = decode_body(answer.headers.items(), [answer.read()])
            found.append(text + problem.encode())
    return found


def with_aiohttp(url: str, count: int) -> list[bytes]:
    async def program() -> list[bytes]:
        async with aiohttp.ClientSession() as client:
            found: list[bytes] = []
            for _ in range(count):
                async with client.get(url) as answer:
                    found.append(await answer.read())
            return found

    return asyncio.run(program())


def with_botocore(url: str, count: int) -> list[bytes]:
    session = botocore.httpsession.URLLib3Session()
    found: list[bytes] = []
    for _ in range(count):
        answer = session.send(botocore.awsrequest.AWSRequest("GET", url).prepare())
        text, problem = decode_body(answer.headers.items(), [answer.content])
        found.append(text + problem.encode())
    session.close()
    return found


HTTPX = ["gzip", "deflate", "br", "zstd", "stacked"]
"""httpx reads one member of gzip alone, and no raw deflate whose first bytes come one by one."""
CLIENTS = [
    (with_httpx, HTTPX),
    (with_httpx_streaming, HTTPX),
    (with_requests, [one for one in CODINGS if one != "zstd"]),
    (with_urllib, list(CODINGS)),
    (with_aiohttp, ["gzip", "two members", "deflate", "raw deflate", "br"]),
    (with_botocore, ["gzip", "raw deflate", "stacked"]),
]


@pytest.mark.parametrize("client, known", CLIENTS, ids=lambda one: getattr(one, "__name__", ""))
def test_it_is_read_to_its_end_in_every_coding_and_framing(client: Any, known: list[str]):
    given = replies(known)
    with ScriptedServer() as server:
        server.script(given)
        recorded, tape = record(lambda: client(server.url, len(given)))
    assert recorded == [BODY] * len(given)
    on_tape = b"".join(encode(fact) for fact in tape.facts())
    assert SECRET.encode() not in on_tape
    replayed, now = replay(lambda: client(server.url, len(given)), tape)
    names = [f"{name} {framing}" for name in known for framing in FRAMINGS]
    assert [name for name, one in zip(names, replayed, strict=True) if one != MASKED] == []
    assert [one.end.how for one in now.exchanges().values() if one.end] == ["complete"] * len(given)


@contextmanager
def http2_server(headers: list[tuple[str, str]], body: bytes) -> Iterator[str]:
    """Answers every request over HTTP/2, without TLS, with one body."""

    def serve(connection: socket.socket) -> None:
        h2 = H2Connection(H2Configuration(client_side=False))
        h2.initiate_connection()
        connection.sendall(h2.data_to_send())
        while data := connection.recv(65_536):
            for event in h2.receive_data(data):
                if isinstance(event, StreamEnded):
                    size = ("content-length", str(len(body)))
                    h2.send_headers(event.stream_id, [(":status", "200"), *headers, size])
                    for cut in (body[:1], body[1:40], body[40:]):
                        h2.send_data(event.stream_id, cut)
                    h2.end_stream(event.stream_id)
            connection.sendall(h2.data_to_send())

    def accept() -> None:
        with suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                serve(connection)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=accept, name="playhead-http2")
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    thread.join()


@pytest.mark.parametrize("name", ["gzip", "br", "zstd", "stacked"])
def test_it_is_read_to_its_end_over_http2(name: str):
    coding, pack = CODINGS[name]

    def program() -> tuple[str, bytes]:
        with httpx.Client(http1=False, http2=True) as client:
            answer = client.get(url)
            return answer.http_version, answer.content

    with http2_server([("content-encoding", coding)], pack(BODY)) as url:
        recorded, tape = record(program)
    assert recorded == ("HTTP/2", BODY)
    replayed, _ = replay(program, tape)
    assert replayed == ("HTTP/2", MASKED)


def test_a_masked_number_stays_a_number_that_the_program_sends_on():
    said = {"password": 841234567890123456, "tokens": [1, 2], "secret": True, "client_secret": 4711}

    def program() -> dict[str, Any]:
        with httpx.Client() as client:
            found = client.get(url).json()
            client.post(url, json={"id": found["password"], "client_secret": found["client_secret"]})
        return found

    with ScriptedServer() as server:
        server.script([json_reply(said), json_reply({})])
        url = f"{server.url}/"
        recorded, tape = record(program)
    assert recorded == said
    assert b"84123" not in b"".join(encode(fact) for fact in tape.facts())
    replayed, now = replay(program, tape)
    assert replayed == {**said, "password": 999999999999999999, "client_secret": 9999}
    asked = [list(one.exchanges().values())[-1].ask for one in (tape, now)]
    assert tape.read(asked[0].body) == b'{"id":999999999999999999,"client_secret":9999}'
    assert asked[0].body.digest == asked[1].body.digest
