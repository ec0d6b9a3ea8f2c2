"""How spool, wire and store grow with the steps of an agent: once per size, with the real pieces.

The agent runs with nothing listening, so that its whole record stays in the spool. `playhead spool push`
then sends it, through a relay that counts bytes, to a receiver with an empty store. ``all said`` is the
size of the last request: the whole conversation, once. Linear growth means the same number of bytes per
step at every size.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import threading
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from standing import BIN, HERE, Standing, disk_bytes, unheard

SIZES = (25, 50, 100, 200)
TOLERANCE = 1.15
"""Largest allowed ratio of bytes per step at the largest size to those at the smallest."""


class Relay(ThreadingHTTPServer):
    """Forwards requests to a receiver and counts the bytes of their bodies."""

    def __init__(self, target: str) -> None:
        super().__init__(("127.0.0.1", 0), _Pass)
        self.target = target
        self.wire_bytes = 0
        self.largest_bytes = 0
        self.lock = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Pass(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: Relay

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            self.server.wire_bytes += len(body)
            self.server.largest_bytes = max(self.server.largest_bytes, len(body))
        self.forward(body)

    def do_GET(self) -> None:
        self.forward(None)

    def forward(self, body: bytes | None) -> None:
        kept = {"content-type", "content-encoding", "authorization", "user-agent"}
        headers = {name: value for name, value in self.headers.items() if name.lower() in kept}
        request = urllib.request.Request(self.server.target + self.path, body, headers)
        try:
            with urllib.request.urlopen(request) as answer:
                status, kind, data = answer.status, answer.headers["content-type"], answer.read()
        except urllib.error.HTTPError as refused:
            status, kind, data = refused.code, refused.headers["content-type"], refused.read()
        self.send_response(status)
        self.send_header("content-type", kind or "application/octet-stream")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass


def one(steps: int) -> dict[str, float]:
    """Record, send and store one agent."""
    with tempfile.TemporaryDirectory() as place:
        spool, data = Path(place, "spool"), Path(place, "data")
        environment = unheard(spool, data)
        agent = [BIN / "opentelemetry-instrument", sys.executable, HERE / "steps_agent.py", str(steps)]
        said = subprocess.run(agent, env=environment, check=True, capture_output=True, text=True)
        spool_bytes = disk_bytes(spool)
        standing = Standing(data)
        relay = Relay(standing.http)
        environment["PLAYHEAD_ENDPOINT"] = relay.url
        push = [BIN / "playhead", "spool", "push"]
        subprocess.run(push, env=environment, check=True, stdout=subprocess.DEVNULL)
        relay.shutdown()
        standing.stop(signal.SIGTERM)
        return {
            "steps": steps,
            "said": int(said.stdout),
            "spool": spool_bytes,
            "wire": relay.wire_bytes,
            "largest request": relay.largest_bytes,
            "store": disk_bytes(data),
        }


def table(found: list[dict[str, float]]) -> str:
    """The figures as a Markdown table: bytes, with bytes per step in brackets."""
    columns = ("said", "spool", "wire", "store")
    lines = ["| steps | all said | spool | wire | store |", "|---|---|---|---|---|"]
    for row in found:
        cells = [f"{row[name]:,} ({row[name] / row['steps']:,.0f})" for name in columns]
        lines.append(f"| {row['steps']} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> int:
    """Measure every size, print the table; with ``--check`` fail if growth is not linear."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    found = [one(steps) for steps in SIZES]
    print(table(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")
    first, last = found[0], found[-1]
    status = 0
    for name in ("spool", "wire", "store"):
        ratio = (last[name] / last["steps"]) / (first[name] / first["steps"])
        print(f"{name}: bytes a step times {ratio:.2f} from {SIZES[0]} to {SIZES[-1]} steps")
        status |= given.check and ratio > TOLERANCE
    return int(status)


if __name__ == "__main__":
    sys.exit(main())
