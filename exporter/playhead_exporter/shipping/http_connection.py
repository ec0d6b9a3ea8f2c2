"""A connection that carries one HTTP/1.1 request at a time.

`http.client` is not used: importing it slows down the start of every agent, it parses headers slowly,
and playhead patches it.
"""

from __future__ import annotations

import _socket
import socket
import ssl
from collections.abc import Mapping
from urllib.parse import urlsplit

import msgspec

from playhead_core.process import interpreter_sockets
from playhead_core.process.own_descriptors import Identity, identity

LONGEST_ANSWER_BYTES = 1 << 20
LONGEST_HEAD_BYTES = 1 << 16
"""Of the head of an answer, and of a line within it."""
_NO_DELAY = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
_WITHOUT_BODY = (204, 304)


class NotHttp(OSError):
    """The answer is not valid HTTP/1."""


class HttpAnswer(msgspec.Struct, frozen=True):
    """An answer. Names of headers are in lower case; the body may be cut off."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    """At most `LONGEST_ANSWER_BYTES`."""


class HttpConnection:
    """A connection to the server of one URL, opened when needed. For one thread at a time."""

    def __init__(self, url: str, trust: ssl.SSLContext | None) -> None:
        """``trust``: for ``https``; None: the connection is not encrypted. Opens nothing yet."""
        parts = urlsplit(url)
        self._host = parts.hostname or ""
        self._trust = trust
        default = 80 if trust is None else 443
        self._port = parts.port or default
        name = self._host if self._host.isascii() else self._host.encode("idna").decode()
        name = f"[{name}]" if ":" in name else name
        self._named = name if self._port == default else f"{name}:{self._port}"
        self._socket: socket.socket | None = None
        self._file: Identity = None
        """Identity of the opened socket: the program may close its number and use it again."""
        self._read = bytearray()
        """Received bytes that are not parsed yet."""

    def ask(
        self,
        method: str,
        path: str,
        headers: Mapping[str, str],
        body: bytes | None,
        connect_s: float,
        timeout_s: float,
    ) -> HttpAnswer:
        """Return the answer to a request. OSError; the connection is closed then. ValueError: a header.

        ``connect_s``: to open the connection. ``timeout_s``: for each read and write.
        """
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._named}", "Accept-Encoding: identity"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        if body is not None:
            lines.append(f"Content-Length: {len(body)}")
        head = "\r\n".join((*lines, "", "")).encode("latin-1")
        if head.count(b"\n") > len(lines) + 1 or head.count(b"\r") > len(lines) + 1:
            raise ValueError("a header has more than one line")
        try:
            connection = self._connected(connect_s)
            connection.settimeout(timeout_s)
            connection.sendall(head + body if body else head)
            answer, goes_on = self._answer(connection)
        except BaseException:
            self.close()
            raise
        if not goes_on:
            self.close()
        return answer

    def close(self) -> None:
        """Close the connection, unless the program has closed its number. Idempotent."""
        connection, self._socket = self._socket, None
        self._read.clear()
        if connection is not None:
            interpreter_sockets.detach_lost(connection, self._file)
            connection.close()

    def _connected(self, connect_s: float) -> socket.socket:
        connection = self._socket
        if connection is not None and not self._read:
            if interpreter_sockets.is_own(connection, self._file):
                if interpreter_sockets.is_open(connection):
                    return connection
        self.close()
        opened = interpreter_sockets.connect((self._host, self._port), connect_s, _NO_DELAY)
        self._socket, self._file = opened, identity(opened.fileno())
        if self._trust is not None:
            self._socket = self._trust.wrap_socket(opened, server_hostname=self._host)
        return self._socket

    def _answer(self, connection: _socket.socket) -> tuple[HttpAnswer, bool]:
        """Read an answer; also returns whether another request may follow."""
        version, status, headers = self._head(connection)
        while status < 200:  # interim answers
            version, status, headers = self._head(connection)
        options = headers.get("connection", "").lower()
        goes_on = "close" not in options and (version > "HTTP/1.0" or "keep-alive" in options)
        if status in _WITHOUT_BODY:
            body, whole = b"", True
        elif "chunked" in headers.get("transfer-encoding", "").lower():
            body, whole = self._chunks(connection)
        elif "content-length" in headers:
            size = _number(headers["content-length"], 10)
            body = self._exactly(connection, min(size, LONGEST_ANSWER_BYTES))
            whole = size == len(body)
        else:
            body, whole = self._rest(connection), False
        return HttpAnswer(status, headers, body), goes_on and whole

    def _head(self, connection: _socket.socket) -> tuple[str, int, dict[str, str]]:
        """Read version, status and headers."""
        version, _, rest = self._line(connection).decode("latin-1").partition(" ")
        if not version.startswith("HTTP/1."):
            raise NotHttp(f"this is not an answer of HTTP/1: {version[:40]!r}")
        return version, _number(rest[:3], 10), self._headers(connection)

    def _headers(self, connection: _socket.socket) -> dict[str, str]:
        headers: dict[str, str] = {}
        size = 0
        while line := self._line(connection):
            size += len(line)
            if size > LONGEST_HEAD_BYTES:
                raise NotHttp("the head of the answer is too long")
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        return headers

    def _chunks(self, connection: _socket.socket) -> tuple[bytes, bool]:
        """Read a body that comes in chunks; also returns whether it is whole."""
        body = b""
        while size := _number(self._line(connection).partition(b";")[0].decode("latin-1"), 16):
            if len(body) + size > LONGEST_ANSWER_BYTES:
                return body, False
            body += self._exactly(connection, size)
            self._line(connection)
        self._headers(connection)
        return body, True

    def _rest(self, connection: _socket.socket) -> bytes:
        """Read up to the end of the connection."""
        while len(self._read) < LONGEST_ANSWER_BYTES and self._more(connection):
            pass
        return bytes(self._read[:LONGEST_ANSWER_BYTES])

    def _exactly(self, connection: _socket.socket, size: int) -> bytes:
        while len(self._read) < size:
            if not self._more(connection):
                raise NotHttp(f"the answer ended after {len(self._read)} of {size} bytes")
        found = bytes(self._read[:size])
        del self._read[:size]
        return found

    def _line(self, connection: _socket.socket) -> bytes:
        """Read a line; returns it without its end."""
        while (end := self._read.find(b"\n")) < 0:
            if len(self._read) > LONGEST_HEAD_BYTES:
                raise NotHttp("a line of the answer is too long")
            if not self._more(connection):
                raise NotHttp("the connection was closed without an answer")
        found = bytes(self._read[:end])
        del self._read[: end + 1]
        return found.removesuffix(b"\r")

    def _more(self, connection: _socket.socket) -> bool:
        """Wait for further bytes; False at the end of the connection."""
        data = connection.recv(LONGEST_HEAD_BYTES)
        self._read += data
        return bool(data)


def _number(text: str, base: int) -> int:
    """Return a number of at least 0."""
    try:
        number = int(text, base)
    except ValueError:
        number = -1
    if number < 0:
        raise NotHttp(f"a number is expected, not {text[:40]!r}")
    return number
