"""Receives OTLP over HTTP, discards it, and counts the bytes. Runs as a process of its own.

With ``--records`` it keeps requests until it is asked for the counts. Then it counts the spans, the
facts of playhead, and the facts that are missing before the last one of their process.

It identifies itself as a playhead receiver, as the real one does, so that playhead sends what such a
receiver would get.
"""

from __future__ import annotations

import gzip
import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from playhead_core.otlp import instance_of, unpack_window

lock = threading.Lock()
received = {"requests": 0, "bytes": 0}
records: Records | None = None


class Records:
    """Received requests and their content."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, bytes]] = []
        """Path and body of the requests that are not counted yet."""
        self.spans = 0
        self.numbers: dict[bytes, set[int]] = {}
        """Numbers of the received facts, by process instance."""

    def counts(self) -> dict[str, int]:
        """Counts of everything so far."""
        while self.kept:
            self.count(*self.kept.pop())
        facts = sum(map(len, self.numbers.values()))
        missing = sum(1 + max(numbers) - len(numbers) for numbers in self.numbers.values())
        return {"spans": self.spans, "facts": facts, "missing": missing}

    def count(self, path: str, body: bytes) -> None:
        """Count one request."""
        if path.endswith("/v1/traces"):
            traces = ExportTraceServiceRequest.FromString(body).resource_spans
            self.spans += sum(len(scope.spans) for one in traces for scope in one.scope_spans)
            return
        for logs in ExportLogsServiceRequest.FromString(body).resource_logs:
            instance = instance_of(logs.resource)
            for record in (record for scope in logs.scope_logs for record in scope.log_records):
                window = unpack_window(record, instance)
                assert not window.problems, window.problems
                self.spans += len(window.spans)
                for fact in window.facts:
                    self.numbers.setdefault(fact.instance, set()).add(fact.seq)


class Handler(BaseHTTPRequestHandler):
    """Answers every export with an empty response, which means full success."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        body = self.rfile.read(size)
        with lock:
            received["requests"] += 1
            received["bytes"] += size
            if records is not None:
                packed = self.headers.get("content-encoding") == "gzip"
                records.kept.append((self.path, gzip.decompress(body) if packed else body))
        self.answer(b"", "application/x-protobuf")

    def do_GET(self) -> None:
        if self.path == "/counts":
            with lock:
                found = received | (records.counts() if records is not None else {})
            return self.answer(json.dumps(found).encode(), "application/json")
        about = {"playhead": "bench", "schema": 1, "windows": 1}
        self.answer(json.dumps(about).encode(), "application/json")

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.send_header("playhead-watched", "0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    records = Records() if "--records" in sys.argv else None
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
