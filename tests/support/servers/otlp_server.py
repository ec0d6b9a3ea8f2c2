"""An OTLP/HTTP endpoint that keeps the requests it receives, and can forward them."""

from __future__ import annotations

import gzip
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import urllib3
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from playhead_core.otlp import value_of


class OtlpServer:
    """Keeps requests by signal; ``relay``: an endpoint to which every request is forwarded."""

    def __init__(self, relay: str = "") -> None:
        self.traces: list[ExportTraceServiceRequest] = []
        self.logs: list[ExportLogsServiceRequest] = []
        self.metrics: list[ExportMetricsServiceRequest] = []
        self.body_bytes = 0
        """Total size of all bodies as received, compressed or not."""
        self.largest_bytes = 0
        """Largest body after decompression."""
        outer = self
        pool = urllib3.PoolManager()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer._take(self.path, body, self.headers.get("content-encoding", ""))
                status, answer = 200, b""
                if relay:
                    told = pool.request("POST", relay + self.path, body=body, headers=dict(self.headers))
                    status, answer = told.status, told.data
                self._reply(status, answer, "application/x-protobuf")

            def do_GET(self) -> None:
                if not relay:
                    return self._reply(404, b"", "text/plain")
                told = pool.request("GET", relay + self.path)
                self._reply(told.status, told.data, told.headers.get("content-type", ""))

            def _reply(self, status: int, body: bytes, kind: str) -> None:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                return

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def _take(self, path: str, body: bytes, encoding: str) -> None:
        data = gzip.decompress(body) if encoding == "gzip" else body
        with self._lock:
            self.body_bytes += len(body)
            self.largest_bytes = max(self.largest_bytes, len(data))
            if path.endswith("/v1/traces"):
                self.traces.append(ExportTraceServiceRequest.FromString(data))
            elif path.endswith("/v1/logs"):
                self.logs.append(ExportLogsServiceRequest.FromString(data))
            elif path.endswith("/v1/metrics"):
                self.metrics.append(ExportMetricsServiceRequest.FromString(data))

    def spans(self) -> list[Span]:
        """All received spans, in order of arrival."""
        with self._lock:
            return [
                span
                for request in self.traces
                for resource in request.resource_spans
                for scope in resource.scope_spans
                for span in scope.spans
            ]

    def __enter__(self) -> OtlpServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def attributes(span: Span) -> dict[str, Any]:
    """The attributes of a span as Python values."""
    return {pair.key: value_of(pair.value) for pair in span.attributes}
