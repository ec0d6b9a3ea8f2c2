"""Where a boundary (the attempt) and a client patch (the logical call) meet.

A client patch sets `current_call` around the SDK's own funnel. The HTTP boundary runs inside that
context and reports each attempt to the call. Neither imports the other.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Protocol

import msgspec
from opentelemetry.trace import SpanContext

from playhead_core.facts import End, ExchangeId


class Attempt(msgspec.Struct):
    """One attempt of a logical call, over HTTP or gRPC: what was sent and received, as bytes.

    The boundary fills it while the attempt is in progress; the observer only reads. Appends to `chunks`
    are the only work on the caller's path.
    """

    exchange: ExchangeId
    instance: bytes
    method: str
    url: str
    """With credentials removed."""
    request_body: bytes
    resend_count: int
    span_context: SpanContext | None = None
    started_ns: int = 0
    status_code: int | None = None
    response_headers: list[tuple[str, str]] = []
    chunks: list[bytes] = []
    """As on the wire: still content-encoded. Over gRPC: its messages."""
    unpacked: list[str] = []
    """Over HTTP, for each chunk: the content coding that it lacks since credentials were removed."""
    first_chunk_ns: int | None = None
    end: End | None = None
    ended_ns: int | None = None
    last_seq: int = -1
    """Sequence number of the last fact of this attempt."""
    fidelity: str = ""
    """Fidelity, where the tape of a fork or a resume answers the attempt; empty: it is sent."""


class CallObserver(Protocol):
    """Receives the attempts of a logical call. Its method never raises and never blocks."""

    attempts: list[Attempt]
    """The boundary appends each one when its request is on the tape and about to be sent."""

    def attempt_closed(self, attempt: Attempt) -> None:
        """`attempt.end` is set. Called once, from any thread, possibly from a finalizer."""
        ...


current_call: ContextVar[CallObserver | None] = ContextVar("playhead_current_call", default=None)
