"""A TLS server with a self-signed certificate that is not trusted by default."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

IDENTITY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgl3ppRIqowABt8ltI
rhN0AqQzZMjKCSsdon9X3skBGa+hRANCAARGTAOXUPZgjvcZnlpOtoopRMqrnAiG
VAfDy2xu4aUVuFJBH9wU7wUDNMR3egdgZ4Biu+s5CG/wZ5ov3yCfVIuW
-----END PRIVATE KEY-----
-----BEGIN CERTIFICATE-----
MIIBkDCCATagAwIBAgIUBXM6W6o2+zdVUQSI/NeWwAXMWBswCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTA5MDAxNloYDzIxMjYxMDI4
MDkwMDE2WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAARGTAOXUPZgjvcZnlpOtoopRMqrnAiGVAfDy2xu4aUVuFJBH9wU7wUD
NMR3egdgZ4Biu+s5CG/wZ5ov3yCfVIuWo2QwYjAdBgNVHQ4EFgQUgxjFyryBJQ5L
dJ1TiJIwj6TfNUIwHwYDVR0jBBgwFoAUgxjFyryBJQ5LdJ1TiJIwj6TfNUIwDwYD
VR0TAQH/BAUwAwEB/zAPBgNVHREECDAGhwR/AAABMAoGCCqGSM49BAMCA0gAMEUC
ID2a7HYsqGZS2LcaTzsP2r82I0qW7dOjJOUY/QYSg3mkAiEAk5EanPX7dWX8K9Hm
QqO9b9jILzinlKJ7jaGnH74lhIQ=
-----END CERTIFICATE-----
"""
"""Key and certificate of 127.0.0.1, made for these tests."""


@contextmanager
def tls_server(folder: Path) -> Iterator[tuple[str, str]]:
    """Its address, and the file with the certificate to trust. Answers count from 1."""
    identity = folder / "identity.pem"
    identity.write_text(IDENTITY)
    count = iter(range(1, 1000))

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = b"%d" % next(count)
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Suppress the server's log."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(identity)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.handle_error = lambda request, client_address: None  # type: ignore[method-assign]
        server.daemon_threads = True
        server.block_on_close = False
        thread = threading.Thread(target=server.serve_forever, name="playhead-tls", daemon=True)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}/", str(identity)
        server.shutdown()
        thread.join()
