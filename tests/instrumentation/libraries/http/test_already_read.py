"""Answers whose body the transport has read already: doubles of transports, caches, logs of traffic."""

import asyncio
import gzip
import threading

import httpx
import httpx2
import openai
import pytest
from support.tapes.sessions import record, replay

from playhead_core.settings import LEVELS, Settings
from playhead_semconv import attributes as a
from playhead_semconv import events as e

LIBRARIES = [httpx, httpx2]
SAID = {"x": "said " * 100}
CHAT = {
    "id": "c1",
    "object": "chat.completion",
    "created": 1,
    "model": "gpt-4o",
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hello"}}
    ],
}


def answers(library):
    """By path: what a handler of `MockTransport` may answer."""
    packed = gzip.compress(b"packed " * 100)
    again = library.Response(200, json={"again": True})
    return {
        "/json": lambda: library.Response(200, json=SAID),
        "/empty": lambda: library.Response(204),
        "/packed": lambda: library.Response(
            200, content=packed, headers={"content-encoding": "gzip", "x-a": "1"}
        ),
        "/failed": lambda: library.Response(503, text="later"),
        "/again": lambda: again,
    }


class Reads:
    """A transport that reads what the one below it brings, as one that logs does."""

    def __init__(self, below):
        self._below = below

    def handle_request(self, request):
        response = self._below.handle_request(request)
        response.read()
        return response

    async def handle_async_request(self, request):
        response = await self._below.handle_async_request(request)
        await response.aread()
        return response


def packed_stream(library):
    packed = gzip.compress(b"packed " * 100)

    async def pieces():
        yield packed[:20]
        yield packed[20:]

    def answer(request):
        content = pieces() if request.url.path == "/async" else iter([packed[:20], packed[20:]])
        return library.Response(200, content=content, headers={"content-encoding": "gzip"})

    return answer


def transports(library):
    """Transports that bring what is read."""
    reading = {
        "sync": type("Reading", (Reads, library.BaseTransport), {}),
        "async": type("Reading", (Reads, library.AsyncBaseTransport), {}),
    }
    mock = library.MockTransport
    by_path = answers(library)
    return {
        "mock": lambda kind: mock(lambda request: by_path[request.url.path]()),
        "reading": lambda kind: reading[kind](mock(packed_stream(library))),
    }


PATHS = {
    "mock": ("/json", "/empty", "/packed", "/failed", "/again", "/again", "/again"),
    "reading": ("/sync", "/sync"),
}


def seen(response):
    return response.status_code, response.content, response.headers.multi_items(), response.is_closed


def program(library, name):
    """Plain calls, and streams that are looked at without being read."""
    transport = transports(library)[name]("sync")
    result = []
    with library.Client(transport=transport, base_url="http://double") as client:
        for path in PATHS[name]:
            result.append(seen(client.get(path)))
        for path in PATHS[name]:
            with client.stream("GET", path) as response:
                inside = client.get(PATHS[name][0])
                result.append((seen(response), list(response.iter_bytes()), seen(inside)))
    return result


async def program_async(library, name):
    transport = transports(library)[name]("async")
    result = []
    paths = ["/async" for _ in PATHS[name]] if name == "reading" else PATHS[name]
    async with library.AsyncClient(transport=transport, base_url="http://double") as client:
        for path in paths:
            result.append(seen(await client.get(path)))
        for one in await asyncio.gather(*(client.get(path) for path in paths)):
            result.append(seen(one))
        for path in paths:
            async with client.stream("GET", path) as response:
                inside = await client.get(paths[0])
                pieces = [piece async for piece in response.aiter_bytes()]
                result.append((seen(response), pieces, seen(inside)))
    return result


def run(library, name, is_async):
    return asyncio.run(program_async(library, name)) if is_async else program(library, name)


@pytest.mark.timeout(90)
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("library", LIBRARIES, ids=lambda one: one.__name__)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("name", PATHS)
def test_seen_recorded_and_replayed(name, is_async, library, level):
    settings = Settings(quiet=True, level=level)
    alone = run(library, name, is_async)
    recorded, tape = record(lambda: run(library, name, is_async), settings=settings)
    assert recorded == alone
    assert {one.end.how for one in tape.exchanges().values() if one.end} == {"complete"}
    replayed, now = replay(lambda: run(library, name, is_async), tape, settings=settings)
    assert replayed == recorded
    fidelities = [one.ask.details[a.PLAYHEAD_FIDELITY] for one in now.exchanges().values()]
    assert fidelities == ["exact"] * len(tape.exchanges())


@pytest.mark.timeout(90)
def test_of_threads_at_strict():
    def many():
        found = []
        transport = httpx.MockTransport(lambda request: httpx.Response(200, text=request.url.path))
        with httpx.Client(transport=transport, base_url="http://double") as client:
            threads = [
                threading.Thread(target=lambda n=n: found.append(client.get(f"/{n}").text))
                for n in range(8)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        return found

    strict = Settings(quiet=True, level="strict")
    recorded, tape = record(many, settings=strict)
    assert sorted(recorded) == sorted(f"/{n}" for n in range(8))
    replayed, _ = replay(many, tape, settings=strict)
    assert replayed == recorded


@pytest.mark.timeout(90)
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_under_an_sdk(is_async):
    library = openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0]
    module = {"httpx": httpx, "httpx2": httpx2}[library]
    transport = module.MockTransport(lambda _: module.Response(200, json=CHAT))
    options = {"api_key": "k", "base_url": "http://double/v1", "max_retries": 0}
    asked = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}

    async def ask_async():
        http = module.AsyncClient(transport=transport)
        async with openai.AsyncOpenAI(**options, http_client=http) as client:
            return (await client.chat.completions.create(**asked)).choices[0].message.content

    def ask():
        if is_async:
            return asyncio.run(ask_async())
        with openai.OpenAI(**options, http_client=module.Client(transport=transport)) as client:
            return client.chat.completions.create(**asked).choices[0].message.content

    strict = Settings(quiet=True, level="strict")
    recorded, tape = record(ask, settings=strict)
    assert recorded == "hello"
    assert replay(ask, tape, settings=strict)[0] == "hello"


def test_what_came_at_once_was_delivered_once():
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json={}))
    _, tape = record(lambda: httpx.Client(transport=transport).get("http://double/").content)
    facts = {fact.name: fact for fact in tape.facts()}
    head = facts[e.PLAYHEAD_EXCHANGE_RESPONSE].delivery
    assert head is not None
    assert facts[e.PLAYHEAD_EXCHANGE_DATA].delivery == head
    assert facts[e.PLAYHEAD_EXCHANGE_END].delivery == head


def test_one_answer_that_is_given_a_thousand_times():
    answer = httpx.Response(200, content=gzip.compress(b"x"), headers={"content-encoding": "gzip"})

    def program():
        transport = httpx.MockTransport(lambda _: answer)
        with httpx.Client(transport=transport) as client:
            return {client.get("http://double/").content for _ in range(1100)}

    recorded, tape = record(program)
    assert recorded == {b"x"}
    assert len(tape.exchanges()) == 1100
    assert {one.end.how for one in tape.exchanges().values() if one.end} == {"complete"}
