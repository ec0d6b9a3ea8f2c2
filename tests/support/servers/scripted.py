"""A scripted HTTP server on loopback that behaves, and misbehaves, to the byte.

::

    with ScriptedServer() as server:
        server.script([json_reply(openai_chat.completion("hi"))])
        client = openai.OpenAI(base_url=server.openai_url, api_key="test")

Replies are given in order (`script`), or by path or predicate (`on`). An unexpected request is answered
with 599 and fails the ``with`` block. The server's threads are named like those of playhead, so that
they do not count as part of the program that is recorded in the same process. There are no delays: a
reply that waits, waits at a `Gate` that the test opens. Every request is kept, in order of arrival, in
`requests`.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Literal

from playhead_cli.demo.shapes import (
    anthropic_messages,
    failures,
    openai_chat,
    openai_embeddings,
    openai_responses,
    sse,
)

__all__ = [
    "Gate",
    "Reply",
    "Request",
    "ScriptedServer",
    "anthropic_error",
    "anthropic_messages",
    "anthropic_sse",
    "chat_sse",
    "hang_up",
    "json_reply",
    "openai_chat",
    "openai_embeddings",
    "openai_error",
    "openai_responses",
    "raw_reply",
    "responses_sse",
    "sse",
    "sse_reply",
]

PATIENCE_S = 60.0
"""Seconds that a gate holds or a wait lasts before the test counts as broken."""


class Gate:
    """A point in a reply at which the server waits. Put it among `Reply.parts`, or in `Reply.before`."""

    def __init__(self) -> None:
        self._reached = threading.Event()
        self._open = threading.Event()

    def open(self) -> None:
        """Let the server continue. A gate stays open."""
        self._open.set()

    def wait_reached(self, timeout_s: float = PATIENCE_S) -> None:
        """Wait until the server is at this gate: all parts before it are sent."""
        assert self._reached.wait(timeout_s), "the server never reached the gate"

    def hold(self, closing: threading.Event) -> bool:
        """Server side: wait here. False if the server closes instead."""
        self._reached.set()
        for _ in range(int(PATIENCE_S / 0.02)):
            if self._open.wait(0.02):
                return True
            if closing.is_set():
                return False
        return False


@dataclass(frozen=True)
class Request:
    """One request as it arrived."""

    method: str
    path: str
    """Path and query, as sent."""
    headers: dict[str, str]
    """By lower-case name; the last one of repeated headers."""
    body: bytes
    connection: int
    """Number of the TCP connection, counted from 0."""

    @property
    def json(self) -> Any:
        """The body, decoded."""
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    """One answer.

    Each bytes part is one write and, chunked, one HTTP chunk. ``framing``: ``length``, ``chunked``, or
    ``close`` (the body ends with the connection). ``truncate_at``: stop after that many bytes of body
    (as encoded) and close, though more was announced. ``end``: ``keep`` the connection, ``close`` it,
    or ``reset`` it (RST) after the last byte. ``raw``: send these bytes instead of a head and framing.
    """

    parts: Sequence[bytes | Gate] = ()
    status: int = 200
    headers: Sequence[tuple[str, str]] = ()
    framing: Literal["length", "chunked", "close"] = "length"
    before: Gate | None = None
    gzip: bool = False
    truncate_at: int | None = None
    end: Literal["keep", "close", "reset"] = "keep"
    raw: bytes | None = None

    def but(self, **changes: Any) -> Reply:
        """The same reply with some fields changed."""
        return replace(self, **changes)


def json_reply(
    body: Any, status: int = 200, headers: Mapping[str, str] | None = None, **fields: Any
) -> Reply:
    """A JSON body in one part."""
    head = [("content-type", "application/json"), *(headers or {}).items()]
    return Reply([sse.encode(body)], status, head, **fields)


def sse_reply(
    parts: Iterable[bytes | Gate], headers: Mapping[str, str] | None = None, **fields: Any
) -> Reply:
    """A stream of server-sent events, one HTTP chunk per part."""
    head = [("content-type", "text/event-stream; charset=utf-8"), *(headers or {}).items()]
    return Reply(list(parts), 200, head, **{"framing": "chunked", **fields})


def chat_sse(whole: dict[str, Any], *, include_usage: bool = True, **fields: Any) -> Reply:
    """A chat completion as a stream."""
    return sse_reply(sse.chat(openai_chat.chunks(whole, include_usage=include_usage)), **fields)


def responses_sse(whole: dict[str, Any], **fields: Any) -> Reply:
    """A response as a stream."""
    return sse_reply(sse.events(openai_responses.events(whole)), **fields)


def anthropic_sse(whole: dict[str, Any], **fields: Any) -> Reply:
    """A message as a stream."""
    return sse_reply(sse.events(anthropic_messages.events(whole)), **fields)


def openai_error(status: int, headers: Mapping[str, str] | None = None, *, message: str = "") -> Reply:
    """An OpenAI error; a 429 asks for an immediate retry unless ``headers`` say otherwise."""
    given = {"retry-after-ms": "1"} if status == 429 and headers is None else headers
    return json_reply(failures.openai(status, message=message), status, given)


def anthropic_error(
    status: int, headers: Mapping[str, str] | None = None, *, message: str = ""
) -> Reply:
    """An Anthropic error; 429 and 529 ask for an immediate retry unless ``headers`` say otherwise."""
    given = {"retry-after-ms": "1"} if status in (429, 529) and headers is None else headers
    return json_reply(failures.anthropic(status, message=message), status, given)


def raw_reply(data: bytes, *, end: Literal["close", "reset"] = "close") -> Reply:
    """Only these bytes: garbage, half a head, a wrong length."""
    return Reply(raw=data, end=end)


def hang_up(*, end: Literal["close", "reset"] = "close") -> Reply:
    """Close the connection without a byte."""
    return raw_reply(b"", end=end)


Answer = Reply | Callable[[Request], Reply]
Match = str | Callable[[Request], bool]


@dataclass
class _Rule:
    match: Match
    answers: list[Answer]
    repeat: bool
    used: int = 0

    def take(self, request: Request) -> Answer | None:
        if isinstance(self.match, str):
            fits = request.path.split("?")[0] == self.match
        else:
            fits = self.match(request)
        if not fits:
            return None
        if self.used < len(self.answers):
            self.used += 1
            return self.answers[self.used - 1]
        return self.answers[-1] if self.repeat else None


@dataclass
class ScriptedServer:
    """The server: one thread accepts, one serves each connection. Leaving the block closes it."""

    requests: list[Request] = field(default_factory=list[Request])
    unscripted: list[Request] = field(default_factory=list[Request])

    def __post_init__(self) -> None:
        self._rules: list[_Rule] = []
        self._changed = threading.Condition()
        self._closing = threading.Event()
        self._open: set[socket.socket] = set()
        self._connections = 0
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, name="playhead-scripted", daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``; the base URL for the Anthropic SDK."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def openai_url(self) -> str:
        """The base URL for the OpenAI SDK."""
        return f"{self.url}/v1"

    @property
    def connections(self) -> int:
        """Number of accepted TCP connections."""
        return self._connections

    def script(self, answers: Iterable[Answer], *, repeat: bool = False) -> None:
        """Answer the next requests in order, whatever their path; ``repeat``: repeat the last answer."""
        self.on(lambda _: True, *answers, repeat=repeat)

    def on(self, match: Match, *answers: Answer, repeat: bool = False) -> None:
        """Answer requests with that path (without query), or for which ``match`` is true, in order.

        An answer is a `Reply` or a function of the `Request`. Rules are tried in the order given.
        """
        with self._changed:
            self._rules.append(_Rule(match, list(answers), repeat))

    def wait_requests(self, count: int, timeout_s: float = PATIENCE_S) -> list[Request]:
        """Wait until ``count`` requests have arrived. Returns all of them."""
        with self._changed:
            arrived = self._changed.wait_for(lambda: len(self.requests) >= count, timeout_s)
            assert arrived, f"{len(self.requests)} requests came, not {count}"
            return list(self.requests)

    def close(self) -> None:
        """Stop: new connections are refused, open ones are cut. Idempotent."""
        if self._closing.is_set():
            return
        self._closing.set()
        try:
            self._listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._listener.close()
        with self._changed:
            still_open = list(self._open)
        for connection in still_open:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._thread.join(PATIENCE_S)

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.close()
        if kind is None and self.unscripted:
            lines = ", ".join(f"{one.method} {one.path}" for one in self.unscripted)
            raise AssertionError(f"requests that no script answers: {lines}")

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            with self._changed:
                number = self._connections
                self._connections += 1
                self._open.add(connection)
            threading.Thread(
                target=self._serve,
                args=(connection, number),
                name=f"playhead-scripted-{number}",
                daemon=True,
            ).start()

    def _serve(self, connection: socket.socket, number: int) -> None:
        try:
            with connection.makefile("rb") as stream:
                while (request := _read(stream, number)) is not None:
                    if not _send(connection, request, self._answer(request), self._closing):
                        break
        except (OSError, ValueError):
            pass
        finally:
            with self._changed:
                self._open.discard(connection)
            connection.close()

    def _answer(self, request: Request) -> Reply:
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            for rule in self._rules:
                if (answer := rule.take(request)) is not None:
                    break
            else:
                self.unscripted.append(request)
                answer = Reply([b"no script answers this"], 599, [("x-should-retry", "false")])
        return answer if isinstance(answer, Reply) else answer(request)


def _read(stream: Any, number: int) -> Request | None:
    """The next request; None if its client did not send it completely, such as one that was killed."""
    line = stream.readline().decode("latin-1").split()
    if len(line) != 3:
        return None
    headers: dict[str, str] = {}
    while (raw := stream.readline().decode("latin-1")).strip():
        name, _, value = raw.partition(":")
        headers[name.strip().lower()] = value.strip()
    if not raw:
        return None
    if "chunked" in headers.get("transfer-encoding", ""):
        body = b""
        while (size := int(stream.readline().split(b";")[0], 16)) > 0:
            body += stream.read(size)
            stream.readline()
        stream.readline()
    else:
        size = int(headers.get("content-length", 0))
        body = stream.read(size)
        if len(body) < size:
            return None
    return Request(line[0], line[1], headers, body, number)


def _send(connection: socket.socket, request: Request, reply: Reply, closing: threading.Event) -> bool:
    """Write one reply. Returns whether the connection stays open."""
    if reply.before is not None and not reply.before.hold(closing):
        return False
    if reply.raw is not None:
        connection.sendall(reply.raw)
        return _end(connection, reply)
    parts = _encoded(reply)
    connection.sendall(_head(reply, parts, request))
    left = reply.truncate_at
    for part in parts if request.method != "HEAD" else ():
        if isinstance(part, Gate):
            if not part.hold(closing):
                return False
            continue
        piece = part if left is None else part[:left]
        if piece:
            chunked = reply.framing == "chunked"
            connection.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece)
        if left is not None and (left := left - len(piece)) == 0:
            _end(connection, reply)
            return False
    if reply.framing == "chunked":
        connection.sendall(b"0\r\n\r\n")
    return _end(connection, reply)


def _end(connection: socket.socket, reply: Reply) -> bool:
    if reply.end == "reset":
        _reset(connection)
    return reply.end == "keep" and reply.framing != "close" and reply.raw is None


def _reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def _encoded(reply: Reply) -> list[bytes | Gate]:
    if not reply.gzip:
        return list(reply.parts)
    packer = zlib.compressobj(wbits=31)
    packed: list[bytes | Gate] = []
    for part in reply.parts:
        if isinstance(part, Gate):
            packed.append(part)
        else:
            packed.append(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH))
    packed.append(packer.flush())
    return packed


def _head(reply: Reply, parts: list[bytes | Gate], request: Request) -> bytes:
    try:
        phrase = HTTPStatus(reply.status).phrase
    except ValueError:
        phrase = "Scripted"
    lines = [f"HTTP/1.1 {reply.status} {phrase}", f"date: {formatdate(1_700_000_000, usegmt=True)}"]
    lines += [f"{name}: {value}" for name, value in reply.headers]
    if reply.gzip:
        lines.append("content-encoding: gzip")
    if reply.framing == "length":
        size = sum(len(part) for part in parts if isinstance(part, bytes))
        lines.append(f"content-length: {size}")
    elif reply.framing == "chunked":
        lines.append("transfer-encoding: chunked")
    if reply.framing == "close" or reply.end != "keep":
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")
