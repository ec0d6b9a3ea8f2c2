"""OTLP/gRPC: a synchronous server whose handlers take and return bytes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

import grpc
from google.rpc import code_pb2

from playhead_core.errors import PlayheadError
from playhead_receiver.auth.guard import Guard
from playhead_receiver.endpoints.answers import METHOD, SERVICE, about, status_of
from playhead_receiver.ingest.budget import Share
from playhead_receiver.ingest.encodings import MAX_BYTES
from playhead_receiver.ingest.export import Signal
from playhead_receiver.tenants.tenants import Tenants

SERVICES: dict[str, Signal] = {
    "opentelemetry.proto.collector.trace.v1.TraceService": "traces",
    "opentelemetry.proto.collector.logs.v1.LogsService": "logs",
    "opentelemetry.proto.collector.metrics.v1.MetricsService": "metrics",
}
THREADS = 16
IDLE_S = 75
"""Seconds of silence after which the server pings a client. Clients may ping at any time."""
DETAILS = "grpc-status-details-bin"

_CODES: dict[int, grpc.StatusCode] = {
    code_pb2.INVALID_ARGUMENT: grpc.StatusCode.INVALID_ARGUMENT,
    code_pb2.UNAVAILABLE: grpc.StatusCode.UNAVAILABLE,
    code_pb2.RESOURCE_EXHAUSTED: grpc.StatusCode.RESOURCE_EXHAUSTED,
    code_pb2.UNAUTHENTICATED: grpc.StatusCode.UNAUTHENTICATED,
    code_pb2.PERMISSION_DENIED: grpc.StatusCode.PERMISSION_DENIED,
}


def grpc_server(
    tenants: Tenants, guard: Guard, others: Sequence[Any] = (), *, limit_bytes: int = MAX_BYTES
) -> grpc.Server:
    """A server without a port yet. ``guard`` admits exports; they go to the tenant of their token.

    ``others``: handlers of other services on the same port.
    """
    server = grpc.server(
        ThreadPoolExecutor(THREADS, thread_name_prefix="playhead-grpc"),
        options=[
            ("grpc.max_receive_message_length", limit_bytes),
            ("grpc.so_reuseport", 0),
            ("grpc.keepalive_time_ms", IDLE_S * 1000),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_ping_strikes", 0),
        ],
    )
    for service, signal in SERVICES.items():
        handler = cast(Any, grpc).unary_unary_rpc_method_handler(_receive(tenants, guard, signal))
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"Export": handler}),)
        )
    server.add_generic_rpc_handlers((_about_handler(),))
    if others:
        server.add_generic_rpc_handlers(tuple(others))
    return server


def _about_handler() -> Any:
    """The handler of the about call. It needs no token."""

    def answer_about(_: bytes, __: grpc.ServicerContext) -> bytes:
        return json.dumps(about()).encode()

    handler = cast(Any, grpc).unary_unary_rpc_method_handler(answer_about)
    return grpc.method_handlers_generic_handler(SERVICE, {METHOD: handler})


def _receive(
    tenants: Tenants, guard: Guard, signal: Signal
) -> Callable[[bytes, grpc.ServicerContext], bytes]:
    def export(body: bytes, context: grpc.ServicerContext) -> bytes:
        try:
            metadata: dict[str, Any] = dict(context.invocation_metadata())
            caller = guard.admit(str(metadata.get("authorization", "")), "ingest")
            with Share(tenants.budget) as share:
                share.grow(len(body))
                intake = tenants.services(caller.tenant).intake
                return intake.export(signal, body).message.SerializeToString()
        except PlayheadError as problem:
            status = status_of(problem)
            context.set_trailing_metadata(((DETAILS, status.SerializeToString()),))
            context.abort(_CODES[status.code], status.message)

    return export
