"""Requests to the query port of a receiver, over one connection that is kept."""

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
    """What a receiver says where it does not answer with what was asked for."""

    status: int
    kind: str
    """As ``urn:playhead:checkpoint-unknown``."""
    reason: str


class _Problem(msgspec.Struct):
    type: str = ""
    detail: str = ""


class ReceiverLink:
    """Asks a receiver: any thread, one request at a time. A forked child has a connection of its own."""

    def __init__(
        self,
        endpoint: str,
        *,
        token: str = "",
        timeout_s: float = 30.0,
        certificate: str = "",
        most_bytes: int = 64 << 20,
    ) -> None:
        """``endpoint``: ``http://HOST:4319``. ``certificate``: file of authorities that are trusted.

        ``most_bytes``: of an answer. `UsageError`.
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
        """The answer to a request, which may be made twice. ``kind``: media type of the body.

        `StoreUnavailable` where there is none: whether it was carried out is not known then.
        """
        headers = self._headers if body is None else self._headers | {"Content-Type": kind}
        with self._lock:
            try:
                status, data = self._once(method, path, body, headers)
            except TimeoutError as problem:
                raise self._unreached(problem) from None
            except (OSError, http.client.HTTPException):  # a connection that was kept may be closed
                try:
                    status, data = self._once(method, path, body, headers)
                except (OSError, http.client.HTTPException) as problem:
                    raise self._unreached(problem) from None
        if len(data) > self.most_bytes:
            raise CorruptTape(f"an answer of the receiver at {self.name} is too large")
        return data if status == 200 else _refusal(status, data)

    def unreadable(self, problem: Exception) -> CorruptTape:
        """The error for an answer that means nothing."""
        return CorruptTape(f"the receiver at {self.name} answered something else", cause=str(problem))

    def refused(self, refusal: Refusal) -> StoreUnavailable:
        """The error for a refusal that means nothing particular."""
        hint = "set a token with the scope that is missing" if refusal.status in (401, 403) else ""
        return StoreUnavailable(f"the receiver at {self.name} refuses", cause=refusal.reason, hint=hint)

    def close(self) -> None:
        """Close the connection. Nothing happens when it is closed."""
        with self._lock:
            self._let_go()
            self._closed = True

    def _once(
        self, method: str, path: str, body: bytes | None, headers: dict[str, str]
    ) -> tuple[int, bytes]:
        """Status and body of one answer; a connection on which something went wrong is let go."""
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
                self._let_go()

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

    def _let_go(self) -> None:
        if self._open is not None and self._pid == os.getpid():
            self._open.close()
        self._open = None


def _refusal(status: int, data: bytes) -> Refusal:
    try:
        said = msgspec.json.decode(data, type=_Problem)
    except (msgspec.MsgspecError, ValueError):
        said = _Problem()
    detail = "".join(sign if sign.isprintable() else "�" for sign in said.detail)
    return Refusal(status, said.type, detail[:_LONGEST_REASON] or f"it answered {status}")
