"""Programs that use an HTTP client, and what they observe; sync and async, httpx and httpx2."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from support.servers.scripted import Gate, Reply, hang_up, json_reply, sse_reply

EVENTS = [b"data: one\n\n", b"data: two\n\n", b"data: three\n\n"]


def failure(error: BaseException) -> tuple[str, str, str]:
    return type(error).__module__, type(error).__qualname__, str(error)


def seen(response: Any) -> dict[str, Any]:
    """Everything that a program can see of a response."""
    return {
        "status": response.status_code,
        "reason": response.reason_phrase,
        "version": response.http_version,
        "headers": response.headers.multi_items(),
        "history": [one.status_code for one in response.history],
        "url": str(response.url),
        "cookies": dict(response.cookies),
    }


@dataclass(frozen=True)
class Case:
    """A program, the server's answers, and how its exchanges end."""

    name: str
    script: Callable[[], list[Reply]]
    sync: Callable[[ModuleType, str], Any]
    asynchronous: Callable[[ModuleType, str], Awaitable[Any]]
    ends: list[str]

    def run(self, library: ModuleType, url: str, is_async: bool) -> Any:
        if is_async:
            return asyncio.run(self.asynchronous(library, url))  # type: ignore[arg-type]
        return self.sync(library, url)


def plain(library: ModuleType, url: str) -> Any:
    with library.Client() as client:
        response = client.post(url, json={"question": "what"})
        return seen(response), response.content, response.json()


async def plain_async(library: ModuleType, url: str) -> Any:
    async with library.AsyncClient() as client:
        response = await client.post(url, json={"question": "what"})
        return seen(response), response.content, response.json()


def streamed(library: ModuleType, url: str) -> Any:
    chunks: list[bytes] = []
    with library.Client() as client, client.stream("POST", url, json={}) as response:
        try:
            for chunk in response.iter_raw():
                chunks.append(chunk)
        except library.HTTPError as error:
            return seen(response), chunks, failure(error)
        return seen(response), chunks, response.num_bytes_downloaded


async def streamed_async(library: ModuleType, url: str) -> Any:
    chunks: list[bytes] = []
    async with library.AsyncClient() as client, client.stream("POST", url, json={}) as response:
        try:
            async for chunk in response.aiter_raw():
                chunks.append(chunk)
        except library.HTTPError as error:
            return seen(response), chunks, failure(error)
        return seen(response), chunks, response.num_bytes_downloaded


def refused(library: ModuleType, url: str, read_s: float = 60) -> Any:
    with library.Client(timeout=library.Timeout(60, read=read_s)) as client:
        try:
            client.post(url, json={})
        except library.HTTPError as error:
            return failure(error), str(error.request.url)
    return None


async def refused_async(library: ModuleType, url: str, read_s: float = 60) -> Any:
    async with library.AsyncClient(timeout=library.Timeout(60, read=read_s)) as client:
        try:
            await client.post(url, json={})
        except library.HTTPError as error:
            return failure(error), str(error.request.url)
    return None


def late(library: ModuleType, url: str) -> Any:
    """Where nothing answers."""
    return refused(library, url, 0.1)


async def late_async(library: ModuleType, url: str) -> Any:
    return await refused_async(library, url, 0.1)


def redirected(library: ModuleType, url: str) -> Any:
    with library.Client(follow_redirects=True) as client:
        response = client.get(f"{url}/old")
        return seen(response), response.content


async def redirected_async(library: ModuleType, url: str) -> Any:
    async with library.AsyncClient(follow_redirects=True) as client:
        response = await client.get(f"{url}/old")
        return seen(response), response.content


def dropped(library: ModuleType, url: str) -> Any:
    client = library.Client()
    response = client.send(client.build_request("POST", url, json={}), stream=True)
    first = next(response.iter_raw())
    del response
    gc.collect()
    client.close()
    return first


async def dropped_async(library: ModuleType, url: str) -> Any:
    client = library.AsyncClient()
    response = await client.send(client.build_request("POST", url, json={}), stream=True)
    parts = response.aiter_raw()
    first = await anext(parts)
    del response, parts
    gc.collect()
    await client.aclose()
    return first


def closed(library: ModuleType, url: str) -> Any:
    with library.Client() as client, client.stream("POST", url, json={}) as response:
        return next(response.iter_raw())


async def closed_async(library: ModuleType, url: str) -> Any:
    async with library.AsyncClient() as client, client.stream("POST", url, json={}) as response:
        return await anext(response.aiter_raw())


HELD: list[Any] = []


def held(library: ModuleType, url: str) -> Any:
    client = library.Client()
    response = client.send(client.build_request("POST", url, json={}), stream=True)
    parts = response.iter_raw()
    HELD.append((client, response, parts))
    return next(parts)


async def held_async(library: ModuleType, url: str) -> Any:
    client = library.AsyncClient()
    response = await client.send(client.build_request("POST", url, json={}), stream=True)
    parts = response.aiter_raw()
    HELD.append((client, response, parts))
    return await anext(parts)


async def cancelled_async(library: ModuleType, url: str) -> Any:
    chunks: list[bytes] = []
    arrived = asyncio.Event()

    async def read() -> None:
        async with library.AsyncClient() as client, client.stream("POST", url, json={}) as response:
            async for chunk in response.aiter_raw():
                chunks.append(chunk)
                arrived.set()

    task = asyncio.create_task(read())
    await arrived.wait()
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return chunks, "cancelled"
    return chunks, "not cancelled"


def parts_of_a_body() -> Iterator[bytes]:
    yield b'{"made":'
    yield b' "while sent"}'


def generated(library: ModuleType, url: str) -> Any:
    with library.Client() as client:
        response = client.post(url, content=parts_of_a_body())
        return seen(response), response.json()


async def generated_async(library: ModuleType, url: str) -> Any:
    async def parts() -> Any:
        for part in parts_of_a_body():
            yield part

    async with library.AsyncClient() as client:
        response = await client.post(url, content=parts())
        return seen(response), response.json()


def file_sent(library: ModuleType, url: str) -> Any:
    with library.Client() as client:
        response = client.post(url, files={"upload": ("a.txt", b"hello", "text/plain")})
        return seen(response), response.json()


async def file_sent_async(library: ModuleType, url: str) -> Any:
    async with library.AsyncClient() as client:
        response = await client.post(url, files={"upload": ("a.txt", b"hello", "text/plain")})
        return seen(response), response.json()


def forgotten(gate: Gate) -> list[Reply]:
    return [sse_reply([EVENTS[0], gate, *EVENTS[1:]])]


CASES = [
    Case("json", lambda: [json_reply({"a": 1})], plain, plain_async, ["complete"]),
    Case("gzip", lambda: [json_reply({"a": "b" * 500}, gzip=True)], plain, plain_async, ["complete"]),
    Case(
        "not found",
        lambda: [json_reply({"error": "none"}, 404, {"x-request-id": "r1"})],
        plain,
        plain_async,
        ["complete"],
    ),
    Case("empty", lambda: [Reply((), 200)], streamed, streamed_async, ["complete"]),
    Case("stream", lambda: [sse_reply(EVENTS)], streamed, streamed_async, ["complete"]),
    Case(
        "stream of gzip", lambda: [sse_reply(EVENTS, gzip=True)], streamed, streamed_async, ["complete"]
    ),
    Case(
        "until close",
        lambda: [sse_reply(EVENTS, framing="close")],
        streamed,
        streamed_async,
        ["complete"],
    ),
    Case("truncated", lambda: [sse_reply(EVENTS, truncate_at=15)], streamed, streamed_async, ["error"]),
    Case("hang up", lambda: [hang_up()], refused, refused_async, ["error"]),
    Case("reset", lambda: [hang_up(end="reset")], refused, refused_async, ["error"]),
    Case("timeout", lambda: [Reply(before=Gate())], late, late_async, ["error"]),
    Case(
        "redirect",
        lambda: [
            Reply((), 302, [("location", "/new"), ("set-cookie", "theme=dark; Path=/")]),
            json_reply({"there": True}),
        ],
        redirected,
        redirected_async,
        ["complete", "complete"],
    ),
    Case("dropped", lambda: forgotten(Gate()), dropped, dropped_async, ["abandoned"]),
    Case("closed", lambda: forgotten(Gate()), closed, closed_async, ["abandoned"]),
    Case("held", lambda: forgotten(Gate()), held, held_async, ["abandoned"]),
    Case("generated body", lambda: [json_reply({"ok": 1})], generated, generated_async, ["complete"]),
    Case("multipart body", lambda: [json_reply({"ok": 1})], file_sent, file_sent_async, ["complete"]),
]

CANCELLED = Case("cancelled", lambda: forgotten(Gate()), closed, cancelled_async, ["error"])
