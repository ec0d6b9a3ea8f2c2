"""How a WebSocket ended, for the answer that it cut short.

=====================================================  =====================================
the connection                                         the answer gets
=====================================================  =====================================
was closed by the program                              ``playhead.end.how`` = abandoned
was closed by the provider, without an error           ``error.type`` = ``truncated_response``
was closed by the provider with another code           ``error.type``: the code
was closed by the library, which got no pong           ``error.type``: the code that it sent
was lost, or what arrived was no WebSocket any more    ``error.type``: name of the exception
=====================================================  =====================================
"""

from __future__ import annotations

from typing import Final, NamedTuple

from playhead_core.facts import ErrorRecord, Exchange, Part
from playhead_genai.providers.reading import parse, sequence
from playhead_genai.providers.realtime.calls import Read, in_order
from playhead_semconv import attributes as a

TRUNCATED: Final = "truncated_response"
_WITHOUT_ERROR: Final = (1000, 1005)
"""Codes of a connection that is closed as agreed, and without a code."""


class Ending(NamedTuple):
    """How a connection ended."""

    time_ns: int
    error_type: str = ""
    """Value of ``error.type``; empty: the program left."""
    error_message: str = ""


def ending_of(exchange: Exchange, read: Read) -> Ending | None:
    """Return how the connection ended; None while it is open. What ``read`` raises goes on."""
    for sent, number, part in in_order(exchange):
        opcode = part.attributes.get(a.PLAYHEAD_WEBSOCKET_OPCODE)
        if opcode == "close" and sent:
            return Ending(part.time_ns)
        if opcode in ("close", "fail"):
            return _closed(part, read(sent, number))
        if opcode == "broken":
            return _failed(part.time_ns, _record(read(sent, number)))
    end = exchange.end
    if end is None:
        return None
    return Ending(end.time_ns) if end.error is None else _failed(end.time_ns, end.error)


def _closed(part: Part, body: bytes) -> Ending:
    code = int.from_bytes(body[:2], "big") if len(body) > 1 else _WITHOUT_ERROR[1]
    kind = TRUNCATED if code in _WITHOUT_ERROR else str(code)
    return Ending(part.time_ns, kind, body[2:].decode("utf-8", "replace"))


def _failed(time_ns: int, error: ErrorRecord) -> Ending:
    return Ending(time_ns, error.error_type, error.message)


def _record(body: bytes) -> ErrorRecord:
    """Return the protocol error that a part holds."""
    try:
        values = sequence(parse(body))
    except (ValueError, RecursionError):
        values = []
    module, qualname, message = [*map(str, values[:3]), "", "", ""][:3]
    return ErrorRecord(module, qualname or "_OTHER", message)
