"""A real gRPC server in a process of its own, with generic handlers: messages are bytes.

::

    with GrpcServer() as server:
        grpc.insecure_channel(server.target).unary_unary("/test.Service/Ask")
"""

from __future__ import annotations

import itertools
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

SECRET = b"sk-received0123456789abcdef"
COUNT = itertools.count(1)
"""Counts all calls, so that identical requests get different answers."""


class GrpcServer:
    """Runs for the length of the ``with`` block."""

    def __enter__(self) -> GrpcServer:
        self._process = subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        self.target = f"127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()


def trace_context(context: Any) -> bytes:
    """The trace context in the metadata of a call, one field a line."""
    fields = ("traceparent", "tracestate", "baggage")
    return "\n".join(
        f"{key} {value}" for key, value in context.invocation_metadata() if key in fields
    ).encode()


def ask(request: bytes, context: Any) -> bytes:
    import grpc

    if request == b"context":
        return trace_context(context)
    context.send_initial_metadata((("served-by", "test"), ("raw-bin", b"\x00\xff")))
    if request == b"fail":
        context.set_trailing_metadata((("reason", "because"), ("set-cookie", "a=received-cookie-0123")))
        context.abort(grpc.StatusCode.NOT_FOUND, "no such thing")
    if request == b"rich":
        from google.protobuf import any_pb2
        from google.rpc import code_pb2, error_details_pb2, status_pb2
        from grpc_status import rpc_status

        detail = any_pb2.Any()
        detail.Pack(error_details_pb2.ErrorInfo(reason="QUOTA", domain="test"))
        status = status_pb2.Status(
            code=code_pb2.RESOURCE_EXHAUSTED, message="too much", details=[detail]
        )
        context.abort_with_status(rpc_status.to_status(status))
    if request == b"slow":
        threading.Event().wait(10)
    if request == b"left":
        return b"%f" % context.time_remaining()
    if request == b"secret":
        return b'{"client_secret": "' + SECRET + b'"}'
    context.set_trailing_metadata((("took", "1"),))
    return b"%d:%b" % (next(COUNT), request)


def list_(request: bytes, context: Any) -> Any:
    import grpc

    if request == b"left":
        yield b"%f" % context.time_remaining()
    if request == b"context":
        yield trace_context(context)
        return
    for number in range(5):
        yield b"%b %d" % (request, number)
    if request == b"fail":
        context.abort(grpc.StatusCode.DATA_LOSS, "the rest is gone")
    if request == b"slow":
        threading.Event().wait(10)


def collect(requests: Any, context: Any) -> bytes:
    joined = b",".join(requests)
    return trace_context(context) if joined == b"context" else b"%d:" % next(COUNT) + joined


def chat(requests: Any, context: Any) -> Any:
    import grpc

    for request in requests:
        if request == b"fail":
            context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not now")
        yield trace_context(context) if request == b"context" else b"%d:%b" % (next(COUNT), request)


def main() -> None:
    import grpc

    server = grpc.server(ThreadPoolExecutor(32))
    handlers = {
        "Ask": grpc.unary_unary_rpc_method_handler(ask),
        "List": grpc.unary_stream_rpc_method_handler(list_),
        "Collect": grpc.stream_unary_rpc_method_handler(collect),
        "Chat": grpc.stream_stream_rpc_method_handler(chat),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service", handlers),))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
