"""What the receiver takes in: durable spans a second, time to the acknowledgement, memory, disk.

The receiver is `playhead up` in processes of its own; clients send as fast as it acknowledges. All
requests are made before the clock starts. Right after the last acknowledgement the receiver is killed,
and the acknowledged spans are counted in its store. ``PLAYHEAD_STORE`` may name an empty schema of a
database. With ``--peers``, other stores get a smaller load of the same kind, because they take longer. A
span counts as stored when it is in their database; in a second run they are killed right after the last
acknowledgement.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import tempfile
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, product
from pathlib import Path

import grpc
from filled import filled
from ingest_load import Load, Request, requests
from peers import PEERS, Peer, kept_after_kill
from standing import Standing, disk_bytes

from playhead_receiver.storage import Query, open_store

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
CLIENTS = 4
DRAINED_S = 600
"""Seconds that a peer may take to store what it acknowledged."""


@dataclass
class Outcome:
    """What the clients measured."""

    acknowledged: int = 0
    retries: int = 0
    took_ms: list[float] = field(default_factory=list[float])
    start: float = 0.0
    """Time at which the first request could be sent, from `time.perf_counter`."""
    lock: threading.Lock = field(default_factory=threading.Lock)


def sender(standing: Standing | Peer, protocol: str) -> Callable[[bytes], bool]:
    """Sends one request over a connection of its own; returns whether it was acknowledged."""
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
    if isinstance(standing, Peer):
        headers |= standing.headers

    def send_http(body: bytes) -> bool:
        connection.request("POST", "/v1/traces", body, headers)
        answer = connection.getresponse()
        answer.read()
        return answer.status == 200

    return send_http


def send_all(
    standing: Standing | Peer, protocol: str, load: Sequence[Request], rate: int = 0
) -> tuple[Outcome, float]:
    """Send everything. Returns what was measured, and the seconds that it took.

    ``rate``: spans per second. A request is then timed from when it is due, whether a client is free or
    not.
    """
    outcome = Outcome()
    waiting = zip(load, accumulate((request.spans for request in load), initial=0), strict=False)

    def client() -> None:
        send = sender(standing, protocol)
        begin.wait()
        while True:
            with outcome.lock:
                request, before = next(waiting, (None, 0))
            if request is None:
                return
            due = outcome.start + before / rate if rate else time.perf_counter()
            time.sleep(max(0.0, due - time.perf_counter()))
            while not send(request.body):
                with outcome.lock:
                    outcome.retries += 1
                time.sleep(0.1)
            with outcome.lock:
                outcome.took_ms.append((time.perf_counter() - due) * 1000)
                outcome.acknowledged += request.spans

    def starts() -> None:
        outcome.start = time.perf_counter()

    begin = threading.Barrier(CLIENTS + 1, starts)
    threads = [threading.Thread(target=client) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    begin.wait()
    for thread in threads:
        thread.join()
    return outcome, time.perf_counter() - outcome.start


class Kept:
    """The traces that were added to a store."""

    def __init__(self, data: Path) -> None:
        self._place = os.environ.get("PLAYHEAD_STORE") or data
        self._before = set(self._traces())

    def spans(self) -> tuple[int, int]:
        """Number of new spans, read one by one, and of bundles not indexed yet.

        Empties the write-ahead log.
        """
        store = open_store(self._place)
        try:
            new = [trace for trace in self._traces() if trace not in self._before]
            return sum(1 for trace in new for _ in store.spans(trace)), store.lag().bundles
        finally:
            store.close()

    def _traces(self) -> list[bytes]:
        store = open_store(self._place, read_only=True)
        try:
            runs = store.runs(Query(mode=None, limit=1 << 30))
            return [bytes.fromhex(run.trace_id) for run in runs]
        finally:
            store.close()


def caught_up_s(data: Path) -> float:
    """Seconds until an otherwise idle receiver has indexed everything."""
    standing = Standing(data)
    store = open_store(os.environ.get("PLAYHEAD_STORE") or data, read_only=True)
    start = time.perf_counter()
    while store.lag().bundles:
        time.sleep(0.1)
    took_s = time.perf_counter() - start
    store.close()
    standing.stop(signal.SIGKILL)
    return took_s


def one(protocol: str, load: Load, search: str, place: Path, rate: int) -> dict[str, float | str]:
    """Measure one row of the table. ``place``: where the store is."""
    made = list(requests(load))
    held = Kept(place)
    disk_before = disk_bytes(place)
    standing = Standing(place, PLAYHEAD_SEARCH="true" if search == "on" else "false")
    standing.settle()
    before_s = standing.cpu_s()
    outcome, took_s = send_all(standing, protocol, made, rate)
    cpu_s, peak_mib = standing.cpu_s() - before_s, standing.peak_mib()
    standing.stop(signal.SIGKILL)
    kept, behind = held.spans()
    row = row_of("playhead", protocol, load, made, outcome, took_s)
    used = disk_bytes(place) - disk_before
    return row | {
        "search": search,
        "stored_s": row["acked_s"],
        "lost": outcome.acknowledged - kept,
        "cpu_us_span": cpu_s / outcome.acknowledged * 1e6,
        "peak_mib": peak_mib,
        "disk_ratio": used / sum(len(request.body) for request in made),
        "disk_bytes_span": used / outcome.acknowledged,
        "behind": behind,
        "caught_up_s": caught_up_s(place) if search == "on" else 0.0,
    }


def of_peer(kind: type[Peer], protocol: str, load: Load) -> dict[str, float | str]:
    """Measure one row of the table for a peer."""
    made = list(requests(load))
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        peer = kind(Path(first))
        before_s = peer.cpu_s()
        outcome, took_s = send_all(peer, protocol, made)
        row = row_of(kind.name, protocol, load, made, outcome, took_s)
        start = time.perf_counter()
        while peer.stored() < outcome.acknowledged and time.perf_counter() - start < DRAINED_S:
            time.sleep(0.25)
        stored_s = peer.stored() / (took_s + time.perf_counter() - start)
        cpu_s, peak_mib = peer.cpu_s() - before_s, peer.peak_mib()
        peer.stop(signal.SIGTERM)
        used = disk_bytes(Path(first))
        peer = kind(Path(second))
        acknowledged = send_all(peer, protocol, made)[0].acknowledged
        kept = kept_after_kill(kind, peer, Path(second))
    return row | {
        "search": "",
        "stored_s": stored_s,
        "lost": acknowledged - kept,
        "cpu_us_span": cpu_s / outcome.acknowledged * 1e6,
        "peak_mib": peak_mib,
        "disk_ratio": used / sum(len(request.body) for request in made),
        "disk_bytes_span": used / outcome.acknowledged,
        "behind": 0,
        "caught_up_s": 0.0,
    }


def row_of(
    name: str, protocol: str, load: Load, made: Sequence[Request], outcome: Outcome, took_s: float
) -> dict[str, float | str]:
    """A row of the table, from what the clients measured."""
    took = sorted(outcome.took_ms)
    return {
        "store": name,
        "protocol": protocol,
        "profile": load.profile,
        "steps": load.steps,
        "spans": outcome.acknowledged,
        "acked_s": outcome.acknowledged / took_s,
        "mb_s": sum(len(request.body) for request in made) / took_s / 1e6,
        "p50_ms": took[len(took) // 2],
        "p99_ms": took[min(len(took) - 1, len(took) * 99 // 100)],
    }


COLUMNS = {
    "store": "",
    "search": "",
    "protocol": "",
    "profile": "",
    "steps": "d",
    "spans": ",d",
    "acked_s": ",.0f",
    "stored_s": ",.0f",
    "lost": "d",
    "p50_ms": ".1f",
    "p99_ms": ".1f",
    "mb_s": ",.0f",
    "cpu_us_span": ".0f",
    "peak_mib": ".0f",
    "disk_ratio": ".4f",
    "disk_bytes_span": ",.0f",
    "behind": ",d",
    "caught_up_s": ".1f",
}


def main() -> None:
    """Measure, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--protocols", nargs="*", default=["grpc", "http"])
    parser.add_argument("--profiles", nargs="*", default=["payload", "light"])
    parser.add_argument("--steps", type=int, nargs="*", default=[20])
    parser.add_argument("--spans", type=int, default=16400, help="about how many a row")
    parser.add_argument("--rate", type=int, default=0, help="spans a second; by default what it takes")
    parser.add_argument("--search", nargs="*", choices=["on", "off"], default=["on"])
    parser.add_argument("--filled", type=int, default=0, help="so many spans are stored already")
    parser.add_argument("--peers", action="store_true", help="other stores too")
    parser.add_argument("--peer-spans", type=int, default=820)
    parser.add_argument("--turns", action="store_true", help="every step a trace of its own")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    rows: list[dict[str, float | str]] = []

    def load_of(profile: str, steps: int, spans: int) -> Load:
        batch = 512 if profile == "light" else max(4, 64 * 20 // steps)
        # a reused store contains the runs of earlier seeds
        seed = time.time_ns() if given.filled else 1
        return Load(max(4, spans // (2 * steps + 1)), steps, profile, batch, 4, seed, given.turns)

    def told(row: dict[str, float | str]) -> None:
        rows.append(row)
        cells = [format(row[name], form) for name, form in COLUMNS.items()]
        print("| " + " | ".join(cells) + " |", flush=True)

    for profile, steps in product(given.profiles, given.steps):
        for protocol, search in product(given.protocols, given.search):
            load = load_of(profile, steps, given.spans)
            if given.filled:
                told(one(protocol, load, search, filled(given.filled), given.rate))
            else:
                with tempfile.TemporaryDirectory() as place:
                    told(one(protocol, load, search, Path(place), given.rate))
        for kind, protocol in product(PEERS if given.peers else (), given.protocols):
            if protocol in kind.protocols:
                told(of_peer(kind, protocol, load_of(profile, steps, given.peer_spans)))
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
