"""A server in a thread of the program, for doubles that record."""

import http.server
import threading


class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = f"answer to {self.path}".encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def serve():
    """A server, and where it is."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"
