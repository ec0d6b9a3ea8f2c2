"""What the receiver takes in: durable spans a second, time to the acknowledgement, memory, disk.

The receiver is `playhead up` in a process of its own; clients send as fast as it acknowledges. All
requests are made before the clock starts. Afterwards the receiver is killed, and what was acknowledged
is counted in its store. ``PLAYHEAD_STORE`` may name an empty schema of a database.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from ingest_load import Load, Request, requests

from playhead_receiver.store import Query, open_store

BIN = Path(sys.executable).parent
EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
CLIENTS = 4
TICK_S = 1 / os.sysconf("SC_CLK_TCK")


@dataclass
class Outcome:
    """What the clients saw."""

    acknowledged: int = 0
    retries: int = 0
    took_ms: list[float] = field(default_factory=list[float])
    lock: threading.Lock = field(default_factory=threading.Lock)


class Standing:
    """`playhead up` on a data directory."""

    def __init__(self, data: Path) -> None:
        command = [BIN / "playhead", "up", "--json"]
        command += ["--http-port", "0", "--grpc-port", "0", "--query-port", "0"]
        environment = {**os.environ, "PLAYHEAD_DATA_DIR": str(data)}
        self.process = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        said = json.loads(self.process.stdout.readline())
        self.http, self.grpc = str(said["http"]), str(said["grpc"])

    def cpu_s(self) -> float:
        """Processor time so far."""
        words = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(words[11]) + int(words[12])) * TICK_S

    def peak_mib(self) -> float:
        """Greatest resident memory so far."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in status.splitlines() if line.startswith("VmHWM"))
        return int(line.split()[1]) / 1024

    def settle(self) -> None:
        """Wait until it has nothing more to do."""
        before = -1.0
        while (now := self.cpu_s()) > before:
            before = now
            time.sleep(0.3)

    def stop(self, number: int) -> None:
        """Send a signal, wait for the end."""
        self.process.send_signal(number)
        self.process.wait(120)


def sender(standing: Standing, protocol: str) -> Callable[[bytes], bool]:
    """Sends one request over a connection of its own; whether it was acknowledged."""
    if protocol == "grpc":
        options = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
        call = grpc.insecure_channel(standing.grpc, options=options).unary_unary(EXPORT, None, None)

        def send_grpc(body: bytes) -> bool:
            try:
                return call(body, timeout=60) is not None
            except grpc.RpcError:
                return False

        return send_grpc
    address = urllib.parse.urlsplit(standing.http)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=60)
    headers = {"content-type": "application/x-protobuf"}

    def send_http(body: bytes) -> bool:
        connection.request("POST", "/v1/traces", body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200

    return send_http


def send_all(standing: Standing, protocol: str, load: Sequence[Request]) -> tuple[Outcome, float]:
    """Send everything; what was seen, and the seconds that it took."""
    outcome, waiting, begin = Outcome(), iter(load), threading.Barrier(CLIENTS + 1)

    def client() -> None:
        send = sender(standing, protocol)
        begin.wait()
        while True:
            with outcome.lock:
                request = next(waiting, None)
            if request is None:
                return
            start = time.perf_counter()
            while not send(request.body):
                with outcome.lock:
                    outcome.retries += 1
                time.sleep(0.1)
            with outcome.lock:
                outcome.took_ms.append((time.perf_counter() - start) * 1000)
                outcome.acknowledged += request.spans

    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    begin.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return outcome, time.perf_counter() - start


def disk_bytes(folder: Path) -> int:
    """Bytes of all files of a store."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def stored_spans(data: Path) -> int:
    """Spans that come back out of a store, read one by one."""
    store = open_store(os.environ.get("PLAYHEAD_STORE") or data)
    try:
        runs = list(store.runs(Query(mode=None, limit=1 << 30)))
        return sum(1 for run in runs for _ in store.spans(bytes.fromhex(run.trace_id)))
    finally:
        store.close()


def one(protocol: str, load: Load) -> dict[str, float | str]:
    """One row of the table."""
    made = list(requests(load))
    raw = sum(len(request.body) for request in made)
    with tempfile.TemporaryDirectory() as place:
        data = Path(place)
        standing = Standing(data)
        standing.settle()
        before_s = standing.cpu_s()
        outcome, took_s = send_all(standing, protocol, made)
        cpu_s, peak_mib = standing.cpu_s() - before_s, standing.peak_mib()
        standing.stop(signal.SIGKILL)
        kept = stored_spans(data)
        took = sorted(outcome.took_ms)
        return {
            "protocol": protocol,
            "profile": load.profile,
            "steps": load.steps,
            "spans": outcome.acknowledged,
            "lost": outcome.acknowledged - kept,
            "spans_s": outcome.acknowledged / took_s,
            "mb_s": raw / took_s / 1e6,
            "cpu_us_span": cpu_s / outcome.acknowledged * 1e6,
            "p50_ms": took[len(took) // 2],
            "p99_ms": took[min(len(took) - 1, len(took) * 99 // 100)],
            "peak_mib": peak_mib,
            "disk_ratio": disk_bytes(data) / raw,
            "disk_bytes_span": disk_bytes(data) / outcome.acknowledged,
        }


COLUMNS = {
    "protocol": "",
    "profile": "",
    "steps": "d",
    "spans": ",d",
    "lost": "d",
    "spans_s": ",.0f",
    "mb_s": ",.0f",
    "cpu_us_span": ".0f",
    "p50_ms": ".1f",
    "p99_ms": ".1f",
    "peak_mib": ".0f",
    "disk_ratio": ".4f",
    "disk_bytes_span": ",.0f",
}


def main() -> None:
    """Measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocols", nargs="*", default=["grpc", "http"])
    parser.add_argument("--profiles", nargs="*", default=["payload", "light"])
    parser.add_argument("--steps", type=int, nargs="*", default=[20])
    parser.add_argument("--spans", type=int, default=16400, help="about how many a row")
    parser.add_argument("--turns", action="store_true", help="every step a trace of its own")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    rows: list[dict[str, float | str]] = []
    for profile in given.profiles:
        for steps in given.steps:
            runs = max(4, given.spans // (2 * steps + 1))
            for protocol in given.protocols:
                batch = 512 if profile == "light" else max(4, 64 * 20 // steps)
                row = one(protocol, Load(runs, steps, profile, batch, turns=given.turns))
                rows.append(row)
                cells = [format(row[name], form) for name, form in COLUMNS.items()]
                print("| " + " | ".join(cells) + " |", flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
