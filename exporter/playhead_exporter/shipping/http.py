"""OTLP over HTTP with protobuf.

The connection is one of this package: a library for it would log into the program's logs, and would
have imported parts of the modules that gevent replaces when the program begins.
"""

from __future__ import annotations

import ssl
import time
import zlib
from collections.abc import Mapping

from playhead_core.facts import digest_of
from playhead_exporter.delivery import Endpoint, Signal, Trust
from playhead_exporter.shipping.endpoint_answers import (
    OTHER_TOKEN,
    WATCHED,
    About,
    Answer,
    Declined,
    TryLater,
    Unwelcome,
    accepted,
    read_about,
)
from playhead_exporter.shipping.http_connection import HttpAnswer, HttpConnection

PROTOBUF = "application/x-protobuf"
DESTINATION = "Playhead-Destination"
"""Header with the digest of the destination: another receiver at the address answers 421."""
RETRYABLE = frozenset((421, 429, 502, 503, 504))
BAD_DATA = frozenset((400, 413, 415, 422))
COMPRESS_LEVEL = 1
CONNECT_TIMEOUT_S = 2.0
_GZIP_WBITS = 31
"""What makes `zlib` write the format of gzip."""
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
        self._connection: HttpConnection | None = None

    def send(
        self, signal: Signal, request: bytes, timeout_s: float, *, compressed: bool = False
    ) -> Answer:
        """POST one request; returns the endpoint's answer."""
        url, sent = self._endpoint.url(signal), self._headers
        if not compressed:
            request, sent = _gzipped(request), sent | _GZIP
        try:
            answer = self._ask("POST", url, timeout_s, sent, request)
        except OSError as problem:
            return TryLater(f"{self._endpoint.base}: {_plain(problem)}")
        status, headers = answer.status, answer.headers
        if 200 <= status < 300:
            return accepted(answer.body, headers.get(WATCHED) != "0")
        said = _message(headers, answer.body)
        reason = f"{self._endpoint.base} answered {status} at {_path(url)}{said}"
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
            answer = self._ask("GET", url, timeout_s, headers)
        except OSError as problem:
            return TryLater(f"{self._endpoint.base}: {_plain(problem)}")
        if answer.status in RETRYABLE:
            after_s = retry_after_s(answer.headers.get("retry-after"))
            return TryLater(f"{self._endpoint.base} answered {answer.status} at /v1/playhead", after_s)
        return read_about(answer.body) if answer.status == 200 else About(False)

    def close(self) -> None:
        """Close the connection, unless the program has closed its number."""
        if self._connection is not None:
            self._connection.close()

    def _ask(
        self, method: str, url: str, timeout_s: float, headers: dict[str, str], body: bytes | None = None
    ) -> HttpAnswer:
        """The answer to a request. OSError. ``timeout_s``: for each read and write."""
        if self._connection is None:
            self._connection = HttpConnection(
                self._endpoint.base, _context_of(self._endpoint, self._trust)
            )
        connect_s = min(CONNECT_TIMEOUT_S, timeout_s)
        return self._connection.ask(method, _path(url), headers, body, connect_s, timeout_s)


def _context_of(endpoint: Endpoint, trust: Trust) -> ssl.SSLContext | None:
    """What an encrypted connection trusts; None: it is not encrypted. OSError."""
    if not endpoint.secure:
        return None
    context = ssl.create_default_context(cafile=trust.ca or None)
    if trust.certificate:
        context.load_cert_chain(trust.certificate, trust.key or None)
    return context


def _gzipped(data: bytes) -> bytes:
    packer = zlib.compressobj(COMPRESS_LEVEL, zlib.DEFLATED, _GZIP_WBITS)
    return packer.compress(data) + packer.flush()


def retry_after_s(value: str | None) -> float | None:
    """Return the seconds that a Retry-After header asks for; it holds seconds or a date."""
    if not value:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    import email.utils  # few endpoints name a date

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
