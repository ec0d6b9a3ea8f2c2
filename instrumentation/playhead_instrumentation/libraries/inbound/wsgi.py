"""Requests to WSGI applications. The cover of an application stands between it and the server."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from playhead_instrumentation.libraries.inbound.applications import once
from playhead_instrumentation.libraries.inbound.exchange import (
    END,
    InboundExchange,
    InboundRequest,
    begin,
    recording,
)
from playhead_instrumentation.libraries.inbound.excluded import Excluded, unrecorded
from playhead_instrumentation.patching import lanes
from playhead_semconv import attributes as a

_UNPREFIXED = {"CONTENT_TYPE": "content-type", "CONTENT_LENGTH": "content-length"}


class CoveredWsgi:
    """A WSGI application whose requests are recorded; all else is passed on to the application."""

    def __init__(self, app: Any, told: str = "") -> None:
        self.__wrapped__ = app
        self._application = once(app, told)
        self._excluded = Excluded(app)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.__wrapped__, name)

    def __call__(self, environ: Any, start_response: Any) -> Any:
        """Serve one request."""
        app, session = self.__wrapped__, recording()
        going = None
        if session is not None:
            asked = _asked(environ)
            if self._excluded.has(session, asked):
                with unrecorded():
                    return Unrecorded(app(environ, start_response))
            going = begin(session, self._application(), asked)
        if going is None:
            return app(environ, start_response)
        with going.within():
            try:
                going.came(going.call.comes().wait())
                environ["wsgi.input"] = Body(going, environ["wsgi.input"])
                answer = app(environ, _starts(going, start_response))
                kind = SizedAnswer if hasattr(answer, "__len__") else ApplicationAnswer
                return kind(going, answer)
            except BaseException as error:
                going.failed(error)
                raise


class Unrecorded:
    """The answer of an application to a request that is not recorded."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer
        self._pieces: Any = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answer, name)

    def __iter__(self) -> Unrecorded:
        return self

    def __next__(self) -> bytes:
        """Return the next piece."""
        with unrecorded():
            if self._pieces is None:
                self._pieces = iter(self._answer)
            return next(self._pieces)

    def close(self) -> None:
        """The server reads no more."""
        with unrecorded():
            close = getattr(self._answer, "close", None)
            if close is not None:
                close()


class Body:
    """The body of a request, as the program reads it."""

    def __init__(self, going: InboundExchange, body: Any) -> None:
        self._going = going
        self._body = body

    def __getattr__(self, name: str) -> Any:
        return getattr(self._body, name)

    def read(self, *size: Any) -> bytes:
        """As the server's own stream does."""
        return self._entered(self._body.read, *size)

    def readinto(self, buffer: Any) -> int:
        """Read into ``buffer``; returns the number of bytes."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def readline(self, *size: Any) -> bytes:
        """As the server's own stream does."""
        return self._entered(self._body.readline, *size)

    def readlines(self, hint: int = -1) -> list[bytes]:
        """Return the rest, line by line."""
        return list(self)

    def __iter__(self) -> Iterator[bytes]:
        while line := self.readline():
            yield line

    def _entered(self, read: Any, *size: Any) -> bytes:
        with lanes.Outside():
            data = read(*size)
        self._going.received(data, self._going.call.arrive().wait())
        return data


class ApplicationAnswer:
    """The answer of an application: pieces made in the lane of the request."""

    def __init__(self, going: InboundExchange, answer: Any) -> None:
        self._going = going
        self._answer = answer
        self._pieces: Any = None
        self._whole = False

    def __iter__(self) -> ApplicationAnswer:
        return self

    def __next__(self) -> bytes:
        """Return the next piece, after it is on the tape."""
        going = self._going
        with going.within():
            try:
                if self._pieces is None:
                    self._pieces = iter(self._answer)
                piece = next(self._pieces)
            except StopIteration:
                self._whole = True
                going.sends(b"", END)
                raise
            except BaseException as error:
                going.failed(error)
                raise
            going.sends(piece)
            return piece

    def close(self) -> None:
        """The server reads no more."""
        going = self._going
        with going.within():
            try:
                close = getattr(self._answer, "close", None)
                if close is not None:
                    close()
            except BaseException as error:
                going.failed(error)
                raise
            if self._whole:
                going.finished()
            else:
                going.abandoned()


class SizedAnswer(ApplicationAnswer):
    """An answer that has a length: the number of its pieces."""

    def __len__(self) -> int:
        return len(self._answer)


def _starts(going: InboundExchange, start_response: Any) -> Any:
    def started(status: str, headers: Any, *problem: Any) -> Any:
        code, _, reason = status.partition(" ")
        pairs = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in headers]
        going.answers(int(code) if code.isdigit() else 0, pairs, reason)
        with lanes.Shadow():
            write = start_response(status, headers, *problem)

        def written(data: bytes) -> Any:
            going.sends(data)
            with lanes.Outside():
                return write(data)

        return written

    return started


def _asked(environ: Any) -> InboundRequest:
    root = environ.get("SCRIPT_NAME", "")
    path = quote((root + environ.get("PATH_INFO", "")).encode("latin-1"), safe="/:@!$&'()*+,;=~")
    details: dict[str, Any] = {
        a.URL_SCHEME: str(environ.get("wsgi.url_scheme", "http")),
        a.NETWORK_PROTOCOL_VERSION: str(environ.get("SERVER_PROTOCOL", "")).partition("/")[2],
    }
    for name, key in (
        (a.CLIENT_ADDRESS, "REMOTE_ADDR"),
        (a.SERVER_ADDRESS, "SERVER_NAME"),
        (a.PLAYHEAD_INBOUND_ROOT, "SCRIPT_NAME"),
    ):
        if environ.get(key):
            details[name] = str(environ[key])
    if environ.get("wsgi.input_terminated"):
        details[a.PLAYHEAD_INBOUND_TERMINATED] = True
    for name, key in ((a.CLIENT_PORT, "REMOTE_PORT"), (a.SERVER_PORT, "SERVER_PORT")):
        if str(environ.get(key, "")).isdigit():
            details[name] = int(environ[key])
    headers = [
        (_header(key).encode("latin-1"), str(value).encode("latin-1"))
        for key, value in environ.items()
        if key.startswith("HTTP_") or (key in _UNPREFIXED and value)
    ]
    method = str(environ.get("REQUEST_METHOD", "GET"))
    return InboundRequest("wsgi", method, path, str(environ.get("QUERY_STRING", "")), headers, details)


def _header(key: str) -> str:
    return _UNPREFIXED.get(key) or key.removeprefix("HTTP_").replace("_", "-").lower()
