"""Amazon's event streams as bytes, written from their public description."""

import base64
import binascii
import json
import struct
from typing import Any


def message(payload: bytes, **headers: str) -> bytes:
    """One message; ``event_type`` is the header ``:event-type``."""
    head = b""
    for name, value in headers.items():
        key = b":" + name.replace("_", "-").encode()
        head += bytes([len(key)]) + key + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    prelude = struct.pack(">II", 16 + len(head) + len(payload), len(head))
    whole = prelude + struct.pack(">I", binascii.crc32(prelude)) + head + payload
    return whole + struct.pack(">I", binascii.crc32(whole))


def event(name: str, value: Any) -> bytes:
    """An event with JSON."""
    return message(
        json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"),
        event_type=name,
        message_type="event",
    )


def chunk(value: Any) -> bytes:
    """A piece of the stream of an invoked model."""
    inner = base64.b64encode(json.dumps(value).encode()).decode()
    return event("chunk", {"bytes": inner, "p": "abcdef"})


def exception(kind: str, text: str) -> bytes:
    """An exception within a stream."""
    said = json.dumps({"message": text}).encode()
    return message(said, exception_type=kind, message_type="exception")
