"""OTLP over gRPC. Needs the extra ``grpc``; nothing else imports this file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import grpc
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from playhead_exporter.delivery import Endpoint, Signal, Trust
from playhead_exporter.shipping.endpoint_answers import (
    OTHER_TOKEN,
    About,
    Answer,
    Declined,
    TryLater,
    Unwelcome,
    accepted,
    read_about,
)

METHODS = {
    Signal.TRACES: "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
    Signal.LOGS: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
    Signal.METRICS: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
}
ABOUT = "/playhead.v1.Receiver/About"
RETRYABLE = frozenset(
    (
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.ABORTED,
        grpc.StatusCode.OUT_OF_RANGE,
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DATA_LOSS,
    )
)
BAD_DATA = frozenset((grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED))
DETAILS = "grpc-status-details-bin"
LONGEST_MESSAGE_BYTES = 64 << 20


class GrpcTransport:
    """One channel to one endpoint."""

    def __init__(
        self,
        endpoint: Endpoint,
        token: str,
        trust: Trust = Trust(),  # noqa: B008, frozen
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Raises `OSError` if a file of ``trust`` cannot be read."""
        self._endpoint = endpoint
        self._metadata = tuple((headers or {}).items())
        if token:
            self._metadata += (("authorization", f"Bearer {token}"),)
        options = [
            ("grpc.max_send_message_length", LONGEST_MESSAGE_BYTES),
            ("grpc.max_reconnect_backoff_ms", 5000),
        ]
        if endpoint.secure:
            credentials = grpc.ssl_channel_credentials(
                _read(trust.ca), _read(trust.key or trust.certificate), _read(trust.certificate)
            )
            self._channel = grpc.secure_channel(
                endpoint.target, credentials, options, grpc.Compression.Gzip
            )
        else:
            self._channel = grpc.insecure_channel(endpoint.target, options, grpc.Compression.Gzip)

    def send(
        self, signal: Signal, request: bytes, timeout_s: float, *, compressed: bool = False
    ) -> Answer:
        """Send a request as one unary call; returns the endpoint's answer."""
        call = cast(Any, self._channel).unary_unary(METHODS[signal])
        coding = grpc.Compression.NoCompression if compressed else grpc.Compression.Gzip
        try:
            answer: bytes = call(request, timeout=timeout_s, metadata=self._metadata, compression=coding)
        except grpc.RpcError as problem:
            return self._answer_to(problem)
        return accepted(answer)

    def about(self, timeout_s: float) -> About | TryLater:
        """Ask with one unary call that only a receiver of playhead implements."""
        call = cast(Any, self._channel).unary_unary(ABOUT)
        try:
            return read_about(call(b"", timeout=timeout_s, metadata=self._metadata))
        except grpc.RpcError as problem:
            answer = self._answer_to(problem)
            return answer if isinstance(answer, TryLater) else About(False)

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def _answer_to(self, problem: Any) -> Answer:
        code: grpc.StatusCode = problem.code()
        reason = f"{self._endpoint.target} answered {code.name}: {problem.details()}"
        after_s = _retry_info_s(problem)
        if code in RETRYABLE or (code is grpc.StatusCode.RESOURCE_EXHAUSTED and after_s is not None):
            return TryLater(reason, after_s)
        if code in BAD_DATA:
            return Declined(reason, too_large=code is grpc.StatusCode.RESOURCE_EXHAUSTED)
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return Unwelcome(reason, "PLAYHEAD_ENDPOINT is the address of an OTLP endpoint", True)
        if code in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED):
            return Unwelcome(reason, OTHER_TOKEN)
        return Unwelcome(reason)


def _read(path: str) -> bytes | None:
    return Path(path).read_bytes() if path else None


def _retry_info_s(problem: Any) -> float | None:
    for key, value in problem.trailing_metadata() or ():
        if key != DETAILS:
            continue
        for detail in Status.FromString(value).details:
            info = RetryInfo()
            if detail.Unpack(info):
                return info.retry_delay.seconds + info.retry_delay.nanos / 1e9
    return None
