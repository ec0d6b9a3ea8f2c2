"""OTLP over HTTP with protobuf.

The connection is one of the standard library: a package for it would log into the program's logs, and
would have imported parts of the modules that gevent replaces when the program begins.
"""

from __future__ import annotations

import _socket
import email.utils
import gzip
import socket
import ssl
import time
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection, IncompleteRead
from typing import Any
from urllib.parse import urlsplit

from playhead_core.facts import digest_of
from playhead_core.process import interpreter_sockets
from playhead_core.process.own_descriptors import Identity, identity
from playhead_exporter.delivery import Endpoint, Signal, Trust
from playhead_exporter.shipping.endpoint_answers import (
    OTHER_TOKEN,
    About,
    Answer,
    Declined,
    TryLater,
    Unwelcome,
    accepted,
    read_about,
)

PROTOBUF = "application/x-protobuf"
DESTINATION = "Playhead-Destination"
"""Header with the digest of the destination: another receiver at the address answers 421."""
RETRYABLE = frozenset((421, 429, 502, 503, 504))
BAD_DATA = frozenset((400, 413, 415, 422))
COMPRESS_LEVEL = 1
CONNECT_TIMEOUT_S = 2.0
LONGEST_ANSWER_BYTES = 1 << 20


_GZIP = {"Content-Encoding": "gzip"}


class HttpTransport:
    """One connection to one endpoint. One thread at a time."""

    def __init__(
        self,
        endpoint: Endpoint,
        token: str,
        trust: Trust = Trust(),  # noqa: B008, frozen
        headers: Mapping[str, str] | None = None,
        destination: str = "",
    ) -> None:
        """Opens no connection yet. ``destination``: what the receiver must be; empty: any."""
        self._endpoint = endpoint
        self._headers = {"Content-Type": PROTOBUF, "User-Agent": "playhead"}
        self._headers.update(headers or {})
        if destination:
            self._headers[DESTINATION] = digest_of(destination.encode()).hex()
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._trust = trust
        self._connection: HTTPConnection | None = None
        self._file: Identity = None
        """The socket of the connection, as it was opened."""

    def send(
        self, signal: Signal, request: bytes, timeout_s: float, *, compressed: bool = False
    ) -> Answer:
        """POST one request; returns the endpoint's answer."""
        url, sent = self._endpoint.url(signal), self._headers
        if not compressed:
            request, sent = gzip.compress(request, COMPRESS_LEVEL, mtime=0), sent | _GZIP
        try:
            status, headers, answer = self._ask("POST", url, timeout_s, sent, request)
        except (HTTPException, OSError) as problem:
            return TryLater(f"{self._endpoint.base}: {_plain(problem)}")
        if 200 <= status < 300:
            return accepted(answer)
        reason = f"{self._endpoint.base} answered {status} at {_path(url)}{_message(headers, answer)}"
        if status in RETRYABLE:
            return TryLater(reason, retry_after_s(headers.get("retry-after")))
        if status in BAD_DATA:
            return Declined(reason, too_large=status == 413)
        if status in (404, 405):
            return Unwelcome(reason, "PLAYHEAD_ENDPOINT is the base address of an OTLP endpoint", True)
        if status in (401, 403):
            return Unwelcome(reason, OTHER_TOKEN)
        return Unwelcome(reason)

    def about(self, timeout_s: float) -> About | TryLater:
        """GET /v1/playhead."""
        url = f"{self._endpoint.base}/v1/playhead"
        headers = {k: v for k, v in self._headers.items() if k in ("Authorization", "User-Agent")}
        try:
            status, answer_headers, answer = self._ask("GET", url, timeout_s, headers)
        except (HTTPException, OSError) as problem:
            return TryLater(f"{self._endpoint.base}: {_plain(problem)}")
        if status in RETRYABLE:
            after_s = retry_after_s(answer_headers.get("retry-after"))
            return TryLater(f"{self._endpoint.base} answered {status} at /v1/playhead", after_s)
        return read_about(answer) if status == 200 else About(False)

    def close(self) -> None:
        """Close the connection, unless the program has closed its number."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if isinstance(connection.sock, _socket.socket):
                interpreter_sockets.detach_lost(connection.sock, self._file)
            connection.close()

    def _ask(
        self, method: str, url: str, timeout_s: float, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Status, headers and body of an answer. ``timeout_s``: for each read and write."""
        try:
            connection = self._connected(min(CONNECT_TIMEOUT_S, timeout_s))
            connection.sock.settimeout(timeout_s)
            connection.request(method, _path(url), body, headers)
            answer = connection.getresponse()
            data = answer.read(LONGEST_ANSWER_BYTES)
            if answer.length and len(data) < LONGEST_ANSWER_BYTES:
                raise IncompleteRead(data, answer.length)
        except BaseException:
            self.close()
            raise
        if not answer.isclosed():
            self.close()  # the rest of the answer is not read
        return answer.status, dict(answer.headers.items()), data

    def _connected(self, timeout_s: float) -> HTTPConnection:
        """The connection, or a new one if it is closed."""
        connection = self._connection
        if connection is not None and self._is_connected(connection.sock):
            return connection
        self.close()
        self._connection = connection = self._new_connection(timeout_s)
        connection.connect()
        return connection

    def _is_connected(self, sock: Any) -> bool:
        return (
            isinstance(sock, _socket.socket)
            and interpreter_sockets.is_own(sock, self._file)
            and interpreter_sockets.is_open(sock)
        )

    def _new_connection(self, timeout_s: float) -> HTTPConnection:
        """A connection over a socket of the interpreter, whatever the program has patched."""
        base, trust = urlsplit(self._endpoint.base), self._trust
        if self._endpoint.secure:
            context = ssl.create_default_context(cafile=trust.ca or None)
            if trust.certificate:
                context.load_cert_chain(trust.certificate, trust.key or None)
            made: Any = HTTPSConnection(
                base.hostname or "", base.port, timeout=timeout_s, context=context
            )
        else:
            made = HTTPConnection(base.hostname or "", base.port, timeout=timeout_s)

        def connect(address: tuple[str, int], timeout_s: float, _: None) -> socket.socket:
            opened = interpreter_sockets.connect(address, timeout_s)
            self._file = identity(opened.fileno())
            return opened

        made._create_connection = connect
        return made


def retry_after_s(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for; it holds seconds or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        then = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    return max(0.0, then.timestamp() - time.time())


def _message(headers: Mapping[str, str], answer: bytes) -> str:
    """Return the error message in the body: `google.rpc.Status` or text."""
    kind = headers.get("content-type", "").partition(";")[0]
    text = ""
    if kind == PROTOBUF:
        from google.protobuf.message import DecodeError  # expensive, rarely needed
        from google.rpc.status_pb2 import Status

        try:
            text = Status.FromString(answer).message
        except DecodeError:
            return ""
    elif kind.startswith("text/") or kind == "application/json":
        text = answer[:200].decode("utf-8", "replace")
    return f": {text.strip()}" if text.strip() else ""


def _path(url: str) -> str:
    return "/" + url.split("/", 3)[3]


def _plain(problem: Exception) -> str:
    """Return the message of an exception."""
    return str(problem) or repr(problem)
