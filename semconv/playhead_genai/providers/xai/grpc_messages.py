"""The messages of a call over gRPC as one body: each with its length before it, as HTTP/2 carries them.

Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from playhead_genai.providers.dialect import PartlyRead
from playhead_genai.providers.reading import Object
from playhead_genai.providers.xai.protobuf import Schema, read

GRPC: Final = "application/grpc"
"""Media type of calls over gRPC."""

_HEAD = struct.Struct(">BI")
"""Whether the message is compressed (it is not, where a program gets it), and its length in bytes."""


def prefixed(message: bytes) -> bytes:
    """Return a message with its length before it."""
    return _HEAD.pack(0, len(message)) + message


def messages(data: bytes) -> Iterator[bytes]:
    """Yield the messages of `prefixed` ones that follow each other."""
    at = 0
    while at < len(data):
        _, size = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        yield data[at : at + size]
        at += size


def read_body(
    kind: str, data: bytes, schema: Schema, turn: Callable[[list[Object]], Object]
) -> Object | None:
    """Return what `Dialect.media` does: ``turn`` of the messages in ``data``, all with ``schema``."""
    if not kind.startswith(GRPC):
        return None
    said: list[Object] = []
    try:
        for message in messages(data):
            said.append(read(message, schema))
    except (ValueError, RecursionError) as problem:
        raise PartlyRead(f"message {len(said) + 1}: {problem}", turn(said)) from None
    return turn(said)


def single(said: list[Object]) -> Object:
    """Return the message of an answer that has one; empty where it did not come."""
    return said[-1] if said else {}
