"""Record requests of aiohttp's client. Upgrades to WebSocket are not recorded.

The patches are on the methods by which an attempt gets its connection (`BaseConnector.connect`), sends,
and waits for the head of the answer, and on the protocol that receives the bytes. A replay gives the
attempt a connection whose bytes come from the tape; aiohttp's parser and decoder run for real.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from types import ModuleType
from typing import Any

from playhead_core.facts import ErrorRecord
from playhead_instrumentation.libraries.common.recording import recording_requests
from playhead_instrumentation.libraries.http.asyncio_protocol import Listener, feed, transport_of
from playhead_instrumentation.libraries.http.exchange import (
    DEFAULT_PORTS,
    HttpExchange,
    Outgoing,
    aiohttp_headers,
    begin,
)
from playhead_instrumentation.libraries.http.framing import error_of
from playhead_instrumentation.libraries.http.recorded_response import (
    peer_of,
    recorded_events,
    traced_event,
)
from playhead_instrumentation.patching.lanes import In, Shadow, current
from playhead_instrumentation.patching.patches import PATCHES, Unpatchable, required
from playhead_instrumentation.patching.plain_classes import exception_named
from playhead_instrumentation.recorder.exceptions import again
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session

SENDS = "send_"
"""Prefix of the methods of a `Trace` that report an event."""

CONNECTION_EVENTS = frozenset(
    (
        "connection_queued_start connection_queued_end connection_create_start connection_create_end "
        "connection_reuseconn dns_resolvehost_start dns_resolvehost_end dns_cache_hit dns_cache_miss"
    ).split()
)
"""Events of a `TraceConfig` that aiohttp reports while a request gets its connection."""

LISTENS = "_playhead_listens"
"""Attribute of a protocol: the `Listener` for its bytes while an answer is open."""

SENT = "_playhead_sent"
"""Attribute of a request: its body, if it was already read (replay) or is replaced (fork)."""


def patch(module: ModuleType) -> None:
    """Patch connectors, requests, responses and protocols."""
    connector: Any = required(module, "BaseConnector")
    parts: Any = sys.modules["aiohttp.client_reqrep"]
    request: Any = required(parts, "ClientRequest")
    response: Any = required(parts, "ClientResponse")
    protocol: Any = required(sys.modules["aiohttp.client_proto"], "ResponseHandler")
    writer: Any = required(sys.modules["aiohttp.http_writer"], "StreamWriter")
    required(sys.modules["aiohttp.connector"], "Connection")
    for owner in (request, protocol):
        if not owner.__dictoffset__:
            raise Unpatchable(f"{owner.__name__} has no room for an attribute")
    layers: tuple[tuple[Any, dict[str, Any]], ...] = (
        (request, {"send": _send, "write_bytes": _write}),
        (response, {"start": _start}),
        (writer, {"write_headers": _write_headers}),
        (protocol, HEARD),
        (connector, {"connect": _connect}),
    )
    for owner, named in layers:
        for name in named:
            required(owner, name)
    for owner, named in layers:
        PATCHES.around_all(owner, named)


def _heard(told: Any, original: Any, protocol: Any, *args: Any) -> Any:
    listener: Listener | None = protocol.__dict__.get(LISTENS)
    if listener is not None:
        told(listener, protocol, *args)
    return original(protocol, *args)


def _data_received(listener: Listener, _: Any, data: bytes) -> None:
    listener.took(data)


def _connection_lost(listener: Listener, _: Any, error: Exception | None) -> None:
    listener.lost(error)


def _on_read_timeout(listener: Listener, _: Any) -> None:
    timeout: Any = sys.modules["aiohttp.client_exceptions"]
    kind = getattr(timeout, "SocketTimeoutError", timeout.ServerTimeoutError)
    listener.broken(kind("Timeout on reading data from socket"))


def _close(listener: Listener, protocol: Any) -> None:
    """The program gives up the answer, or the answer is complete."""
    protocol.__dict__.pop(LISTENS, None)
    listener.left(sys.exception())


HEARD = {
    "data_received": functools.partial(_heard, _data_received),
    "connection_lost": functools.partial(_heard, _connection_lost),
    "_on_read_timeout": functools.partial(_heard, _on_read_timeout),
    "close": functools.partial(_heard, _close),
}
"""Patches of the methods of a protocol."""


async def _connect(original: Any, connector: Any, request: Any, traces: Any, timeout: Any) -> Any:
    session = recording_requests()
    if session is None or request.headers.get("Upgrade", "").lower() == "websocket":
        return await original(connector, request, traces, timeout)
    body = await _body(session, request)
    exchange = begin(session, _outgoing, request, body)
    if exchange is None:
        return await original(connector, request, traces, timeout)
    try:
        await exchange.arelease()
    except BaseException as error:
        await exchange.cancelled(error)
        raise
    if exchange.call.replaced is not None:
        request.__dict__[SENT] = exchange.call.replaced
        request.headers["Content-Length"] = str(len(exchange.call.replaced))

    traced = _RecordedTraces(traces, exchange)

    async def connect(connector: Any, request: Any, traced: Any) -> Any:
        with Shadow():
            return await original(connector, request, [traced] if traces else traces, timeout)

    try:
        connection = await exchange.call.answer(connect, _connect_again, connector, request, traced)
    except BaseException as error:
        await _fail(exchange, error, "request")
        raise
    exchange.peer = connection.transport.get_extra_info("peername")
    listener = Listener(exchange, request.method, streams=body is None)
    connection.protocol.__dict__[LISTENS] = listener
    return connection


class _RecordedTraces:
    """Stands for the traces of a request while it gets a connection.

    Records which events they receive, and runs their callbacks in the lane of the program.
    """

    def __init__(self, traces: Sequence[Any], exchange: HttpExchange) -> None:
        self._traces = traces
        self._exchange = exchange
        self._lane = current()

    def __getattr__(self, name: str) -> Any:
        if not name.startswith(SENDS):
            raise AttributeError(name)
        return functools.partial(self.send, name.removeprefix(SENDS))

    async def send(self, event: str, *details: Any) -> None:
        """Report an event to the callbacks."""
        self._exchange.events.append(traced_event(event, list(map(str, details))))
        with In(self._lane):
            for trace in self._traces:
                await getattr(trace, SENDS + event)(*details)


async def _connect_again(
    played: PlayedExchange, connector: Any, request: Any, traced: _RecordedTraces
) -> Any:
    """Return a connection whose bytes will come from the tape. Raises the recorded error."""
    head, end = played.exchange.head, played.exchange.end
    for event, details in recorded_events(head or (end.values if end is not None else {})):
        if event in CONNECTION_EVENTS:
            await traced.send(event, *details)
    if not played.exchange.head and end is not None and end.error and end.error.phase == "request":
        raise _error(played, request)
    loop = asyncio.get_running_loop()
    protocol: Any = sys.modules["aiohttp.client_proto"].ResponseHandler(loop)
    protocol.connection_made(transport_of(protocol, loop, peer_of(head)))
    protocol.force_close()
    connector._acquired.add(protocol)
    made: Any = sys.modules["aiohttp.connector"].Connection
    return made(connector, request.connection_key, protocol, loop)


async def _send(original: Any, request: Any, connection: Any) -> Any:
    listener = _listener(connection)
    if listener is None:
        return await original(request, connection)
    try:
        with Shadow():
            return await original(request, connection)
    except BaseException as error:
        await _fail(listener.exchange, error)
        raise


async def _write_headers(original: Any, writer: Any, status_line: str, headers: Any) -> None:
    protocol = writer.protocol
    listener: Listener | None = None if protocol is None else protocol.__dict__.get(LISTENS)
    if listener is None or listener.exchange.over:
        return await original(writer, status_line, headers)
    notify = getattr(writer, "_on_headers_sent", None)
    if notify is not None:
        # A trace callback of the program gets the program's own headers, the same in every execution.
        def notify_as_given(_: Any) -> Any:
            return notify(headers)

        writer._on_headers_sent = notify_as_given
    sent = listener.exchange.call.answer(aiohttp_headers, _as_given, headers, listener.exchange)
    await original(writer, status_line, sent)


def _as_given(_: PlayedExchange, headers: Any, exchange: HttpExchange) -> Any:
    """Return the headers as they are: nothing is sent."""
    return headers


async def _write(original: Any, request: Any, writer: Any, connection: Any, *args: Any) -> None:
    listener = _listener(connection)
    if listener is None:
        return await original(request, writer, connection, *args)
    sent: bytes | None = request.__dict__.pop(SENT, None)
    if sent is not None:
        payload: Any = sys.modules["aiohttp.payload"].BytesPayload
        whole = listener.exchange.call.answer(lambda: payload(sent), lambda played: None)
        body, request._body = request._body, whole
        try:
            return await original(request, writer, connection, *args)
        finally:
            request._body = body
    if listener.streams:
        writer = _RecordingWriter(writer, listener.exchange)
    with In(listener.lane):
        await original(request, writer, connection, *args)


async def _start(original: Any, response: Any, connection: Any) -> Any:
    listener = _listener(connection)
    if listener is None:
        return await original(response, connection)
    exchange = listener.exchange
    timer = response._timer
    try:
        exchange.call.answer(_nothing, _feed, listener, response, connection)
        timer = None
        return await original(response, connection)
    except BaseException as error:
        if exchange.attempt.status_code is None:
            # The timer of the request may end the wait for its own recorded timeout.
            await _fail(exchange, error, timer=timer if type(error) is TimeoutError else None)
        raise


def _nothing(*_: Any) -> None:
    """No-op: the answer comes from the world."""


def _feed(played: PlayedExchange, listener: Listener, response: Any, connection: Any) -> None:
    """Begin to feed the recorded answer. Raises the error that replaced it."""
    if not played.exchange.head:
        raise _error(played, response)
    with Shadow():
        listener.feeder = asyncio.create_task(feed(listener.exchange, connection.protocol, played))


async def _fail(
    exchange: HttpExchange,
    error: BaseException,
    phase: str = "",
    timer: AbstractContextManager[Any] | None = None,
) -> None:
    """The program gets ``error`` instead of an answer.

    ``timer``: names the cancellation that ends the wait for the permit, as aiohttp's timers do.
    """
    if exchange.over:
        return
    if not isinstance(error, Exception):
        exchange.failed(error)
        return
    try:
        with timer or nullcontext():
            at = await exchange.call.arrive()
    except BaseException as cancelled:
        exchange.failed(cancelled)
        raise
    words = _words(exchange, error)
    if words is None:
        exchange.failed(error, at, phase)
    else:
        record = exchange.recorded(error)
        exchange.broken(ErrorRecord(record.module, record.qualname, record.message, words, phase), at)


def _words(exchange: HttpExchange, error: Exception) -> list[Any] | None:
    """Arguments for the tape if those of the exception are not plain: its cause, or its answer."""
    inner = error.args[-1] if len(error.args) == 2 else None
    if isinstance(inner, Exception):
        within = exchange.recorded(inner)
        return [within.module, within.qualname, within.message, *within.args]
    if hasattr(error, "request_info") and hasattr(error, "status"):
        return [getattr(error, "status", 0), getattr(error, "message", "")]
    return None


def _error(played: PlayedExchange, asked: Any) -> BaseException:
    """The recorded error of an attempt, made as aiohttp makes it. ``asked``: its request or response."""
    known: Any = sys.modules["aiohttp.client_exceptions"]
    end = played.exchange.end
    record = None if end is None else end.error
    kind: Any = None if record is None else exception_named(known.__name__, record.qualname)
    if record is not None and kind is not None and record.args and Exception in kind.__mro__:
        if issubclass(kind, known.ClientResponseError):
            status, message = record.args
            info, proxy = asked.request_info, getattr(asked, "proxy", None)
            if proxy is not None and issubclass(kind, known.ClientHttpProxyError):
                info = type(info)(proxy, "CONNECT", info.headers, proxy)
            return kind(info, (), status=status, message=message)
        if hasattr(asked, "connection_key") and len(record.args) > 2:
            module, qualname, text, *words = record.args
            key, proxy = asked.connection_key, asked.proxy
            if proxy is not None and issubclass(kind, known.ClientProxyConnectionError):
                key = key._replace(host=proxy.host, port=proxy.port, is_ssl=proxy.scheme == "https")
            return kind(key, again(ErrorRecord(str(module), str(qualname), str(text), words), OSError))
    return error_of(played, known.ClientConnectionError)


def _listener(connection: Any) -> Listener | None:
    protocol = connection.protocol
    return None if protocol is None else protocol.__dict__.get(LISTENS)


async def _body(session: Session, request: Any) -> bytes | None:
    """Return the request body if it is complete; None if it is streamed."""
    payload: Any = request.body
    if not payload:
        return b""
    value: Any = getattr(payload, "_value", payload)
    if isinstance(value, bytes | bytearray):
        return bytes(value)
    if not session.driver.closed:
        return None
    collected = _Collected()
    await payload.write(collected)
    request.__dict__[SENT] = body = b"".join(collected.pieces)
    return body


class _Collected:
    """Replay: collects a streamed body, because the lookup needs the whole body."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    async def write(self, chunk: Any, **_: Any) -> None:
        """Keep a piece."""
        self.pieces.append(bytes(chunk))

    async def write_eof(self, chunk: Any = b"") -> None:
        """Keep the last piece."""
        self.pieces.append(bytes(chunk))


class _RecordingWriter:
    """A writer that records each piece before it is sent."""

    def __init__(self, writer: Any, exchange: HttpExchange) -> None:
        self._writer = writer
        self._exchange = exchange
        self._lane = current()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._writer, name)

    async def write(self, chunk: Any, **kwargs: Any) -> Any:
        """As the writer does."""
        self._exchange.sent(bytes(chunk))
        return await self._writer.write(chunk, **kwargs)

    async def write_eof(self, chunk: Any = b"") -> Any:
        """As the writer does."""
        if chunk:
            self._exchange.sent(bytes(chunk))
        self._exchange.all_sent()
        return await self._writer.write_eof(chunk)


def _outgoing(request: Any, body: bytes | None) -> Outgoing:
    url = request.url
    headers = [
        (str(name).encode("latin-1", "replace"), str(value).encode("latin-1", "replace"))
        for name, value in request.headers.items()
    ]
    port = url.port or DEFAULT_PORTS.get(url.scheme, 0)
    asked = str(url.with_fragment(None))
    return Outgoing(str(request.method), asked, headers, str(url.host), port, body)
