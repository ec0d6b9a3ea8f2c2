"""OTLP over HTTP with protobuf."""

from __future__ import annotations

import _socket
import email.utils
import gzip
import socket
import time
from _queue import SimpleQueue
from collections.abc import Mapping
from typing import Any

import urllib3
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError

from playhead_exporter.shipping.endpoint import Endpoint, Signal
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
from playhead_exporter.shipping.trust import Trust
from playhead_semconv.facts import digest_of
from playhead_semconv.process import interpreter_sockets
from playhead_semconv.process.own_descriptors import Identity, identity

PROTOBUF = "application/x-protobuf"
DESTINATION = "Playhead-Destination"
"""Header with the digest of the destination: another receiver at the address answers 421."""
RETRYABLE = frozenset((421, 429, 502, 503, 504))
BAD_DATA = frozenset((400, 413, 415, 422))
COMPRESS_LEVEL = 1
CONNECT_TIMEOUT_S = 2.0
LONGEST_ANSWER_BYTES = 1 << 20


_GZIP = {"Content-Encoding": "gzip"}


class _Native:
    """What a connection does with the sockets of the interpreter, whatever the program has patched."""

    host: str
    port: int
    timeout: float
    sock: Any
    socket_options: Any
    _dns_host: str
    _file: Identity = None

    def _new_conn(self) -> socket.socket:
        """As urllib3 does it, and with its errors."""
        connection: Any = self
        try:
            made = interpreter_sockets.connect(
                (self._dns_host, self.port), self.timeout, self.socket_options or ()
            )
            self._file = identity(made.fileno())
            return made
        except _socket.gaierror as problem:
            raise NameResolutionError(self.host, connection, problem) from problem
        except TimeoutError as problem:
            raise ConnectTimeoutError(connection, f"timed out after {self.timeout} s") from problem
        except OSError as problem:
            raise NewConnectionError(connection, f"{problem}") from problem

    @property
    def is_connected(self) -> bool:
        """Whether the next request can be sent over it."""
        sock = self.sock
        return (
            isinstance(sock, _socket.socket)
            and interpreter_sockets.is_own(sock, self._file)
            and interpreter_sockets.is_open(sock)
        )

    def close(self) -> None:
        """Close the socket, unless the program has done so."""
        if isinstance(self.sock, _socket.socket):
            interpreter_sockets.detach_lost(self.sock, self._file)
        connection: Any = super()
        connection.close()


class _Connection(_Native, urllib3.HTTPConnectionPool.ConnectionCls):  # pyright: ignore
    pass


class _SecureConnection(_Native, urllib3.HTTPSConnectionPool.ConnectionCls):  # pyright: ignore
    pass


class _OneThread:
    """What a pool does that serves one thread: nothing of it waits."""

    @staticmethod
    def QueueCls(_: int) -> SimpleQueue[Any]:
        """The connections that nobody uses."""
        return SimpleQueue()


class _Pool(_OneThread, urllib3.HTTPConnectionPool):  # pyright: ignore
    """Opens real connections where a test double such as vcrpy has patched urllib3's pools."""

    ConnectionCls = _Connection


class _SecurePool(_OneThread, urllib3.HTTPSConnectionPool):  # pyright: ignore
    """As `_Pool`, over TLS."""

    ConnectionCls = _SecureConnection


class HttpTransport:
    """One connection pool to one endpoint. One thread at a time."""

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
        self._pool = urllib3.PoolManager(
            num_pools=2,
            maxsize=1,
            retries=False,
            ca_certs=trust.ca or None,
            cert_file=trust.certificate or None,
            key_file=trust.key or None,
        )
        pools: Any = {"http": _Pool, "https": _SecurePool}
        self._pool.pool_classes_by_scheme = pools

    def send(
        self, signal: Signal, request: bytes, timeout_s: float, *, compressed: bool = False
    ) -> Answer:
        """POST one request; returns the endpoint's answer."""
        url, sent = self._endpoint.url(signal), self._headers
        if not compressed:
            request, sent = gzip.compress(request, COMPRESS_LEVEL, mtime=0), sent | _GZIP
        try:
            status, headers, answer = self._ask("POST", url, timeout_s, sent, request)
        except (urllib3.exceptions.HTTPError, OSError) as problem:
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
        except (urllib3.exceptions.HTTPError, OSError) as problem:
            return TryLater(f"{self._endpoint.base}: {_plain(problem)}")
        if status in RETRYABLE:
            after_s = retry_after_s(answer_headers.get("retry-after"))
            return TryLater(f"{self._endpoint.base} answered {status} at /v1/playhead", after_s)
        return read_about(answer) if status == 200 else About(False)

    def close(self) -> None:
        """Close the connections."""
        self._pool.clear()

    def _ask(
        self, method: str, url: str, timeout_s: float, headers: dict[str, str], body: bytes | None = None
    ) -> tuple[int, Mapping[str, str], bytes]:
        timeout = urllib3.Timeout(connect=min(CONNECT_TIMEOUT_S, timeout_s), total=timeout_s)
        answer = self._pool.request(
            method,
            url,
            body=body,
            headers=headers,
            timeout=timeout,
            redirect=False,
            preload_content=False,
        )
        try:
            return answer.status, answer.headers, answer.read(LONGEST_ANSWER_BYTES)
        finally:
            answer.drain_conn()
            answer.release_conn()


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
    """Return the message of an HTTP library's exception, without its object addresses."""
    cause = problem.__cause__ or getattr(problem, "reason", None) or problem
    text = str(cause)
    return text.split(": ", 1)[1] if text.startswith("<") and ": " in text else text or repr(cause)
