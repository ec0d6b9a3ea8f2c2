"""OTLP/gRPC: a synchronous server whose handlers take and give bytes."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import grpc
from google.rpc import code_pb2

from playhead_receiver.intake.budget import Share
from playhead_receiver.intake.encodings import MAX_BYTES
from playhead_receiver.intake.export import Intake, Signal
from playhead_receiver.intake.refusal import Unauthenticated, status_of
from playhead_semconv.errors import PlayheadError

SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}
THREADS = 16
DETAILS = "grpc-status-details-bin"

_CODES: dict[int, grpc.StatusCode] = {
    code_pb2.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    code_pb2.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    code_pb2.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    code_pb2.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
}


def grpc_server(intake: Intake, *, token: str = "") -> grpc.Server:
    """A server without a port yet. With a ``token`` every export must bring it as bearer."""
    server = grpc.server(
        ThreadPoolExecutor(THREADS, thread_name_prefix="playhead-grpc"),
        options=[
            ("grpc.max_receive_message_length", MAX_BYTES),
            ("grpc.so_reuseport", 0),
        ],
    )
    for service, signal in SERVICES.items():
        handler = cast(Any, grpc).unary_unary_rpc_method_handler(_receive(intake, signal, token))
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"Export": handler}),)
        )
    return server


def _receive(
    intake: Intake, signal: Signal, token: str
) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    def export(body: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            _check(context, token)
            with Share(intake.budget) as share:
                share.grow(len(body))
                return intake.export(signal, body).message.SerializeToString()
        except PlayheadError as problem:
            status = status_of(problem)
            context.set_trailing_metadata(((DETAILS, status.SerializeToString()),))
            context.abort(_CODES[status.code], status.message)

    return export


def _check(context: grpc.ServicerContext, token: str) -> None:
    if not token:
        return
    given: dict[str, Any] = dict(context.invocation_metadata())
    if not hmac.compare_digest(str(given.get("authorization", "")).encode(), f"Bearer {token}".encode()):
        raise Unauthenticated("the token is missing or wrong", hint="export PLAYHEAD_TOKEN=…")
