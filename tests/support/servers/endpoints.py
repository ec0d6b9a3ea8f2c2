"""OTLP endpoints on loopback that keep what they receive, and misbehave as a test demands."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import grpc
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from playhead_core.facts import Fact
from playhead_core.otlp import Window, instance_of, is_window, unpack, unpack_window

ABOUT = "/playhead.v1.Receiver/About"
DEADLINE_S = 60


@dataclass
class Reply:
    """The answer of an endpoint to one request. The default: accepted."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    how: str = "answer"
    """answer, hang (until the endpoint closes), cut (in the middle of the answer), drop (no answer)."""


@dataclass
class Got:
    """One received request, decompressed."""

    path: str
    headers: dict[str, str]
    body: bytes
    taken: bool


def facts_of(logs: Any) -> list[Fact]:
    windows = windows_of(logs)
    return [fact for one in windows for fact in one.facts] if windows else list(unpack(logs))


def windows_of(logs: Any) -> list[Window]:
    return [
        unpack_window(record, instance_of(logs.resource))
        for scope in logs.scope_logs
        for record in scope.log_records
        if is_window(record)
    ]


class Kept:
    """Received requests and prepared answers of an endpoint."""

    def __init__(self) -> None:
        self.requests: list[Got] = []
        self.replies: deque[Any] = deque()
        """Answers to the next requests, in order; after these everything is accepted."""
        self.rule: Callable[[str, bytes], Any] | None = None
        """Answer to any request, by path and body; if it returns None, the request is accepted."""
        self._changed = threading.Condition()
        self.answering = threading.Event()
        """While it is clear, requests wait for their answers."""
        self.answering.set()
        self.closing = threading.Event()

    def next_reply(self, path: str, body: bytes) -> Any:
        self.answering.wait(DEADLINE_S)
        if self.replies:
            return self.replies.popleft()
        return self.rule(path, body) if self.rule is not None else None

    def add(self, got: Got) -> None:
        with self._changed:
            self.requests.append(got)
            self._changed.notify_all()

    def wait(self, condition: Callable[[], Any]) -> None:
        """Wait until ``condition()`` holds; it is checked whenever a request has arrived."""
        with self._changed:
            assert self._changed.wait_for(condition, DEADLINE_S), "the endpoint did not get it in time"

    def taken(self, path: str) -> list[bytes]:
        return [got.body for got in self.requests if got.taken and got.path == path]

    def facts(self) -> list[Fact]:
        """Facts in accepted requests, in order of arrival."""
        return [
            fact
            for body in self.taken("/v1/logs")
            for logs in ExportLogsServiceRequest.FromString(body).resource_logs
            for fact in facts_of(logs)
        ]

    def windows(self) -> list[Window]:
        """Windows in accepted requests, in order of arrival."""
        return [
            window
            for body in self.taken("/v1/logs")
            for logs in ExportLogsServiceRequest.FromString(body).resource_logs
            for window in windows_of(logs)
        ]

    def spans(self) -> list[Span]:
        """Spans in accepted requests, in order of arrival."""
        return [
            span
            for body in self.taken("/v1/traces")
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        ]


class HttpEndpoint(Kept):
    """OTLP/HTTP. ``playhead``: answers GET /v1/playhead as a receiver that supports ``windows``."""

    def __init__(self, playhead: bool = True, windows: int = 0) -> None:
        super().__init__()
        self.asked = 0
        kept = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                kept.asked += 1
                kept.answering.wait(DEADLINE_S)
                if playhead and self.path == "/v1/playhead":
                    said = json.dumps({"playhead": "0", "windows": windows}).encode()
                    self.reply(Reply(200, {"content-type": "application/json"}, said))
                else:
                    self.reply(Reply(404))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if self.headers.get("content-encoding") == "gzip":
                    body = gzip.decompress(body)
                reply = kept.next_reply(self.path, body) or Reply()
                headers = {name.lower(): value for name, value in self.headers.items()}
                taken = reply.status == 200 and reply.how == "answer"
                if taken:
                    kept.add(Got(self.path, headers, body, taken))
                self.reply(reply)
                if not taken:
                    kept.add(Got(self.path, headers, body, taken))

            def reply(self, reply: Reply) -> None:
                if reply.how == "hang":
                    kept.closing.wait(DEADLINE_S)
                if reply.how in ("hang", "drop"):
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                self.send_response(reply.status)
                for name, value in reply.headers.items():
                    self.send_header(name, value)
                size = len(reply.body) + (100 if reply.how == "cut" else 0)
                self.send_header("content-length", str(size))
                self.end_headers()
                self.wfile.write(reply.body)
                if reply.how == "cut":
                    self.close_connection = True

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()

    def close(self) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()


@dataclass
class GrpcReply:
    """An error of a gRPC endpoint, or (code OK) a response message."""

    code: grpc.StatusCode
    details: str = ""
    trailing: tuple[tuple[str, bytes], ...] = ()
    body: bytes = b""


class GrpcEndpoint(Kept):
    """OTLP/gRPC with the default limit of 4 MiB per message. ``about``: its description of itself."""

    def __init__(self, about: bytes = b"") -> None:
        super().__init__()
        paths = {
            "/opentelemetry.proto.collector.trace.v1.TraceService/Export": "/v1/traces",
            "/opentelemetry.proto.collector.logs.v1.LogsService/Export": "/v1/logs",
        }
        kept = self

        class Service(grpc.GenericRpcHandler):
            def service(self, handler_call_details: Any) -> Any:
                if about and handler_call_details.method == ABOUT:
                    return grpc.unary_unary_rpc_method_handler(lambda _, __: about)
                path = paths.get(handler_call_details.method)
                if path is None:
                    return None
                metadata = {key: str(value) for key, value in handler_call_details.invocation_metadata}

                def export(body: bytes, context: Any) -> bytes:
                    reply = kept.next_reply(path, body) or GrpcReply(grpc.StatusCode.OK)
                    taken = reply.code is grpc.StatusCode.OK
                    kept.add(Got(path, metadata, body, taken))
                    if taken:
                        return reply.body
                    context.set_trailing_metadata(reply.trailing)
                    context.abort(reply.code, reply.details)
                    raise AssertionError

                return grpc.unary_unary_rpc_method_handler(export)

        self._server = grpc.server(ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers((Service(),))
        port = self._server.add_insecure_port("127.0.0.1:0")
        self.url = f"http://127.0.0.1:{port}"
        self._server.start()

    def close(self) -> None:
        self.closing.set()
        self._server.stop(0).wait()


@contextmanager
def http_endpoint(playhead: bool = True, windows: int = 0) -> Iterator[HttpEndpoint]:
    endpoint = HttpEndpoint(playhead, windows)
    try:
        yield endpoint
    finally:
        endpoint.close()


@contextmanager
def grpc_endpoint(about: bytes = b"") -> Iterator[GrpcEndpoint]:
    endpoint = GrpcEndpoint(about)
    try:
        yield endpoint
    finally:
        endpoint.close()
