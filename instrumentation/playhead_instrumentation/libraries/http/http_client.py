"""Record requests of `http.client`, and therefore of `urllib.request`.

The patches are on `HTTPConnection`: the exchange begins when the head of a request is complete, and is
passed to `getresponse`, which puts a `Tee` in front of the stream of the answer. For urllib3, which is
based on `http.client` and begins the exchange in its own adapter, the answers are recorded here too.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import msgspec

from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.recording import recording_requests_of_program
from playhead_instrumentation.libraries.http.exchange import (
    HttpExchange,
    Incoming,
    Outgoing,
    begin,
    context_lines,
    with_context,
)
from playhead_instrumentation.libraries.http.framing import Framing, error_of
from playhead_instrumentation.libraries.http.http_client_connecting import (
    connect,
    init,
    outgoing,
    server_of,
)
from playhead_instrumentation.libraries.http.http_client_streams import PlayedSocket, Tee
from playhead_instrumentation.patching.lanes import In, Outside, Shadow, current
from playhead_instrumentation.patching.patches import PATCHES, required
from playhead_instrumentation.recorder.played_exchange import PlayedExchange

log = Log(__name__)

GOING_ON = "_playhead_asked"
"""Attribute of a connection: its `OpenRequest`, from the request to the head of the answer."""

BLOCK_BYTES = 8192
"""Bytes of a file that are sent at once, if the connection has no block size."""


def patch(module: ModuleType) -> None:
    """Patch the connections."""
    plain: Any = required(module, "HTTPConnection")
    secure: Any = getattr(module, "HTTPSConnection", None)
    layers = {"endheaders": _endheaders, "send": _send, "getresponse": _getresponse, "close": _close}
    PATCHES.around_all(plain, {"__init__": init, "connect": connect, **layers})
    if secure is not None and "connect" in vars(secure):
        PATCHES.around(secure, "connect", connect)


class OpenRequest:
    """The open request of a connection."""

    __slots__ = ("described", "exchange", "own", "pieces", "streams")

    def __init__(self, exchange: HttpExchange | None, *, own: bool) -> None:
        """``own``: the exchange was begun in this module, which then records its errors too."""
        self.exchange = exchange
        """None: it begins when the whole body is known (replay)."""
        self.own = own
        self.streams = False
        """Whether the program sends the body itself, after the head."""
        self.described: Outgoing | None = None
        self.pieces: list[bytes] = []


def hand_on(connection: Any, asked: OpenRequest) -> None:
    """Record the answer on ``connection``."""
    setattr(connection, GOING_ON, asked)


def plug(connection: Any, exchange: HttpExchange) -> bool:
    """Let a recording answer on ``connection``, if one does. Returns whether it is connected.

    Raises the `PlayheadError` if nothing answers.
    """
    unplug(connection)
    exchange.call.answer(unplug, play, connection)
    return connection.sock is not None


def unplug(connection: Any, *_: Any) -> None:
    """Leave ``connection`` unconnected if it only seemed to be, because a tape might have answered."""
    if isinstance(connection.sock, PlayedSocket):
        connection.sock = None


def play(played: PlayedExchange, connection: Any) -> None:
    """Let a recording answer on ``connection``."""
    connection.sock = PlayedSocket(played)


def let_go(connection: Any) -> OpenRequest | None:
    """Detach the open request from ``connection``: the next request is a new exchange."""
    return connection.__dict__.pop(GOING_ON, None)


def refuse(exchange: HttpExchange, phase: str = "") -> None:
    """Raise the error that replaces the head, if it was recorded in ``phase`` or no phase is given."""
    exchange.call.answer(_nothing, _refuse_again, phase)


def _nothing(phase: str) -> None:
    """No-op: whether the head comes is not known yet."""


def _refuse_again(played: PlayedExchange, phase: str) -> None:
    end = played.exchange.end
    if played.exchange.head:
        return
    if not phase or (end is not None and end.error is not None and end.error.phase == phase):
        raise error_of(played, OSError)


def fail(exchange: HttpExchange, error: BaseException, phase: str = "") -> None:
    """The program gets ``error``. Interrupts by the program or its user are no delivery."""
    if not exchange.over:
        at = exchange.await_arrival(phase) if isinstance(error, Exception) else None
        exchange.failed(error, at, phase)


def whole(body: Any) -> bytes | None:
    """Return a complete body as bytes; None if it is streamed."""
    if isinstance(body, bytes):
        return body
    if body is None:
        return b""
    if hasattr(body, "read"):
        return None
    try:
        return bytes(memoryview(body))
    except TypeError:
        return None if hasattr(body, "__iter__") else b""


def pieces(body: Any, encoding: str, blocksize: int) -> Iterator[Any]:
    """The pieces of a body that is a file or an iterable, produced in the current lane. They are passed
    on unchanged, except that pieces of a text file are encoded."""
    lane = current()
    read = getattr(body, "read", None)
    made = None if read is not None else iter(body)
    while True:
        try:
            with In(lane):
                piece: Any = next(made) if made is not None else read(blocksize)  # type: ignore[misc]
        except StopIteration:
            return
        if made is None:
            if not piece:
                return
            if isinstance(piece, str):
                piece = piece.encode(encoding)
        yield piece


def told(exchange: HttpExchange, made: Iterator[Any], encoding: str) -> Iterator[Any]:
    """The same pieces, each recorded before it is sent."""
    for piece in made:
        exchange.sent(as_bytes(piece, encoding))
        yield piece
    exchange.all_sent()


def as_bytes(piece: Any, encoding: str) -> bytes:
    """Return a piece of a body as bytes; empty if it is no valid piece."""
    try:
        return piece.encode(encoding) if isinstance(piece, str) else bytes(memoryview(piece))
    except TypeError:
        return b""


def _add_context(connection: Any, exchange: HttpExchange) -> None:
    """Add the trace context to the head that is about to be sent, unless a tape answers."""
    if not isinstance(connection.sock, PlayedSocket):
        connection._buffer.extend(context_lines(connection._buffer, exchange))


def _endheaders(
    original: Any, connection: Any, message_body: Any = None, *, encode_chunked: bool = False
) -> None:
    going: OpenRequest | None = connection.__dict__.get(GOING_ON)
    if going is not None and going.exchange is not None:
        _add_context(connection, going.exchange)
    session = None if going is not None else recording_requests_of_program()
    if session is None:
        return original(connection, message_body, encode_chunked=encode_chunked)
    streams = message_body is None and _announced(connection)
    body = None if streams else whole(message_body)
    if session.driver.closed and streams:
        return _ask_later(original, connection)
    if body is None and not streams:
        made = pieces(message_body, "iso-8859-1", getattr(connection, "blocksize", BLOCK_BYTES))
        if session.driver.closed:
            message_body = list(made)
            body = b"".join(as_bytes(piece, "iso-8859-1") for piece in message_body)
        else:
            message_body = made
    exchange = begin(session, _outgoing, connection, body)
    if exchange is None:
        return original(connection, message_body, encode_chunked=encode_chunked)
    if body is None and not streams:
        message_body = told(exchange, iter(message_body or ()), "iso-8859-1")
    try:
        exchange.release()
    except BaseException as error:
        exchange.failed(error)
        raise
    if exchange.call.replaced is not None:
        message_body = exchange.call.replaced
        size = b"Content-Length: %d" % len(message_body)
        lines: list[bytes] = connection._buffer
        lines[:] = [size if line.lower().startswith(b"content-length:") else line for line in lines]
    asked = OpenRequest(exchange, own=True)
    try:
        hand_on(connection, asked)
        plug(connection, exchange)
        refuse(exchange, "request")
        _add_context(connection, exchange)
        with Shadow():
            original(connection, message_body, encode_chunked=encode_chunked)
    except BaseException as error:
        let_go(connection)
        fail(exchange, error, "request")
        raise
    asked.streams = streams


def _ask_later(original: Any, connection: Any) -> None:
    """Replay: the lookup needs the whole body, which the program sends after the head."""
    asked = OpenRequest(None, own=True)
    asked.described = _outgoing(connection, None)
    hand_on(connection, asked)
    connection.sock = PlayedSocket()
    original(connection)
    asked.streams = True


def _send(original: Any, connection: Any, data: Any) -> None:
    asked: OpenRequest | None = connection.__dict__.get(GOING_ON)
    if asked is None or not asked.streams:
        return original(connection, data)
    piece = whole(data)
    made: list[Any] = [data]
    if piece is None:
        made = list(pieces(data, "iso-8859-1", getattr(connection, "blocksize", BLOCK_BYTES)))
    exchange = asked.exchange
    for one in made:
        if exchange is None:
            asked.pieces.append(as_bytes(one, "iso-8859-1"))
            continue
        exchange.sent(as_bytes(one, "iso-8859-1"))
        try:
            with Shadow():
                original(connection, one)
        except BaseException as error:
            let_go(connection)
            fail(exchange, error, "request")
            raise


def _getresponse(original: Any, connection: Any) -> Any:
    asked = let_go(connection)
    if asked is None:
        return original(connection)
    exchange = asked.exchange
    if exchange is None:
        session, described = recording_requests_of_program(), asked.described
        if session is None or described is None:
            return original(connection)
        body = b"".join(asked.pieces)
        exchange = begin(session, lambda: msgspec.structs.replace(described, body=body))
        if exchange is None:
            return original(connection)
        unsent = connection.sock.unsent if isinstance(connection.sock, PlayedSocket) else b""
        _ask_now(connection, exchange, unsent + body)
    exchange.all_sent()
    try:
        if asked.own:
            refuse(exchange)
        peer = _peer(connection)  # the connection may let its socket go with the head
        with Outside():
            response = original(connection)
        at = exchange.await_arrival()
    except BaseException as error:
        if asked.own:
            fail(exchange, error)
        raise
    exchange.peer = peer
    exchange.answered(_incoming, response, at)
    _tap(response, exchange)
    return response


def _peer(connection: Any) -> Any:
    try:
        return connection.sock.getpeername()
    except Exception:
        return None


def _ask_now(connection: Any, exchange: HttpExchange, data: bytes) -> None:
    """Send head and body now if no tape answers; they were withheld because one might have."""
    try:
        if not plug(connection, exchange):
            with Shadow():
                connection.connect()
                connection.sock.sendall(with_context(data, exchange))
    except BaseException as error:
        fail(exchange, error, "request")
        raise


def _tap(response: Any, exchange: HttpExchange) -> None:
    try:
        status, method = response.status, getattr(response, "_method", None)
        empty = method == "HEAD" or status in (204, 304) or 100 <= status < 200
        framing = Framing(
            chunked=bool(response.chunked) and not empty, length_bytes=0 if empty else response.length
        )
        if response.fp is not None:
            response.fp = Tee(response.fp, exchange, framing)
    except Exception:
        log.debug("playhead could not follow an answer", exc_info=True)


def _close(original: Any, connection: Any) -> None:
    asked: OpenRequest | None = connection.__dict__.get(GOING_ON)
    if asked is not None and asked.own:
        let_go(connection)
        if asked.exchange is not None:
            asked.exchange.abandoned()
    return original(connection)


def _announced(connection: Any) -> bool:
    """Return whether the head announces a body."""
    for name, value in _header_lines(connection):
        lower = name.lower()
        if lower == b"transfer-encoding" or (lower == b"content-length" and value.strip() != b"0"):
            return True
    return False


def _header_lines(connection: Any) -> list[tuple[bytes, bytes]]:
    lines: list[bytes] = connection._buffer[1:]
    return [(name, value) for name, _, value in (line.partition(b": ") for line in lines)]


def _outgoing(connection: Any, body: bytes | None) -> Outgoing:
    target = connection._buffer[0].split(b" ")[1].decode("latin-1")
    headers = _header_lines(connection)
    return outgoing(str(connection._method), server_of(connection), target, headers, body)


def _incoming(response: Any) -> Incoming:
    message = response.headers
    return Incoming(
        response.status,
        list(message.raw_items()),  # `items` looks at each value as mail may need it
        "HTTP/1.0" if response.version == 10 else "HTTP/1.1",
        response.reason,
        message.get("content-type", ""),
        message.get("content-encoding", ""),
    )
