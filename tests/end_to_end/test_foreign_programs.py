"""Other programs read, copy and close the files of a receiver under load, and nothing is lost."""

from __future__ import annotations

import http.client
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans
from support.foreign_programs import held_by_another
from support.servers import ports
from support.starting.running import PATIENCE_S, until
from support.starting.warm import Process
from support.tapes.batches import span_of

from playhead_checkpoint import SqliteCheckpoints
from playhead_checkpoint.store.protocol import Lineage
from playhead_receiver.storage import Query, open_store
from playhead_receiver.system.writer_lock import running as listening

DATABASES = ("store.sqlite", "search.sqlite", "checkpoints.sqlite", "access.sqlite", "claims.sqlite")
READ_AND_COPY = """
import os, shutil, sqlite3, sys
copy = sys.argv[1]
while sys.stdin.readline():
    for path in sys.argv[2:]:
        if os.path.exists(path):
            other = sqlite3.connect(path, timeout=60)
            other.execute("SELECT count(*) FROM sqlite_schema").fetchone()
            shutil.copy(path, copy)
            other.close()
    print("done", flush=True)
"""


class Load:
    """What was sent to a receiver, and how long its answers took."""

    def __init__(self, port: int, query: int) -> None:
        self._port, self._query = port, query
        self._lock = threading.Lock()
        self.acknowledged: list[str] = []
        self.deleted: set[str] = set()
        self.requests, self.slowest_s = 0, 0.0

    def send(self) -> None:
        """Send a span of a new run."""
        trace_id = secrets.token_bytes(16)
        span = ResourceSpans.FromString(span_of(trace_id, 1, text=secrets.token_hex(500)).otlp)
        body = ExportTraceServiceRequest(resource_spans=[span]).SerializeToString()
        kind = {"content-type": "application/x-protobuf"}
        if self._timed(self._port, "POST", "/v1/traces", body, kind) == 200:
            self.acknowledged.append(trace_id.hex())

    def delete(self) -> None:
        """Delete a run that was acknowledged, with its checkpoint; ask for another."""
        kept = [one for one in self.acknowledged[-100:] if one not in self.deleted]
        if not kept:
            return
        gone, other = kept[0], kept[-1]
        self.deleted.add(gone)  # also if the answer is lost
        assert self._timed(self._query, "DELETE", f"/v1/runs/{gone}") in (200, 404)
        if other != gone:
            assert self._timed(self._query, "GET", f"/v1/runs/{other}/summary") == 200

    def _timed(
        self, port: int, method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
    ) -> int:
        begun = time.monotonic()
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        answer.read()
        connection.close()
        with self._lock:
            self.requests += 1
            self.slowest_s = max(self.slowest_s, time.monotonic() - begun)
        return answer.status


def ready(data_dir: Path, pid: int) -> bool:
    """Whether that process listens; for a moment, the record of a killed one before it is there."""
    found = listening(data_dir)
    return found is not None and found.pid == pid and bool(found.query)


def start_receiver(data_dir: Path, port: int, query: int) -> subprocess.Popen[bytes]:
    ports = ["--http-port", str(port), "--grpc-port", "0", "--query-port", str(query)]
    child = Process(
        [sys.executable, "-m", "playhead_cli", "up", "--data-dir", str(data_dir), *ports],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: child.poll() is not None or ready(data_dir, child.pid), "the receiver listens")
    assert child.poll() is None
    return child


@contextmanager
def repeated(action: Callable[[], None], times: int = 1) -> Generator[None]:
    """Repeat an action in threads. A failure of one fails the block at its end."""
    stop, failures = threading.Event(), list[BaseException]()

    def run() -> None:
        try:
            while not stop.is_set():
                action()
        except BaseException as problem:
            failures.append(problem)

    threads = [threading.Thread(target=run) for _ in range(times)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not failures, failures


@contextmanager
def copied_by_another(paths: list[Path], copy: Path) -> Generator[Callable[[], None]]:
    """Another process that opens, reads, copies and closes all databases, once for each call."""
    command = [sys.executable, "-c", READ_AND_COPY, str(copy), *map(str, paths)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdin and other.stdout

        def once() -> None:
            assert other.stdin and other.stdout
            other.stdin.write(b"\n")
            other.stdin.flush()
            assert other.stdout.readline() == b"done\n"

        try:
            yield once
        finally:
            other.stdin.close()


def beside_others(folder: Path, rounds: int, while_held: Callable[[Load], None]) -> Load:
    """Load a receiver while other programs use its files, kill it, and count what is there then."""
    data_dir, port, query = folder / "data", ports.free(), ports.free()
    paths = [data_dir / name for name in DATABASES]
    receiver = start_receiver(data_dir, port, query)
    load = Load(port, query)
    load.send()
    checkpoints = SqliteCheckpoints(data_dir / "checkpoints.sqlite")
    until((data_dir / "search.sqlite").exists, "the index is there")

    def put_and_delete() -> None:
        checkpoints.put(
            {"text": secrets.token_hex(500)}, Lineage(run=bytes.fromhex(load.acknowledged[-1]))
        )
        load.delete()

    with copied_by_another(paths, folder / "copy") as copy_once:
        for _ in range(rounds):
            held = [path for path in paths if path.exists()]
            with repeated(load.send, 2), repeated(put_and_delete), repeated(copy_once):
                with held_by_another(*held):
                    while_held(load)
                while_held(load)
            copy_once()
            receiver.send_signal(signal.SIGKILL)
            receiver.wait()
            receiver = start_receiver(data_dir, port, query)
    checkpoints.close()
    receiver.send_signal(signal.SIGTERM)
    assert receiver.wait(PATIENCE_S) == 0
    store = open_store(data_dir, read_only=True)
    stored = {run.trace_id for run in store.runs(Query(limit=1 << 60))}
    store.close()
    print(
        f"requests {load.requests}, slowest {load.slowest_s:.2f} s,"
        f" acknowledged {len(load.acknowledged)}, deleted {len(load.deleted)}, found {len(stored)},"
        f" log {(data_dir / 'store.sqlite').stat().st_size >> 20} MiB"
    )
    assert {*load.acknowledged} - load.deleted - stored == set()
    return load


def test_nothing_is_lost_beside_other_programs(tmp_path: Path):
    def more(load: Load) -> None:
        before = len(load.acknowledged), len(load.deleted)
        until(
            lambda: len(load.acknowledged) >= before[0] + 10 and len(load.deleted) > before[1],
            "runs are acknowledged and deleted",
        )

    beside_others(tmp_path, 1, more)


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_minutes_beside_other_programs(tmp_path: Path):
    load = beside_others(tmp_path, 2, lambda _: time.sleep(60))
    assert load.slowest_s <= 1
