"""What a level adds to whole agents whose provider thinks for 300 ms: time, and lost throughput.

``conversation``: ten sequential calls of the OpenAI SDK. ``streams``: five rounds of twenty concurrent
streams, with one word every 10 ms. ``bursts``: the same, with all words at once. ``graph``: a LangGraph
agent that calls a tool eight times. ``examples``: the agents of `examples/`. These are measured in
seconds of the agent's own work, without its start, which ``startup.py`` measures. ``service``: a
Starlette application under uvicorn, called by thirty clients that wait for their answers, in requests
per second. All variants run in turn; ``control`` is a second ``off``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
from latency import sink

HERE = Path(__file__).parent
LEVELS = ("exchanges", "causal", "strict")
VARIANTS = ("off", "control", *LEVELS)
PROGRAMS = ("conversation", "streams", "bursts", "graph", "examples")
CLIENTS = 30
SERVED_S = 6.0
PATIENCE_S = 60.0


def free_port() -> int:
    """A free port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def listening(words: list[str], port: int, environ: dict[str, str]) -> Iterator[None]:
    """A process that serves on ``port``."""
    with subprocess.Popen(words, env=environ) as process:
        until = time.monotonic() + PATIENCE_S
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < until, f"{words} does not serve"
                time.sleep(0.05)
        try:
            yield
        finally:
            process.terminate()
            process.wait(PATIENCE_S)


async def throughput(port: int) -> float:
    """Requests per second that a service answers."""
    count = 0
    async with httpx.AsyncClient(timeout=PATIENCE_S) as client:
        url = f"http://127.0.0.1:{port}/ask"
        await client.post(url, json={"text": "first"})
        until = time.perf_counter() + SERVED_S

        async def one(number: int) -> None:
            nonlocal count
            while time.perf_counter() < until:
                answer = await client.post(url, json={"text": f"question {number}"})
                assert answer.status_code == 200
                count += 1

        begin = time.perf_counter()
        await asyncio.gather(*(one(number) for number in range(CLIENTS)))
        return count / (time.perf_counter() - begin)


def measure(rounds: int) -> dict[str, dict[str, list[float]]]:
    """Workload → variant → seconds (``service``: requests per second), one figure per round."""
    found: dict[str, dict[str, list[float]]] = {
        name: {one: [] for one in VARIANTS} for name in (*PROGRAMS, "service")
    }
    with ExitStack() as stack:
        endpoint = stack.enter_context(sink())
        state = stack.enter_context(tempfile.TemporaryDirectory())
        port, others = free_port(), free_port()
        thinker = [sys.executable, str(HERE / "thinker.py")]
        stack.enter_context(listening([*thinker, str(port)], port, dict(os.environ)))
        stack.enter_context(listening([*thinker, str(others), "examples"], others, dict(os.environ)))
        for number in range(rounds):
            for one in VARIANTS if number % 2 else reversed(VARIANTS):
                environ = {
                    **os.environ,
                    "OPENAI_BASE_URL": f"http://127.0.0.1:{port}/v1",
                    "OPENAI_API_KEY": "test",
                    "EXAMPLES_URL": f"http://127.0.0.1:{others}",
                    "PLAYHEAD_ENDPOINT": endpoint,
                    "PLAYHEAD_LEVEL": one,
                    "PLAYHEAD_SPOOL_DIR": f"{state}/{one}",
                    "PLAYHEAD_QUIET": "1",
                    "PLAYHEAD_BOUNDARIES": "+openai",
                    # of other projects, with this name
                    "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "openai",
                    "OTEL_TRACES_EXPORTER": "none",
                    "OTEL_METRICS_EXPORTER": "none",
                    "OTEL_LOGS_EXPORTER": "none",
                }
                words = [sys.executable, str(HERE / "agents_program.py")]
                if one in LEVELS:
                    words.insert(0, str(Path(sys.executable).with_name("opentelemetry-instrument")))
                for name in PROGRAMS:
                    said = subprocess.check_output([*words, name], env=environ, text=True)
                    found[name][one].append(float(said.split()[-1]))
                served = free_port()
                with listening([*words, "service", str(served)], served, environ):
                    found["service"][one].append(asyncio.run(throughput(served)))
            print(f"round {number + 1} of {rounds}", file=sys.stderr)
    return found


def table(found: dict[str, dict[str, list[float]]]) -> str:
    """What each variant adds, in percent of ``off``, as Markdown."""
    lines = ["| added to *off*, % | off | " + " | ".join(VARIANTS[1:]) + " |"]
    lines.append("|---" * (len(VARIANTS) + 1) + "|")
    for name, by_variant in found.items():
        off = by_variant["off"]
        unit = "requests a second" if name == "service" else "s"
        cells: list[str] = []
        for one in VARIANTS[1:]:
            sides = zip(by_variant[one], off, strict=True)
            ratios = sorted(
                (base / value if name == "service" else value / base) - 1 for value, base in sides
            )
            middle = statistics.median(ratios)
            cells.append(f"{middle:+.1%} [{ratios[0]:+.1%} … {ratios[-1]:+.1%}]")
        lines.append(f"| {name} | {statistics.median(off):.2f} {unit} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    found = measure(given.rounds)
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {given.rounds} rounds\n")
    print(table(found))
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
