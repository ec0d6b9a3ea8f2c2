"""What an endpoint can say to a request, and the transport that asks it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, cast

from playhead_exporter.shipping.endpoint import Signal
from playhead_semconv.otlp_bytes.window_request import VERSION

OTHER_TOKEN = "the endpoint wants another PLAYHEAD_TOKEN: playhead token create NAME --scope ingest"


@dataclass(frozen=True, slots=True)
class Accepted:
    """Taken. What it refused of it is told, and must not be sent again."""

    refused: int = 0
    message: str = ""


@dataclass(frozen=True, slots=True)
class TryLater:
    """Not taken now; the same request may be sent again."""

    reason: str
    after_s: float | None = None
    """The endpoint's own wish."""


@dataclass(frozen=True, slots=True)
class Refused:
    """This request will never be taken: something in it is bad, or it is too large."""

    reason: str
    too_large: bool = False


@dataclass(frozen=True, slots=True)
class Unwelcome:
    """The endpoint takes nothing of this kind, whatever is in it: wrong path, wrong token, …"""

    reason: str
    hint: str = ""
    wrong_place: bool = False
    """Nothing speaks OTLP at that address."""


@dataclass(frozen=True, slots=True)
class About:
    """What an endpoint says it is."""

    playhead: bool
    """A playhead receiver, which derives what spans leave out."""
    windows: bool = False
    """It reads windows of this version."""


Answer: TypeAlias = Accepted | TryLater | Refused | Unwelcome


def read_about(answer: bytes) -> About:
    """What an endpoint has answered to the question; anything but a receiver's JSON is no playhead."""
    try:
        found: Any = json.loads(answer)
    except (ValueError, RecursionError):
        return About(False)
    if not isinstance(found, dict) or "playhead" not in found:
        return About(False)
    return About(True, cast("dict[str, Any]", found).get("windows") == VERSION)


def accepted(response: bytes) -> Accepted:
    """What the response to an export says. Those of all signals have one form."""
    if not response:
        return Accepted()
    # Heavy, and what has taken all says nothing.
    from google.protobuf.message import DecodeError
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

    try:
        said = ExportTraceServiceResponse.FromString(response).partial_success
    except DecodeError:
        return Accepted()
    return Accepted(said.rejected_spans, said.error_message)


class Transport(Protocol):
    """Carries one request. Never raises; blocks for at most the given time."""

    def send(
        self, signal: Signal, request: bytes, timeout_s: float, *, compressed: bool = False
    ) -> Answer:
        """``request``: an OTLP export request, protobuf. ``compressed``: nothing makes it smaller."""
        ...

    def about(self, timeout_s: float) -> About | TryLater:
        """What the endpoint is."""
        ...

    def close(self) -> None:
        """Close its connections. Idempotent."""
        ...
