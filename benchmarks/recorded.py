"""Recorded runs into a store: spans and tape together, as the exporter sends them.

Agents of some steps are recorded with nothing listening, so that all they did lies in the spool. Then
`playhead spool push` sends it, several at once, to a receiver of its own process, which is killed
afterwards; what is missing in its store counts as lost.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from standing import BIN, HERE, Standing, disk_bytes, unheard

from playhead_receiver.store import Query, open_store


def record(environment: dict[str, str], runs: int, steps: int) -> None:
    """Record agents, two at a time."""

    def one(number: int) -> None:
        agent = [BIN / "opentelemetry-instrument", sys.executable, HERE / "steps_agent.py"]
        words = [*agent, str(steps), str(number + 1)]
        subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(runs)))


def push(environment: dict[str, str], senders: int) -> float:
    """Send all that lies in the spool; the seconds that it took."""
    begin = time.perf_counter()
    words = [BIN / "playhead", "spool", "push"]
    pushing = [
        subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) for _ in range(senders)
    ]
    for process in pushing:
        process.wait()
    return time.perf_counter() - begin


def main() -> None:
    """Record, send, count; prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--senders", type=int, default=4)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        spool, data = Path(place, "spool"), Path(place, "data")
        environment = unheard(spool, data)
        record(environment, given.runs, given.steps)
        spool_bytes = disk_bytes(spool)
        standing = Standing(data)
        standing.settle()
        before_s = standing.cpu_s()
        took_s = push({**environment, "PLAYHEAD_ENDPOINT": standing.http}, given.senders)
        cpu_s, peak_mib = standing.cpu_s() - before_s, standing.peak_mib()
        standing.stop(signal.SIGKILL)
        store = open_store(data, read_only=True)
        kept = list(store.runs(Query(mode=None, limit=1 << 30)))
        facts = sum(
            1 for run in kept for one in run.instances for _ in store.tape(bytes.fromhex(one)).facts()
        )
        store.close()
        spans = sum(run.spans for run in kept)
        lost = given.runs - sum(run.status == "success" and not run.missing for run in kept)
        columns = {
            "runs": f"{len(kept):,}",
            "incomplete": f"{lost}",
            "spans": f"{spans:,}",
            "facts": f"{facts:,}",
            "seconds": f"{took_s:.1f}",
            "spans_s": f"{spans / took_s:,.0f}",
            "facts_s": f"{facts / took_s:,.0f}",
            "receiver_cpu_s": f"{cpu_s:.1f}",
            "peak_mib": f"{peak_mib:.0f}",
            "spool_bytes": f"{spool_bytes:,}",
            "disk_bytes_step": f"{disk_bytes(data) / given.runs / given.steps:,.0f}",
        }
    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
    print("| " + " | ".join(columns.values()) + " |")


if __name__ == "__main__":
    main()
