"""A Collector and a Jaeger in processes of their own, on free ports, with the shipped files."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx
import yaml
from neighbours.programs import PROGRAMS
from support.servers import ports
from support.starting.running import until

CONFIGS = Path(__file__).parents[2] / "collector-config"
QUIET = {"metrics": {"level": "none"}}
"""Telemetry of a Collector, which else opens a port that all share."""


def address() -> str:
    """A free address of loopback."""
    return f"127.0.0.1:{ports.free()}"


class Collector:
    """A Collector with files of `collector-config/`; a context manager.

    It may be killed and started again, with the same queue and at the same ports. ``backends``: names of
    the exporters of the backends to keep. ``more``: configuration that is merged after the files.
    """

    def __init__(
        self,
        folder: Path,
        *files: str,
        receiver: str,
        backends: tuple[str, ...] = (),
        more: Mapping[str, Any] | None = None,
        **environ: str,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.grpc, http, self._health = address(), address(), address()
        self.http = f"http://{http}"
        overlay = {
            "extensions": {"health_check": {"endpoint": self._health}},
            "receivers": {
                "otlp": {"protocols": {"grpc": {"endpoint": self.grpc}, "http": {"endpoint": http}}}
            },
            "service": {"telemetry": QUIET},
        }
        if backends:
            pipelines = {"traces/backends": {"exporters": list(backends)}}
            overlay["service"] = {"telemetry": QUIET, "pipelines": pipelines}
        self._words: list[str | Path] = [PROGRAMS["otelcol"].path]
        for name, body in (("overlay", overlay), ("more", more or {})):
            (folder / f"{name}.yaml").write_text(yaml.safe_dump(body))
        named = [CONFIGS / f"{file}.yaml" for file in files]
        for path in (*named, folder / "overlay.yaml", folder / "more.yaml"):
            self._words += ["--config", path]
        self._environ = {
            **os.environ,
            "OTELCOL_QUEUE": str(folder / "queue"),
            "PLAYHEAD_RECEIVER": receiver,
            "GATEWAY": receiver,
            **environ,
        }
        self._log = folder / "otelcol.log"
        self._process: subprocess.Popen[bytes] | None = None

    def log(self) -> str:
        """Its log output."""
        return self._log.read_text("utf-8")

    def start(self) -> None:
        """Start it, and wait until it takes data."""
        with open(self._log, "a") as log:
            self._process = process = subprocess.Popen(
                self._words, env=self._environ, stdout=log, stderr=log
            )
        until(lambda: process.poll() is not None or answers(self._health), "the Collector is ready")
        assert process.poll() is None, self.log()

    def kill(self) -> None:
        """Kill it with SIGKILL."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def __enter__(self) -> Collector:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(60)
        finally:
            self._process.kill()


def answers(address: str, path: str = "/") -> bool:
    """Whether a GET is answered with 200."""
    try:
        return httpx.get(f"http://{address}{path}").status_code == 200
    except httpx.TransportError:
        return False


class Jaeger:
    """The addresses of a running Jaeger, and its queries."""

    def __init__(self, query: str, http: str = "", grpc: str = "") -> None:
        self.client = httpx.Client(base_url=f"http://{query}", timeout=60)
        self.http, self.grpc = f"http://{http}", grpc

    def get(self, path: str, **parameters: Any) -> Any:
        """The data of an answer of its HTTP API; the error if it is one."""
        answer = self.client.get(path, params=parameters).json()
        return answer.get("data") or answer.get("errors")

    def trace(self, trace_id: str) -> list[dict[str, Any]]:
        """The spans of a trace; none if Jaeger does not have it."""
        answer = self.client.get(f"/api/traces/{trace_id}")
        return answer.json()["data"][0]["spans"] if answer.status_code == 200 else []

    def find(self, **wanted: Any) -> set[str]:
        """Trace ids of a search."""
        found = self.client.get("/api/traces", params={"limit": 1000, "lookback": "custom", **wanted})
        assert found.status_code == 200, found.text
        return {one["traceID"].zfill(32) for one in found.json()["data"]}


@contextmanager
def jaeger(folder: Path, *files: Path, **environ: str) -> Iterator[Jaeger]:
    """A Jaeger: with a store of its own in memory, or with the files."""
    folder.mkdir(exist_ok=True)
    query, http, grpc = address(), address(), address()
    asked = {"http": {"endpoint": query}, "grpc": {"endpoint": address()}}
    overlay: dict[str, Any] = {"extensions": {"jaeger_query": asked}, "service": {"telemetry": QUIET}}
    if not files:
        overlay["extensions"] = {
            "jaeger_query": {**asked, "storage": {"traces": "memory"}},
            "jaeger_storage": {"backends": {"memory": {"memory": {"max_traces": 100_000}}}},
        }
        protocols = {"grpc": {"endpoint": grpc}, "http": {"endpoint": http}}
        overlay["receivers"] = {"otlp": {"protocols": protocols}}
        overlay["exporters"] = {"jaeger_storage_exporter": {"trace_storage": "memory"}}
        overlay["service"] |= {
            "extensions": ["jaeger_storage", "jaeger_query"],
            "pipelines": {"traces": {"receivers": ["otlp"], "exporters": ["jaeger_storage_exporter"]}},
        }
    (folder / "overlay.yaml").write_text(yaml.safe_dump(overlay))
    words: list[str | Path] = [PROGRAMS["jaeger"].path]
    for path in (*files, folder / "overlay.yaml"):
        words += ["--config", path]
    with open(folder / "jaeger.log", "w") as log:
        process = subprocess.Popen(words, env={**os.environ, **environ}, stdout=log, stderr=log)
    try:
        ready = until(
            lambda: process.poll() is not None or answers(query, "/api/services"), "Jaeger is ready"
        )
        assert ready and process.poll() is None, (folder / "jaeger.log").read_text("utf-8")
        yield Jaeger(query, http, grpc)
    finally:
        process.kill()
        process.wait()
