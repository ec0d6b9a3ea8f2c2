"""Calls over gRPC as `playhead_genai.providers.derive` reads them: URL, answer, messages as one body.

In that body, each message has its length before it, as HTTP/2 carries them.
Source: https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from playhead_core.facts import Exchange
from playhead_genai.providers.derive import WireResponse
from playhead_genai.providers.dialect import PartlyRead
from playhead_genai.providers.reading import Object
from playhead_genai.providers.xai.protobuf import Schema, read
from playhead_semconv import attributes as a

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
    """Return the message of an answer that has one; empty if it did not come."""
    return said[-1] if said else {}


STATUSES: Final = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE "
    "DATA_LOSS UNAUTHENTICATED"
).split()
"""Names of the status codes, from 0."""


def request_line(key: str) -> tuple[str, str]:
    """Return method and URL of an exchange with this key; every call over gRPC is a POST."""
    method, space, url = key.partition(" ")
    return (method, url) if space else ("POST", key)


def request_told(attributes: Mapping[str, Any]) -> tuple[str, str]:
    """Return method and URL, or path, of the span of a request."""
    if attributes.get(a.RPC_SYSTEM_NAME) == "grpc":
        return "POST", f"/{attributes.get(a.RPC_METHOD, '')}"
    if attributes.get(a.RPC_SYSTEM) == "grpc":
        return "POST", f"/{attributes.get(a.RPC_SERVICE, '')}/{attributes.get(a.RPC_METHOD, '')}"
    return str(attributes.get(a.HTTP_REQUEST_METHOD, "")), str(attributes.get(a.URL_FULL, ""))


def grpc_response(exchange: Exchange, received: Sequence[bytes]) -> WireResponse:
    """Return the answer of a call over gRPC; ``received``: its messages."""
    end = exchange.end
    said = {} if end is None else end.values
    code = said.get(a.RPC_GRPC_STATUS_CODE)
    error = ("", "")
    if isinstance(code, int) and code:
        name = STATUSES[code] if 0 <= code < len(STATUSES) else str(code)
        error = (name, str(said.get(a.PLAYHEAD_GRPC_DETAILS, "")))
    response = grpc_messages(received, complete=end is not None and end.how == "complete")
    response.error = error
    if not (received or exchange.head or code is not None):
        response.status_code = None
    return response


def grpc_messages(received: Sequence[bytes], *, complete: bool) -> WireResponse:
    """Return an answer of which these messages have come. ``complete``: there are no more."""
    body = [prefixed(message) for message in received]
    return WireResponse(200, [("content-type", GRPC)], body, complete=complete)
