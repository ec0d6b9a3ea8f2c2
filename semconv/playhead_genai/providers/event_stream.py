"""Amazon's event streams (``application/vnd.amazon.eventstream``): binary messages with checksums.

A message: its length, the length of its headers and the CRC-32 of these two, each 32 bits, big-endian;
headers; payload; the CRC-32 of everything before. A payload that carries the bytes of another stream
(``{"bytes": …}``, as models are invoked on Bedrock) is unwrapped.
"""

from __future__ import annotations

import base64
import binascii
import struct
from typing import Any, cast

import msgspec

from playhead_genai.providers.sse import ServerSentEvent

_PRELUDE = struct.Struct(">III")
_CHECKSUM = struct.Struct(">I")
_LONGEST = 24 << 20
_SIZES = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Type of a header's value → its size in bytes; of types 6 and 7 the size is given with the value."""


class Damaged(ValueError):
    """The bytes are no event stream from here on."""


def read_events(data: bytes) -> tuple[list[ServerSentEvent], str]:
    """Return the events in ``data`` and what is wrong with it; a message at its end may be incomplete.

    An exception that the provider sent is an event ``error`` of the form ``{"error": {…}}``.
    """
    found: list[ServerSentEvent] = []
    at = 0
    try:
        while at + _PRELUDE.size <= len(data):
            total, headers, checksum = _PRELUDE.unpack_from(data, at)
            if checksum != binascii.crc32(data[at : at + 8]):
                raise Damaged("wrong checksum of its head")
            if not headers + 16 <= total <= _LONGEST:
                raise Damaged("impossible length")
            if at + total > len(data):
                break
            (checksum,) = _CHECKSUM.unpack_from(data, at + total - 4)
            if checksum != binascii.crc32(data[at : at + total - 4]):
                raise Damaged("wrong checksum")
            begin = at + _PRELUDE.size
            said = _headers(data[begin : begin + headers])
            found.append(_event(said, data[begin + headers : at + total - 4]))
            at += total
    except Damaged as damage:
        return found, f"event {len(found)} of the stream: {damage}"
    return found, ""


def _headers(data: bytes) -> dict[str, str]:
    """Return the headers that are text."""
    found: dict[str, str] = {}
    at = 0
    while at < len(data):
        name = data[at + 1 : at + 1 + data[at]].decode("utf-8", "replace")
        at += 1 + data[at]
        kind = data[at] if at < len(data) else -1
        at += 1
        if kind in (6, 7):
            size = int.from_bytes(data[at : at + 2], "big")
            at += 2
        elif kind in _SIZES:
            size = _SIZES[kind]
        else:
            raise Damaged("unreadable headers")
        if at + size > len(data):
            raise Damaged("unreadable headers")
        if kind == 7:
            found[name] = data[at : at + size].decode("utf-8", "replace")
        at += size
    return found


def _event(headers: dict[str, str], payload: bytes) -> ServerSentEvent:
    kind = headers.get(":message-type", "event")
    if kind in ("exception", "error"):
        error = {
            "type": headers.get(":exception-type") or headers.get(":error-code") or kind,
            "message": headers.get(":error-message") or _message(payload),
        }
        return ServerSentEvent("error", msgspec.json.encode({"type": "error", "error": error}))
    name = headers.get(":event-type", "")
    inner = _inner(payload) if name == "chunk" else None
    return ServerSentEvent(name if inner is None else "", payload if inner is None else inner)


def _message(payload: bytes) -> str:
    try:
        said: Any = msgspec.json.decode(payload)
    except (ValueError, RecursionError):
        return payload.decode("utf-8", "replace")
    if isinstance(said, dict):
        fields = cast(dict[str, Any], said)
        said = fields.get("message", fields.get("Message", ""))
    return said if isinstance(said, str) else ""


class _Chunk(msgspec.Struct):
    bytes: str


def _inner(payload: bytes) -> bytes | None:
    """Return the bytes that a payload carries; None if it carries none."""
    try:
        return base64.b64decode(msgspec.json.decode(payload, type=_Chunk).bytes, validate=True)
    except (ValueError, RecursionError):
        return None
