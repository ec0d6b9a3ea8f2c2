"""What recording costs where nothing is asked of the world: clocks, entropy, files, queues, children.

``off`` and the three levels (`opentelemetry-instrument`) are processes that are measured in turn;
``control`` is a second ``off``, whose difference is noise. Everything but children is measured in
processor time, so that a busy machine disturbs less. A delivery is a chunk of a stream: from when the
server has it until the program, which waits in an event loop, gets it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from latency import Worker, sink
from recording_worker import CHUNKS, WAYS

HERE = Path(__file__).parent
LEVELS = ("exchanges", "causal", "strict")
VARIANTS = ("off", "control", *LEVELS)
MODULE = "bench_agent"
"""Module of the code that reads, so that it counts as the program's."""
LARGE_BYTES = 1 << 30
PACE_S = 0.002
SHARES = (50, 90, 99)
IMPORTS = """
import sys, time
if HOOKED:
    from playhead_instrumentation.libraries.system.network import _audit
    events = 0
    sys.addaudithook(_audit)
begin = time.process_time_ns()
import openai, anthropic, httpx, sqlite3, xml.dom.minidom, unittest.mock, email.mime.text
print(time.process_time_ns() - begin)
"""


def serve() -> str:
    """A URL that streams chunks, each containing the time at which it was sent; served on a thread."""
    listener = socket.create_server(("127.0.0.1", 0))

    def stream() -> None:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")
            for _ in range(CHUNKS):
                time.sleep(PACE_S)
                data = b"data: %d\n\n" % time.clock_gettime_ns(time.CLOCK_MONOTONIC)
                connection.sendall(b"%x\r\n%b\r\n" % (len(data), data))
            connection.sendall(b"0\r\n\r\n")
            connection.close()

    threading.Thread(target=stream, daemon=True).start()
    return f"http://127.0.0.1:{listener.getsockname()[1]}/"


def measure(rounds: int) -> dict[str, Any]:
    """Way → variant → ns, one figure per round; deliveries → variant → ns of every chunk."""
    ways: dict[str, dict[str, list[float]]] = {name: {one: [] for one in VARIANTS} for name in WAYS}
    deliveries: dict[str, list[float]] = {one: [] for one in VARIANTS}
    with ExitStack() as stack:
        endpoint, url = stack.enter_context(sink()), serve()
        state = stack.enter_context(tempfile.TemporaryDirectory())
        files = Path(state, "files")
        files.mkdir()
        Path(files, "small").write_bytes(b"x" * 4096)
        with open(files / "large", "wb") as large:
            large.truncate(LARGE_BYTES)
        workers: list[Worker] = []
        for variant in VARIANTS:
            command = [sys.executable, str(HERE / "recording_worker.py")]
            if variant in LEVELS:
                command.insert(0, str(Path(sys.executable).with_name("opentelemetry-instrument")))
            environment = {
                **os.environ,
                "BENCH_FILES": str(files),
                "PLAYHEAD_ENDPOINT": endpoint,
                "PLAYHEAD_LEVEL": variant,
                "PLAYHEAD_SPOOL_DIR": f"{state}/{variant}",
                "PLAYHEAD_QUIET": "1",
                "OTEL_TRACES_EXPORTER": "none",
                "OTEL_METRICS_EXPORTER": "none",
                "OTEL_LOGS_EXPORTER": "none",
            }
            pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
            process = stack.enter_context(subprocess.Popen(command, env=environment, cwd=files, **pipes))
            stack.callback(process.stdin.close)  # type: ignore[union-attr]
            workers.append(Worker(variant, process))
            assert workers[-1].read() == "ready\n"
        for number in range(rounds):
            for one in workers if number % 2 else reversed(workers):
                deliveries[one.variant] += one.ask(f"deliveries\t{url}\t")
        for number in range(rounds):
            for name in WAYS:
                for one in workers if number % 2 else reversed(workers):
                    ways[name][one.variant] += one.ask(f"reads\t{name}\t{MODULE}")
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return {"ways": ways, "deliveries": deliveries, "imports": imports(rounds)}


def imports(rounds: int) -> dict[str, list[float]]:
    """ns of processor time for many imports, without and with only the audit hook."""
    found: dict[str, list[float]] = {"off": [], "hook": []}
    for _ in range(rounds):
        for name in found:
            code = IMPORTS.replace("HOOKED", str(name == "hook"))
            found[name].append(float(subprocess.check_output([sys.executable, "-c", code])))
    return found


def tables(found: dict[str, Any]) -> str:
    """The figures as Markdown."""
    lines = [f"| µs | off | {' | '.join(f'{one}, added' for one in VARIANTS[1:])} |"]
    lines.append("|---" * (len(VARIANTS) + 1) + "|")
    for name, by_variant in found["ways"].items():
        off = by_variant["off"]
        added = (f"{_added(by_variant[one], off) / 1000:+,.2f}" for one in VARIANTS[1:])
        lines.append(f"| `{name}` | {statistics.median(off) / 1000:,.2f} | {' | '.join(added)} |")
    heads = " | ".join(f"{share} %" for share in SHARES)
    lines += ["", f"| µs until a chunk is there, at most, of | {heads} |", "|---" * 4 + "|"]
    for name, taken in found["deliveries"].items():
        cuts = statistics.quantiles(taken, n=100)
        lines.append(
            f"| {name} | " + " | ".join(f"{cuts[one - 1] / 1000:,.0f}" for one in SHARES) + " |"
        )
    spent = {name: statistics.median(taken) / 1e6 for name, taken in found["imports"].items()}
    lines += [
        "",
        f"Imports: {spent['off']:,.0f} ms without the audit hook, {spent['hook']:,.0f} ms with it",
    ]
    return "\n".join(lines)


def _added(values: list[float], off: list[float]) -> float:
    return statistics.median(value - base for value, base in zip(values, off, strict=True))


def main() -> None:
    """Measure, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    found = measure(given.rounds)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {given.rounds} rounds\n")
    print(tables(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
