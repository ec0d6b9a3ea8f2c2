"""What a recorded process costs while it does nothing: how often it wakes up, and its processor time.

Each process makes one call of the OpenAI SDK over a transport inside the process, then waits. After
that, within a time window, two figures are counted: context switches of all its threads, as counted by
the kernel (``/proc/PID/task/*/status``), and processor time (``/proc/PID/stat``). ``off``: without
playhead. The others: `opentelemetry-instrument` at each level, shipping to a process that discards
everything; ``dead``: at level exchanges, with nothing listening.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from latency import sink

DEAD = "http://127.0.0.1:9"
VARIANTS = ("off", "exchanges", "causal", "strict", "dead")
SETTLE_S = 5.0
"""Seconds that a process is left alone before the window, so that its records are delivered."""
TICKS_S = os.sysconf("SC_CLK_TCK")
PROGRAM = """
import json, sys
import httpx, openai

answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m", "choices": [
    {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "ok"}}]}
answer = json.dumps(answer).encode()
client = openai.OpenAI(api_key="none", http_client=httpx.Client(
    transport=httpx.MockTransport(lambda request: httpx.Response(200, stream=httpx.ByteStream(answer)))))
client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}])
print("ready", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Seen:
    """Counters of a process at one time."""

    at_s: float
    switches: int
    """Context switches of its threads so far, voluntary and involuntary."""
    used_s: float
    """Processor time so far, in seconds."""
    threads: int


@dataclass(frozen=True)
class Idle:
    """The cost of a process in a window in which it did nothing."""

    wakeups_per_s: float
    used_ms_per_s: float
    threads: int


def look(pid: int) -> Seen:
    """Read the counters. Those of threads that end between two reads are lost; none does here."""
    switches = threads = 0
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        threads += 1
        for line in path.read_text().splitlines():
            if "ctxt_switches" in line:
                switches += int(line.split()[1])
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return Seen(time.monotonic(), switches, (int(fields[11]) + int(fields[12])) / TICKS_S, threads)


def between(first: Seen, last: Seen) -> Idle:
    """The difference between two reads."""
    spent_s = last.at_s - first.at_s
    return Idle(
        (last.switches - first.switches) / spent_s,
        (last.used_s - first.used_s) * 1000 / spent_s,
        last.threads,
    )


def measure(window_s: float, variants: tuple[str, ...] = VARIANTS) -> dict[str, Idle]:
    """All variants concurrently, each in a process of its own."""
    with ExitStack() as stack:
        endpoint = stack.enter_context(sink())
        pids: dict[str, int] = {}
        for variant in variants:
            state = stack.enter_context(tempfile.TemporaryDirectory())
            pids[variant] = _started(stack, variant, endpoint, state)
        time.sleep(SETTLE_S)
        first = {variant: look(pid) for variant, pid in pids.items()}
        time.sleep(window_s)
        return {variant: between(first[variant], look(pid)) for variant, pid in pids.items()}


def _started(stack: ExitStack, variant: str, endpoint: str, state: str) -> int:
    command = [sys.executable, "-c", PROGRAM]
    if variant != "off":
        command.insert(0, str(Path(sys.executable).with_name("opentelemetry-instrument")))
    environment = {
        **os.environ,
        "PLAYHEAD_LEVEL": "exchanges" if variant in ("off", "dead") else variant,
        "PLAYHEAD_ENDPOINT": DEAD if variant == "dead" else endpoint,
        "PLAYHEAD_SPOOL_DIR": f"{state}/spool",
        "PLAYHEAD_QUIET": "1",
    }
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = stack.enter_context(
        subprocess.Popen(command, env=environment, cwd=state, stderr=subprocess.DEVNULL, **pipes)
    )
    stack.callback(process.stdin.close)  # type: ignore[union-attr]
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process.pid


def table(found: dict[str, Idle]) -> str:
    """The figures as Markdown."""
    lines = ["| | wake-ups a second | processor time, ms a second | threads |", "|---|---|---|---|"]
    for variant, idle in found.items():
        lines.append(
            f"| {variant} | {idle.wakeups_per_s:.2f} | {idle.used_ms_per_s:.2f} | {idle.threads} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=60.0, help="the window")
    parser.add_argument("--json", type=Path, help="where the figures are written too")
    asked = parser.parse_args()
    found = measure(asked.seconds)
    if asked.json:
        asked.json.write_text(json.dumps({name: asdict(idle) for name, idle in found.items()}))
    print(table(found))


if __name__ == "__main__":
    main()
