"""Programs that use aiohttp's client, and what they observe."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver
from support.observed.blocking_programs import REFUSED, answers, empties, events, long, moved, not_tls
from support.observed.http_programs import EVENTS, failure
from support.servers.scripted import Gate, Reply, hang_up, json_reply, raw_reply, sse_reply

LATE_S = 0.1
"""How long something is awaited that does not come."""


@dataclass(frozen=True)
class Case:
    """A program, the server's answers, and how its exchanges end."""

    name: str
    script: Callable[[], list[Reply]]
    program: Callable[[str], Awaitable[Any]]
    ends: list[str]

    def run(self, url: str) -> Any:
        return asyncio.run(self.program(url))  # type: ignore[arg-type]


async def plain(url: str) -> Any:
    async with (
        aiohttp.ClientSession() as client,
        client.post(f"{url}/a?q=1", json={"question": "what"}) as answer,
    ):
        seen = answer.status, answer.reason, answer.version, list(answer.headers.items())
        return seen, await answer.read(), await answer.json()


async def compressed(url: str) -> Any:
    async with aiohttp.ClientSession(auto_decompress=False) as client, client.get(url) as answer:
        return await answer.read()


async def any_pieces(url: str, read_s: float | None = None) -> Any:
    """``read_s``: how long a piece is awaited, behind the first."""
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        found: list[bytes] = []
        try:
            async for piece in answer.content.iter_any():
                found.append(piece)
                if read_s is not None and answer.connection is not None:
                    answer.connection.protocol.read_timeout = read_s
                    answer.connection.protocol.start_timeout()
        except aiohttp.ClientError as error:
            return b"".join(found), failure(error)
        return b"".join(found)


async def late_pieces(url: str) -> Any:
    return await any_pieces(url, LATE_S)


async def chunks(url: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        # Whether the end of a chunk is delivered with it or separately depends on the socket.
        return [data async for data, _ in answer.content.iter_chunks() if data]


async def sized(url: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return b"".join([piece async for piece in answer.content.iter_chunked(7)])


async def lines(url: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return [line async for line in answer.content]


async def failing(url: str, read_s: float | None = None) -> Any:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(sock_read=read_s)) as client:
        try:
            async with client.get(url) as answer:
                return await answer.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            return failure(error)


async def late(url: str) -> Any:
    return await failing(url, LATE_S)


async def refused(_: str) -> Any:
    return [await failing(REFUSED), await failing("http://no-such-host.invalid/")]


async def untrusted(_: str) -> Any:
    return await failing(not_tls())


async def in_time(url: str) -> Any:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=0.1)) as client:
        try:
            async with client.get(url) as answer:
                return await answer.read()
        except TimeoutError as error:
            return failure(error)


async def proxied(url: str) -> Any:
    async with (
        aiohttp.ClientSession() as client,
        client.get("http://example.test/a", proxy=url) as answer,
    ):
        return await answer.read()


async def proxy_gone(_: str) -> Any:
    async with aiohttp.ClientSession() as client:
        try:
            await client.get("https://example.test/a", proxy=REFUSED)
        except aiohttp.ClientError as error:
            return failure(error)
    return None


async def tunnel_refused(url: str) -> Any:
    async with aiohttp.ClientSession() as client:
        try:
            await client.get("https://example.test/a", proxy=url)
        except aiohttp.ClientError as error:
            return failure(error)
    return None


async def redirected(url: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(f"{url}/old") as answer:
        return str(answer.url), [one.status for one in answer.history], await answer.json()


async def reused(url: str) -> Any:
    found: list[Any] = []
    async with aiohttp.ClientSession() as client:
        for n in range(3):
            async with client.get(f"{url}/{n}") as answer:
                found.append(await answer.json())
    return found


async def nothing(url: str) -> Any:
    found: list[Any] = []
    async with aiohttp.ClientSession() as client:
        for method in ("HEAD", "GET", "GET"):
            async with client.request(method, url) as answer:
                found.append((answer.status, await answer.read()))
    return found


async def parts_of_a_body() -> AsyncIterator[bytes]:
    yield b'{"made":'
    yield b' "while sent"}'


async def generated(url: str) -> Any:
    form = aiohttp.FormData()
    form.add_field("upload", b"hello", filename="a.txt")
    found: list[Any] = []
    async with aiohttp.ClientSession() as client:
        for body in (parts_of_a_body(), io.BytesIO(b"from a file"), form, {"k": "v"}, "text"):
            async with client.post(url, data=body) as answer:
                found.append(await answer.json())
    return found


async def closed(url: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return await anext(answer.content.iter_any())


async def cancelled(url: str) -> Any:
    found: list[bytes] = []
    arrived = asyncio.Event()

    async def read() -> None:
        async with aiohttp.ClientSession() as client, client.get(url) as answer:
            async for piece in answer.content.iter_any():
                found.append(piece)
                arrived.set()

    task = asyncio.create_task(read())
    await arrived.wait()
    await asyncio.sleep(0)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return found, "cancelled"
    return found, "not cancelled"


async def cancelled_early(url: str) -> Any:
    async with aiohttp.ClientSession() as client:
        try:
            await asyncio.wait_for(client.get(url), 0.1)
        except TimeoutError as error:
            return failure(error)
    return None


async def statuses(url: str) -> Any:
    found: list[Any] = []
    async with aiohttp.ClientSession() as client:
        async with client.get(url) as answer:
            found.append(answer.status)
        answer = await client.get(url)
        answer.release()
        found.append(answer.status)
        answer = await client.get(url)
        answer.close()
        async with client.head(url) as answer:
            found.append(answer.status)
        try:
            async with client.get(url, raise_for_status=True):
                pass
        except aiohttp.ClientResponseError as error:
            found.append(error.status)
        async with client.get(f"{url}/moved") as answer:
            found.append((answer.history[0].status, await answer.read()))
    return found


async def first_piece(url: str) -> Any:
    async with aiohttp.ClientSession() as client, client.get(url) as answer:
        return bool(await answer.content.readany())


class _NoAnswer(AbstractResolver):
    """A resolver that never answers."""

    async def resolve(self, host: str, port: int = 0, family: Any = 0) -> Any:
        await asyncio.Event().wait()

    async def close(self) -> None:
        pass


def limited(**limits: float) -> Callable[[str], Awaitable[Any]]:
    """A request with these timeouts; one for the connection meets a resolver that never answers."""

    async def program(url: str) -> Any:
        connector = aiohttp.TCPConnector(resolver=_NoAnswer(), use_dns_cache=False)
        timeout = aiohttp.ClientTimeout(**limits)
        async with aiohttp.ClientSession(timeout=timeout, connector=connector) as client:
            try:
                async with client.get("http://example.test" if "connect" in limits else url) as answer:
                    return await answer.read()
            except TimeoutError as error:
                return failure(error)

    return program


async def timed_out(url: str) -> Any:
    async with aiohttp.ClientSession() as client:
        try:
            async with asyncio.timeout(LATE_S):
                await client.get(url)
        except TimeoutError as error:
            return failure(error)


async def traced(url: str) -> Any:
    """Two requests, and one that fails; each event of the connection, and what a callback keeps."""
    events: list[Any] = []
    config = aiohttp.TraceConfig()
    for name in [name for name in dir(config) if name.startswith("on_")]:

        async def note(_: Any, context: Any, parameters: Any, name: str = name) -> None:
            context.began = getattr(context, "began", None) or asyncio.get_running_loop().time()
            events.append((name, getattr(parameters, "host", None)))

        getattr(config, name).append(note)
    async with aiohttp.ClientSession(trace_configs=[config]) as client:
        for _ in range(2):
            async with client.post(url, json={"q": 1}) as answer:
                connection = answer.connection
                peer = (
                    connection
                    and connection.transport
                    and connection.transport.get_extra_info("peername")
                )
                events.append((peer and peer[0], await answer.read()))
        for broken in (REFUSED, "http://no-such-host.invalid/"):
            try:
                await client.get(broken)
            except aiohttp.ClientError as error:
                events.append(failure(error))
    return events


def in_one_write(status: str, body: bytes = b'{"a": 1}', header: str = "x-a: b") -> Reply:
    head = f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{header}\r\n\r\n"
    return Reply(raw=head.encode() + body)


def unread() -> list[Reply]:
    moved = in_one_write("307 Temporary Redirect", header="location: /")
    empty = in_one_write("200 OK", b"")
    return [
        *[in_one_write("200 OK")] * 3,
        empty,
        in_one_write("503 Late"),
        moved,
        in_one_write("200 OK"),
    ]


LEVEL_CASES = [
    Case("unread", unread, statuses, ["complete"] * 7),
    Case("unread, large", lambda: [Reply([b"x" * 1_000_000])], first_piece, ["abandoned"]),
    Case("first piece", lambda: [sse_reply([b"a" * 9, b"b" * 9, Gate()])], first_piece, ["abandoned"]),
    Case("total", lambda: [Reply(before=Gate())], in_time, ["error"]),
    Case("total, connecting", lambda: [], limited(total=LATE_S, connect=60), ["error"]),
    Case("connect", lambda: [], limited(connect=LATE_S), ["error"]),
    Case("read", lambda: [Reply(before=Gate())], late, ["error"]),
    Case("timeout around", lambda: [Reply(before=Gate())], timed_out, ["error"]),
    Case("wait_for", lambda: [Reply(before=Gate())], cancelled_early, ["error"]),
    Case("traces", lambda: [json_reply({})] * 2, traced, ["complete", "complete", "error", "error"]),
]
"""Programs whose replay depends on the level of the recording."""

CASES = [
    Case("json", answers(1), plain, ["complete"]),
    Case("gzip", lambda: [json_reply({"a": "b" * 500}, gzip=True)], plain, ["complete"]),
    Case("left packed", lambda: [json_reply({"a": "b" * 500}, gzip=True)], compressed, ["complete"]),
    Case("not found", lambda: [json_reply({"no": 1}, 404)], plain, ["complete"]),
    Case("stream", events, any_pieces, ["complete"]),
    Case("chunks", events, chunks, ["complete"]),
    Case("sized", events, sized, ["complete"]),
    Case("lines", lambda: [sse_reply(EVENTS, gzip=True)], lines, ["complete"]),
    Case("until close", lambda: [sse_reply(EVENTS, framing="close")], any_pieces, ["complete"]),
    Case("truncated", lambda: [sse_reply(EVENTS, truncate_at=15)], any_pieces, ["error"]),
    Case("truncated length", lambda: [json_reply({"a": "b" * 50}, truncate_at=9)], failing, ["error"]),
    Case("timeout within", lambda: long(Gate()), late_pieces, ["error"]),
    Case("hang up", lambda: [hang_up(), hang_up()], failing, ["error"] * 2),
    Case("reset", lambda: [hang_up(end="reset")] * 2, failing, ["error"] * 2),
    Case("not HTTP", lambda: [raw_reply(b"what is this\r\n\r\n")], failing, ["error"]),
    Case("timeout", lambda: [Reply(before=Gate())], late, ["error"]),
    Case("timeout of all", lambda: [Reply(before=Gate())], in_time, ["error"]),
    Case("refused, no name", lambda: [], refused, ["error"] * 2),
    Case("not TLS", lambda: [], untrusted, ["error"]),
    Case("proxy", answers(1), proxied, ["complete"]),
    Case("proxy gone", lambda: [], proxy_gone, ["error"]),
    Case("tunnel refused", lambda: [Reply((), 403)], tunnel_refused, ["error"]),
    Case("redirect", moved, redirected, ["complete"] * 2),
    Case("kept alive", answers(3), reused, ["complete"] * 3),
    Case("nothing in it", empties, nothing, ["complete"] * 3),
    Case("bodies", answers(5), generated, ["complete"] * 5),
    Case("closed", lambda: long(Gate()), closed, ["abandoned"]),
    Case("cancelled", lambda: long(Gate()), cancelled, ["error"]),
    Case("cancelled early", lambda: [Reply(before=Gate())], cancelled_early, ["error"]),
]
