"""Record a WebSocket as an exchange, and rebuild its bytes in a replay.

The request is the handshake; the head is its answer. Every message that the program sends and every
frame that arrives is a fact, recorded without compression. `playhead.websocket.opcode` gives its type.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from playhead_core.facts import Delivery, ErrorRecord
from playhead_core.process.own_messages import Log
from playhead_instrumentation.libraries.common.message_exchange import MessageExchange, MessageRequest
from playhead_instrumentation.recorder.exceptions import again, is_own_doing
from playhead_instrumentation.recorder.played_exchange import PlayedExchange
from playhead_instrumentation.session.session import Session
from playhead_semconv import attributes as a

Headers = Iterable[tuple[str, str]]

PORTS: Final = {"ws": 80, "wss": 443}
OPCODES: Final = {0: "continuation", 1: "text", 2: "binary", 8: "close", 9: "ping", 10: "pong"}
NUMBERS: Final = {name: number for number, name in OPCODES.items()}

CLOSED: Final = "websockets.exceptions", "ConnectionClosedError"
"""Module and class of the error on the tape for a connection that ended without a closing handshake."""

log = Log(__name__)


def begin(session: Session, url: str, headers: Headers) -> MessageExchange | None:
    """Open the span and ask the driver; None when that failed. ``headers``: of the handshake."""
    try:
        session.settle()
        redactor = session.redactor
        kept = redactor.url(url)
        parts = urlsplit(url)
        flat, redacted = redactor.headers(_encoded(headers))
        redacted += kept != url
        details: dict[str, Any] = {a.PLAYHEAD_HTTP_HEADERS: flat}
        if redacted:
            details[a.PLAYHEAD_REDACTED_COUNT] = redacted
        exchange = MessageExchange(
            session,
            MessageRequest("websocket", f"GET {kept}", b"", details),
            "websocket",
            {
                a.HTTP_REQUEST_METHOD: "GET",
                a.URL_FULL: kept,
                a.SERVER_ADDRESS: parts.hostname or "",
                a.SERVER_PORT: parts.port or PORTS.get(parts.scheme, 0),
                a.NETWORK_PROTOCOL_NAME: "websocket",
            },
        )
        exchange.call.scrub = redactor.response("application/json", "")
        return exchange
    except Exception:
        log.debug("playhead could not record a WebSocket", exc_info=True)
        return None


class Handshake(NamedTuple):
    """The answer to a handshake."""

    addresses: tuple[Any, Any]
    """Local and remote address of the connection."""
    status: int = 0
    """0: it is not HTTP."""
    reason: str = ""
    headers: Headers = ()


def answered(exchange: MessageExchange, handshake: Handshake, at: Delivery | None) -> None:
    """Record the answer to the handshake."""
    addresses, status, reason, headers = handshake
    values: dict[str, Any] = {a.PLAYHEAD_CONNECTION_ADDRESSES: json.dumps(addresses, default=str)}
    if status:
        pairs = list(headers)
        flat, redacted = exchange.session.redactor.headers(_encoded(pairs))
        values[a.HTTP_RESPONSE_STATUS_CODE] = status
        values[a.PLAYHEAD_HTTP_REASON] = reason
        values[a.PLAYHEAD_HTTP_HEADERS] = flat
        protocols = [value for name, value in pairs if name.lower() == "sec-websocket-protocol"]
        if protocols:
            values[a.PLAYHEAD_WEBSOCKET_SUBPROTOCOL] = protocols[0]
        if redacted:
            values[a.PLAYHEAD_REDACTED_COUNT] = redacted
        exchange.describe({a.HTTP_RESPONSE_STATUS_CODE: status})
        if status >= 400:
            exchange.describe({a.ERROR_TYPE: str(status)}, error=f"{status} {reason}".strip())
    exchange.answered(values, at)


def described(opcode: str, *, final: bool = True) -> dict[str, Any]:
    """Return the attributes of a message."""
    found: dict[str, Any] = {a.PLAYHEAD_WEBSOCKET_OPCODE: opcode}
    if not final:
        found[a.PLAYHEAD_WEBSOCKET_FINAL] = False
    return found


def closing(code: int | None, reason: str = "") -> bytes:
    """Return the body of a close frame.

    >>> closing(1000, "done")
    b'\\x03\\xe8done'
    """
    return b"" if code is None else struct.pack("!H", int(code)) + reason.encode()


def close_of(data: bytes) -> tuple[int, str]:
    """Return the inverse of `closing`; 1005 if there is no code."""
    return (
        (struct.unpack("!H", data[:2])[0], data[2:].decode("utf-8", "replace")) if data else (1005, "")
    )


def frame(opcode: str, data: bytes, *, final: bool = True) -> bytes:
    """Return a frame as a server sends it, uncompressed.

    >>> frame("text", b"hi")
    b'\\x81\\x02hi'
    """
    first = NUMBERS[opcode] | (0x80 if final else 0)
    size = len(data)
    if size < 126:
        head = struct.pack("!BB", first, size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, 126, size)
    else:
        head = struct.pack("!BBQ", first, 127, size)
    return head + data


def error_of(played: PlayedExchange, phase: str = "") -> BaseException | None:
    """Return the recorded error, to be raised again; None if there is none, or none in that phase."""
    end = played.exchange.end
    record = None if end is None else end.error
    if record is None or (phase and record.phase != phase):
        return None
    return None if is_own_doing(record) else again(record, OSError)


def key_of(played: PlayedExchange) -> str:
    """Return the random key of the recorded handshake."""
    flat: list[Any] = played.exchange.ask.details.get(a.PLAYHEAD_HTTP_HEADERS, [])
    names = [str(name).lower() for name in flat[::2]]
    return str(flat[names.index("sec-websocket-key") * 2 + 1]) if "sec-websocket-key" in names else ""


def addresses_of(played: PlayedExchange) -> tuple[Any, Any]:
    """Local and remote address of the recorded connection."""
    found = json.loads(played.exchange.head.get(a.PLAYHEAD_CONNECTION_ADDRESSES, "[null, null]"))
    local, remote = (tuple(cast("list[Any]", one)) if isinstance(one, list) else one for one in found)
    return local, remote


def head_of(played: PlayedExchange) -> bytes:
    """Return the recorded answer to the handshake without its body; empty if it was not HTTP."""
    values = played.exchange.head
    if a.HTTP_RESPONSE_STATUS_CODE not in values:
        return b""
    status = f"HTTP/1.1 {values[a.HTTP_RESPONSE_STATUS_CODE]} {values.get(a.PLAYHEAD_HTTP_REASON, '')}"
    lines = [status, *(f"{name}: {value}" for name, value in _headers_of(played)), "", ""]
    top = "\r\n".join(lines).encode("latin-1", "replace")
    return top if played.exchange.parts else top + body_of(played, b"")


def body_of(played: PlayedExchange, body: bytes) -> bytes:
    """Return the body of a refused handshake as its headers announce it."""
    if not any(name.lower() == "transfer-encoding" for name, _ in _headers_of(played)):
        return body
    return (b"%x\r\n%b\r\n" % (len(body), body) if body else b"") + b"0\r\n\r\n"


def _headers_of(played: PlayedExchange) -> list[tuple[str, str]]:
    flat = [str(word) for word in played.exchange.head.get(a.PLAYHEAD_HTTP_HEADERS, [])]
    return list(zip(flat[::2], flat[1::2], strict=True))


def error_body(error: ErrorRecord) -> bytes:
    """Return a protocol error as the body of a part."""
    return json.dumps([error.module, error.qualname, error.message, error.args], default=str).encode()


def error_in(body: bytes) -> BaseException:
    """Return the inverse of `error_body`."""
    module, qualname, message, args = json.loads(body)
    return again(ErrorRecord(module, qualname, message, args), OSError)


def _encoded(headers: Headers) -> list[tuple[bytes, bytes]]:
    return [
        (str(name).encode("latin-1", "replace"), str(value).encode("latin-1", "replace"))
        for name, value in headers
    ]
