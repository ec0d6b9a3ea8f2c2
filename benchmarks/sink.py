"""Takes OTLP over HTTP and throws it away; counts the bytes. Runs as a process of its own.

It says that it is a playhead receiver, as the real one does, so that playhead sends what one would get.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

lock = threading.Lock()
received = {"requests": 0, "bytes": 0}


class Handler(BaseHTTPRequestHandler):
    """Answers every export with an empty, that is full, success."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        self.rfile.read(size)
        with lock:
            received["requests"] += 1
            received["bytes"] += size
        self.answer(b"", "application/x-protobuf")

    def do_GET(self) -> None:
        if self.path == "/counts":
            return self.answer(json.dumps(received).encode(), "application/json")
        about = {"playhead": "bench", "schema": 1, "windows": 1}
        self.answer(json.dumps(about).encode(), "application/json")

    def answer(self, body: bytes, kind: str) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(f"http://127.0.0.1:{server.server_address[1]}", flush=True)
    server.serve_forever()
