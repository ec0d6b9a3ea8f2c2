"""The demo's provider: OpenAI chat and responses, Anthropic messages, and two HTTP tools.

One server on loopback, which streams if the request asks for it. The first attempt at a chat with tools
gets a 429, as from a busy provider. ``python -m playhead_cli.demo`` runs it alone.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from urllib.parse import parse_qs, urlsplit

from playhead_cli.demo import answers
from playhead_cli.demo.shapes import (
    anthropic_messages,
    failures,
    openai_chat,
    openai_responses,
    sse,
)
from playhead_cli.demo.shapes.sse import Json
from playhead_cli.running.kept_provider import STOP, proof, variables

KEPT = "/kept/"
"""Paths for the proof of a kept provider and for ending it."""

_Answer = Callable[[Json, int], Json]
_Stream = Callable[[Json], list[bytes]]
ROUTES: dict[str, tuple[_Answer, _Stream]] = {
    "/v1/chat/completions": (answers.chat, lambda whole: sse.chat(openai_chat.chunks(whole))),
    "/v1/responses": (answers.response, lambda whole: sse.events(openai_responses.events(whole))),
    "/v1/messages": (answers.message, lambda whole: sse.events(anthropic_messages.events(whole))),
}
TOOLS: dict[str, tuple[str, dict[str, Json]]] = {
    "/weather": ("city", answers.WEATHER),
    "/orders": ("order", answers.ORDERS),
    "/search": ("query", answers.MAIL),
}


class Provider:
    """The running server.

    ``pace_s``: pause between the events of a stream. ``thinks_s``: pause before a model answers.
    ``key``: the secret with which a kept provider proves its identity, see `KeptProvider`.
    OSError if the port is taken.
    """

    def __init__(
        self, port: int = 0, *, pace_s: float = 0.02, thinks_s: float = 0.0, key: str = ""
    ) -> None:
        self.pace_s = pace_s
        self.thinks_s = thinks_s
        self.key = key
        self._lock = threading.Lock()
        self._seen: Counter[bytes] = Counter()
        self._requests = 0
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, name="provider", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        """The address on which it listens."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """``http://127.0.0.1:PORT``."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def environment(self) -> dict[str, str]:
        """The variables with which agents find it."""
        return variables(self.url)

    @property
    def requests(self) -> int:
        """Number of requests that have arrived."""
        return self._requests

    def count(self, body: bytes) -> int:
        """Count a request. Returns how often the same body came before."""
        digest = hashlib.blake2b(body, digest_size=16).digest()
        with self._lock:
            self._requests += 1
            self._seen[digest] += 1
            return self._seen[digest] - 1

    def close(self) -> None:
        """Stop listening. Idempotent."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Provider:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, address: tuple[str, int], provider: Provider) -> None:
        super().__init__(address, _Handler)
        self.provider = provider


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1

    @property
    def _provider(self) -> Provider:
        assert isinstance(self.server, _Server)
        return self.server.provider

    def do_POST(self) -> None:
        """Answer an LLM call."""
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        times = self._provider.count(body)
        route = ROUTES.get(self.path.split("?")[0])
        if route is None:
            return self._json(404, failures.openai(404, message=f"no such path: {self.path}"))
        asked: Json = json.loads(body)
        answer, stream = route
        if times == 0 and _is_first_turn_with_tools(self.path, asked):
            return self._json(429, failures.openai(429), [("retry-after-ms", "150")])
        whole = answer(asked, times)
        time.sleep(self._provider.thinks_s)
        if asked.get("stream"):
            return self._stream(stream(whole))
        self._json(200, whole)

    def do_GET(self) -> None:
        """Answer a tool call, or prove the identity of the kept provider."""
        if self._provider.key and self.path.startswith(KEPT):
            said = self.path.removeprefix(KEPT)
            return self._text(200, "" if said == STOP else proof(self._provider.key, said))
        self._provider.count(self.path.encode())
        parts = urlsplit(self.path)
        name, table = TOOLS.get(parts.path, ("", {}))
        wanted = parse_qs(parts.query).get(name, [""])[0]
        if wanted not in table:
            return self._json(404, {"error": f"nothing at {self.path}"})
        self._json(200, table[wanted])

    def do_DELETE(self) -> None:
        """End the kept provider, if the path proves that its key is known."""
        key = self._provider.key
        if not key or not hmac.compare_digest(self.path, f"{KEPT}{proof(key, STOP)}"):
            return self._text(404, "")
        self._text(200, "")
        os.kill(os.getpid(), signal.SIGTERM)

    def _text(self, status: int, text: str) -> None:
        self._head(status, [("content-type", "text/plain")])
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def _json(self, status: int, body: Json, headers: Iterable[tuple[str, str]] = ()) -> None:
        data = sse.encode(body)
        self._head(status, [("content-type", "application/json"), *headers])
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _stream(self, events: Iterable[bytes]) -> None:
        self._head(200, [("content-type", "text/event-stream; charset=utf-8")])
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for event in events:
            self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
            self.wfile.flush()
            time.sleep(self._provider.pace_s)
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, headers: Iterable[tuple[str, str]]) -> None:
        self.send_response(status)
        self.send_header("x-request-id", "req_demo")
        if self.command == "POST":
            claude = self.path.startswith("/v1/messages")
            who = "anthropic-organization-id" if claude else "openai-organization"
            self.send_header(who, "playhead-demo")
        for name, value in headers:
            self.send_header(name, value)

    def log_message(self, format: str, *args: object) -> None:
        """Suppress the server's log."""


def _is_first_turn_with_tools(path: str, asked: Json) -> bool:
    roles = {message["role"] for message in asked.get("messages", ())}
    return path == "/v1/chat/completions" and bool(asked.get("tools")) and "tool" not in roles
