"""The answers that an endpoint can give to a request, and the interface of a transport."""

from __future__ import annotations

import json
from typing import Any, Protocol, TypeAlias, cast

import msgspec

from playhead_core.otlp_bytes import VERSION
from playhead_exporter.delivery import Signal

WATCHED = "playhead-watched"
"""Response header of a receiver: ``1`` if a live page or an alert waits for data, else ``0``."""
OTHER_TOKEN = "the endpoint wants another PLAYHEAD_TOKEN: playhead token create NAME --scope ingest"


class Accepted(msgspec.Struct, frozen=True):
    """The request was accepted. Items that it refused are counted, and must not be sent again."""

    refused: int = 0
    message: str = ""
    watched: bool = True
    """False if the endpoint says that no live page and no alert waits for data."""


class TryLater(msgspec.Struct, frozen=True):
    """The request was not accepted now; the same request may be sent again."""

    reason: str
    after_s: float | None = None
    """Seconds after which the endpoint asks for a retry; None: not stated."""


class Declined(msgspec.Struct, frozen=True):
    """This request will never be accepted: it is invalid, or too large."""

    reason: str
    too_large: bool = False


class Unwelcome(msgspec.Struct, frozen=True):
    """The endpoint accepts no request of this kind: wrong path, wrong token, …"""

    reason: str
    hint: str = ""
    wrong_place: bool = False
    """Whether there is no OTLP endpoint at that address."""


class About(msgspec.Struct, frozen=True):
    """Declaration of an endpoint about itself."""

    playhead: bool
    """Whether it is a playhead receiver, which derives what spans leave out."""
    reads_batches: bool = False
    """Whether it reads batch records of this version."""


Answer: TypeAlias = Accepted | TryLater | Declined | Unwelcome


def read_about(answer: bytes) -> About:
    """Parse an endpoint's answer to `Transport.about`; only a receiver's JSON counts as playhead."""
    try:
        declared: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return About(False)
    if not isinstance(declared, dict) or "playhead" not in declared:
        return About(False)
    return About(True, cast("dict[str, Any]", declared).get("windows") == VERSION)


def accepted(response: bytes, watched: bool = True) -> Accepted:
    """Parse the response to an export. The responses of all signals have the same form."""
    if not response:
        return Accepted(watched=watched)
    # The import is expensive, and the usual response, that accepts everything, is empty.
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        partial = ExportTraceServiceResponse.FromString(response).partial_success
    except DecodeError:
        return Accepted(watched=watched)
    return Accepted(partial.rejected_spans, partial.error_message, watched)


class Transport(Protocol):
    """Carries one request. Never raises; blocks for at most the given time."""

    def send(
        self, signal: Signal, request: bytes, timeout_s: float, *, compressed: bool = False
    ) -> Answer:
        """Send ``request``, an OTLP export request in protobuf.

        ``compressed``: compressing it again gains nothing.
        """
        ...

    def about(self, timeout_s: float) -> About | TryLater:
        """Ask what the endpoint is."""
        ...

    def close(self) -> None:
        """Close its connections. Idempotent."""
        ...
