"""What a replayed call costs, beside vcrpy and reeltime, and what a long tape costs to load and to hold.

The same program, calls of the real OpenAI SDK, is recorded by each tool against a server on loopback and
replayed without it; ``sdk`` is the program over a transport that answers at once. A figure is the median
call of a replay minus the median call of ``sdk`` in the same round; the order of tools varies.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import version
from pathlib import Path
from typing import Any

from playhead_cli.demo.shapes import openai_chat, sse

HERE = Path(__file__).parent
PROGRAM = str(HERE / "replay_program.py")
TOOLS = ("playhead", "vcrpy", "reeltime")
COUNTS = (10, 100, 300, 1000, 2000)
MOST = {"vcrpy": 300}
"""Largest number of calls measured for a tool whose cost per call grows with their number."""

LONG_BYTES = 100_000
"""Size to which the histories of the big tape grow."""

RECORD = """
import runpy, sys
from pathlib import Path
from playhead_instrumentation.bootstrap.start import start_recording
from playhead_instrumentation.recorder.tape_writer import TapeWriter
start_recording(sink=TapeWriter(Path(sys.argv[1])))
del sys.argv[:2]
sys.path[0] = str(Path(PROGRAM).parent)
runpy.run_path(PROGRAM, run_name="__main__")
"""
LOAD = """
import json, sys, time
from pathlib import Path
from playhead_instrumentation.recorder.options import DriverOptions
from playhead_instrumentation.bootstrap.compose import open_driver
from playhead_instrumentation.redaction import Redactor
from playhead_instrumentation.recorder.tape_writer import TapeWriter
from replay_program import held_kib
before, _ = held_kib()
begin = time.monotonic_ns()
tape = load(Path(sys.argv[1]))
open_driver(DriverOptions(TapeWriter(Path(sys.argv[1] + ".now")), Redactor()), tape)
taken = time.monotonic_ns() - begin
print(json.dumps({"ns": taken, "held_kib": held_kib()[0] - before}))
"""


class Provider(BaseHTTPRequestHandler):
    """Answers every chat completion in one write, so that no delayed acknowledgement is measured."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    body = sse.encode(openai_chat.completion("It is done."))

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        head = (
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
            f"content-length: {len(self.body)}\r\n\r\n"
        )
        self.wfile.write(head.encode() + self.body)

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def provider() -> Iterator[str]:
    """Base URL of a running provider."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Provider)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def run(tool: str, tape: Path, count: int, size_bytes: int, url: str, replaying: bool) -> dict[str, Any]:
    """Run the program once. Returns its report."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PLAYHEAD", "OTEL"))
    }
    read, write = os.pipe()
    environment = {
        **kept,
        "OPENAI_BASE_URL": url,
        "BENCH_TOOL": tool,
        "BENCH_TAPE": str(tape),
        "BENCH_SAYS": str(write),
        "PYTHONHASHSEED": "0",
        "PLAYHEAD_QUIET": "1",
    }
    words = [PROGRAM, str(count), str(size_bytes)]
    if tool == "playhead" and replaying:
        now = str(tape.with_suffix(".now"))
        words = [
            "-m",
            "playhead_instrumentation",
            "replay",
            "--tape",
            str(tape),
            "--now",
            now,
            "--",
            *words,
        ]
    elif tool == "playhead":
        words = ["-c", RECORD.replace("PROGRAM", repr(PROGRAM)), str(tape), *words]
    with open(read) as says:
        process = subprocess.Popen(
            [sys.executable, *words],
            env=environment,
            pass_fds=[write],
            stderr=subprocess.PIPE,
            text=True,
        )
        os.close(write)
        said = says.read()
        _, stderr = process.communicate()
    if process.returncode != 0 or not said:
        raise RuntimeError(f"{tool} ended with {process.returncode}: {stderr[-2000:]}")
    return json.loads(said)


def measure(rounds: int, counts: tuple[int, ...]) -> dict[str, dict[str, list[float]]]:
    """Tool → number of calls → µs per call above the SDK's own cost, one figure per round."""
    order = random.Random(7)
    figures = {tool: {str(count): [] for count in counts} for tool in TOOLS}
    with tempfile.TemporaryDirectory() as folder:
        tapes: dict[tuple[str, int], Path] = {}
        with provider() as url:
            for tool in TOOLS:
                for count in counts:
                    if count > MOST.get(tool, count):
                        continue
                    tape = Path(folder) / f"{tool}-{count}{'.yaml' if tool == 'vcrpy' else ''}"
                    run(tool, tape, count, 0, url, replaying=False)
                    tapes[tool, count] = tape
        gone = url
        for number in range(rounds):
            for count in counts:
                tools = [tool for tool in TOOLS if (tool, count) in tapes]
                base = statistics.median(run("none", Path(), count, 0, gone, replaying=True)["ns"])
                for tool in order.sample(tools, len(tools)):
                    said = run(tool, tapes[tool, count], count, 0, gone, replaying=True)
                    added = statistics.median(said["ns"]) - base
                    figures[tool][str(count)].append(round(added / 1000, 1))
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return figures


def long_tapes(counts: tuple[int, ...]) -> list[dict[str, Any]]:
    """Tapes of small requests and of growing histories: size, time to load, memory."""
    rows: list[dict[str, Any]] = []
    kinds = (("small requests", 0), ("histories growing to 100 KB", LONG_BYTES))
    with tempfile.TemporaryDirectory() as folder:
        for count, (name, size_bytes) in itertools.product(counts, kinds):
            tape = Path(folder) / f"{count}-{size_bytes}.tape"
            with provider() as url:
                run("playhead", tape, count, size_bytes, url, replaying=False)
            load = "from playhead_instrumentation.bootstrap.replay_process import load\n" + LOAD
            loads = [
                json.loads(subprocess.check_output([sys.executable, "-c", load, str(tape)], cwd=HERE))
                for _ in range(3)
            ]
            bare = run("none", Path(), count, size_bytes, url, replaying=True)
            played = run("playhead", tape, count, size_bytes, url, replaying=True)
            rows.append(
                {
                    "tape": name,
                    "calls": count,
                    "requests_bytes": sum(_sizes(count, size_bytes)),
                    "file_bytes": tape.stat().st_size,
                    "load_ms": round(statistics.median(one["ns"] for one in loads) / 1e6),
                    "load_mib": round(max(one["held_kib"] for one in loads) / 1024, 1),
                    "replay_mib": round((played["held_kib"] - bare["held_kib"]) / 1024, 1),
                    "peak_mib": round((played["peak_kib"] - bare["peak_kib"]) / 1024, 1),
                }
            )
    return rows


def _sizes(count: int, size_bytes: int) -> Iterator[int]:
    from replay_program import messages

    for number in range(count):
        yield len(json.dumps(messages(size_bytes, number)))


def tables(figures: dict[str, dict[str, list[float]]], rows: list[dict[str, Any]]) -> str:
    """The figures as Markdown."""
    counts = list(next(iter(figures.values())))
    lines = ["| calls | " + " | ".join(figures) + " |", "|---" * (len(figures) + 1) + "|"]
    for count in counts:
        cells = [_cell(found[count]) for found in figures.values()]
        lines.append(f"| {int(count):,} | " + " | ".join(cells) + " |")
    lines += [
        "",
        "| tape | sum of its requests | file | loaded in | held by it | held at the end | peak |",
    ]
    lines.append("|---" * 7 + "|")
    for row in rows:
        lines.append(
            f"| {row['calls']:,} calls, {row['tape']} | {row['requests_bytes'] / 1e6:,.1f} MB"
            f" | {row['file_bytes'] / 1e6:,.1f} MB | {row['load_ms']:,} ms"
            f" | {row['load_mib']:,} MiB | {row['replay_mib']:,} MiB | {row['peak_mib']:,} MiB |"
        )
    return "\n".join(lines)


def _cell(values: list[float]) -> str:
    if not values:
        return "not measured"
    return f"{statistics.median(values):+,.0f} [{min(values):+,.0f} … {max(values):+,.0f}]"


def main() -> None:
    """Measure, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", default=",".join(map(str, COUNTS)), help="comma-separated")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    counts = tuple(int(count) for count in given.calls.split(","))
    rows = long_tapes(counts[-3:])
    figures = measure(given.rounds, counts)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {given.rounds} rounds"
    packages = ", ".join(f"{name} {version(name)}" for name in ("openai", "vcrpy", "reeltime"))
    print(f"{machine}\n{packages}\n\nµs a replayed call, over the SDK's own cost\n")
    print(tables(figures, rows))
    if given.json:
        facts = {"machine": machine, "packages": packages, "replay": figures, "tapes": rows}
        given.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
