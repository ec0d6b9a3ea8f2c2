"""Requests to the query port of a receiver, over one persistent connection."""

from __future__ import annotations

import http.client
import os
import ssl
import threading
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

from playhead_core.errors import CorruptTape, StoreUnavailable, UsageError

_LONGEST_REASON: Final = 500


class Refusal(NamedTuple):
    """An error answer of a receiver."""

    status: int
    kind: str
    """As ``urn:playhead:checkpoint-unknown``."""
    reason: str


class _Problem(msgspec.Struct):
    type: str = ""
    detail: str = ""


class ReceiverLink:
    """Sends requests to a receiver, one at a time, from any thread. A forked child reconnects."""

    def __init__(
        self,
        endpoint: str,
        *,
        token: str = "",
        timeout_s: float = 30.0,
        certificate: str = "",
        most_bytes: int = 64 << 20,
    ) -> None:
        """``endpoint``: ``http://HOST:4319``. ``certificate``: file of trusted authorities.

        ``most_bytes``: largest answer. `UsageError` if ``endpoint`` is not an address.
        """
        parts = urlsplit(endpoint)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise UsageError(f"{endpoint!r:.200} is no address of a receiver", hint="http://HOST:4319")
        self.name = f"{parts.scheme}://{parts.hostname}:{parts.port or ''}".rstrip(":")
        """For messages."""
        self.most_bytes = most_bytes
        self._base = parts.path.rstrip("/")
        self._address = parts.hostname, parts.port
        self._timeout_s = timeout_s
        self._trust: ssl.SSLContext | None = None
        if parts.scheme == "https":
            self._trust = ssl.create_default_context(cafile=certificate or None)
        self._headers = {"User-Agent": "playhead"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._lock = threading.RLock()
        self._open: http.client.HTTPConnection | None = None
        self._pid = os.getpid()
        self._closed = False

    def ask(self, method: str, path: str, body: bytes | None, kind: str) -> bytes | Refusal:
        """Send a request, repeating it once if needed. ``kind``: media type of the body.

        `StoreUnavailable` if there is no answer; then it is unknown whether the request was executed.
        """
        headers = self._headers if body is None else self._headers | {"Content-Type": kind}
        with self._lock:
            try:
                status, data = self._send_once(method, path, body, headers)
            except TimeoutError as problem:
                raise self._unreached(problem) from None
            except (OSError, http.client.HTTPException):  # the persistent connection may be closed
                try:
                    status, data = self._send_once(method, path, body, headers)
                except (OSError, http.client.HTTPException) as problem:
                    raise self._unreached(problem) from None
        if len(data) > self.most_bytes:
            raise CorruptTape(f"an answer of the receiver at {self.name} is too large")
        return data if status == 200 else _refusal(status, data)

    def unreadable(self, problem: Exception) -> CorruptTape:
        """Return the error for an unreadable answer."""
        return CorruptTape(f"the receiver at {self.name} answered something else", cause=str(problem))

    def refused(self, refusal: Refusal) -> StoreUnavailable:
        """Return the error for a refusal without special meaning."""
        hint = "set a token with the scope that is missing" if refusal.status in (401, 403) else ""
        return StoreUnavailable(f"the receiver at {self.name} refuses", cause=refusal.reason, hint=hint)

    def close(self) -> None:
        """Close the connection. Idempotent."""
        with self._lock:
            self._disconnect()
            self._closed = True

    def _send_once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """Send once; return status and body. After any problem the connection is closed."""
        whole = False
        try:
            connection = self._connection()
            connection.request(method, f"{self._base}/v1/{path}", body, headers)
            answer = connection.getresponse()
            data = answer.read(self.most_bytes + 1)
            whole = len(data) <= self.most_bytes
            return answer.status, data
        finally:
            if not whole:
                self._disconnect()

    def _connection(self) -> http.client.HTTPConnection:
        if self._closed:
            raise StoreUnavailable(f"the store at {self.name} is closed")
        if self._open is None or self._pid != os.getpid():
            host, port = self._address
            self._pid = os.getpid()
            if self._trust is not None:
                self._open = http.client.HTTPSConnection(
                    host, port, timeout=self._timeout_s, context=self._trust
                )
            else:
                self._open = http.client.HTTPConnection(host, port, timeout=self._timeout_s)
        return self._open

    def _unreached(self, problem: Exception) -> StoreUnavailable:
        cause = f"{type(problem).__name__}: {problem}"
        return StoreUnavailable(f"the receiver at {self.name} cannot be reached", cause=cause)

    def _disconnect(self) -> None:
        if self._open is not None and self._pid == os.getpid():
            self._open.close()
        self._open = None


def _refusal(status: int, data: bytes) -> Refusal:
    try:
        problem = msgspec.json.decode(data, type=_Problem)
    except (msgspec.MsgspecError, ValueError):
        problem = _Problem()
    detail = "".join(sign if sign.isprintable() else "�" for sign in problem.detail)
    return Refusal(status, problem.type, detail[:_LONGEST_REASON] or f"it answered {status}")
