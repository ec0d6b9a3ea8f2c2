"""A call over gRPC as `playhead_genai.providers.derive` reads requests and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from playhead_core.facts import Exchange
from playhead_genai.providers.derive import WireResponse
from playhead_genai.providers.xai.grpc_messages import GRPC, prefixed
from playhead_semconv import attributes as a

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
