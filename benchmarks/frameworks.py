"""What the hooks for frameworks cost an agent, beside the tracing that each framework has itself.

A run makes two model calls and one tool call. The variants take turns, each in a new process: ``off``,
playhead at level ``exchanges`` without its framework hooks, playhead with them, and the framework's
built-in tracing. The benchmark measures the processor time of a run, including the threads that export.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from frameworks_program import AGENTS, SAID
from latency import HERE, sink

APART = [Path(sys.prefix, f"apart-{name}") for name in ("langgraph", "frameworks", "crewai")]
"""Where `make venv` installs frameworks; CrewAI is installed by `make .venv/apart-crewai/ready`."""
WITHOUT, WITH = "playhead without hooks", "playhead"
VARIANTS = ("off", WITHOUT, WITH, "own")
NO_TRACING = frozenset(("CrewAI", "Haystack"))
"""Frameworks whose tracing needs another package, or an account with its vendor."""


class Provider(BaseHTTPRequestHandler):
    """A model that calls the first tool, and then answers."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        reason, message = "stop", {"role": "assistant", "content": SAID}
        if all(one["role"] != "tool" for one in asked["messages"]):
            function = {"name": "look_up", "arguments": '{"order": 81}'}
            call = {"id": "call_1", "type": "function", "function": function}
            reason = "tool_calls"
            message = {"role": "assistant", "content": None, "tool_calls": [call]}
        said: dict[str, Any] = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1}
        said |= {
            "model": "gpt-4o",
            "choices": [{"index": 0, "finish_reason": reason, "message": message}],
        }
        said["usage"] = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@contextmanager
def provider() -> Iterator[str]:
    """The URL of a provider."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Provider) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/v1"
        server.shutdown()


def measure(framework: str, variant: str, runs: int, models: str, endpoint: str, folder: str) -> float:
    """Mean processor time of a run, in ms."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(map(str, APART)),
        "OPENAI_BASE_URL": models,
        "OPENAI_API_KEY": "k",
        "OTLP_SINK": endpoint,
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "PLAYHEAD_ENDPOINT": endpoint,
        "PLAYHEAD_SPOOL_DIR": f"{folder}/spool",
        "PLAYHEAD_QUIET": "1",
        "PLAYHEAD_BOUNDARIES": "-frameworks" if variant == WITHOUT else "",
        "CREWAI_DISABLE_TELEMETRY": "true",
        "HAYSTACK_TELEMETRY_ENABLED": "false",
    }
    tracing = "own" if variant == "own" else "none"
    program = str(HERE / "frameworks_program.py")
    command = [sys.executable, "-P", program, framework, tracing, str(runs)]  # agents.py is no package
    if variant in (WITHOUT, WITH):
        command.insert(0, str(Path(sys.executable).with_name("opentelemetry-instrument")))
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{framework}, {variant}: {done.stderr}")
    return float(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a row per framework: medians of the rounds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--runs", type=int, default=40)
    parser.add_argument("frameworks", nargs="*", default=list(AGENTS))
    asked = parser.parse_args()
    if not APART[-1].exists() and "CrewAI" in asked.frameworks:
        asked.frameworks.remove("CrewAI")
    print("| ms of a run | off | playhead without hooks | hooks | its own tracing |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder, sink() as endpoint, provider() as models:
        for framework in asked.frameworks:
            variants = [one for one in VARIANTS if one != "own" or framework not in NO_TRACING]
            found: dict[str, list[float]] = {variant: [] for variant in variants}
            for _ in range(asked.rounds):
                for variant, took in found.items():
                    took.append(measure(framework, variant, asked.runs, models, endpoint, folder))
            cells = [f"{statistics.median(found['off']):.2f}"]
            for one, base in ((WITHOUT, "off"), (WITH, WITHOUT), ("own", "off")):
                more = [a - b for a, b in zip(found.get(one, ()), found[base], strict=False)]
                cells.append(f"{statistics.median(more):+.2f}" if more else "")
            print(f"| {framework} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
