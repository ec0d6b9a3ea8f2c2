"""Recorded runs into a store: spans and tape together, as the exporter sends them.

Agents of several steps are recorded with nothing listening, so that all their records are in the spool.
Then several concurrent `playhead spool push` send it to a receiver in its own process, which is killed
afterwards; what is missing in its store counts as lost. The same spool is sent twice, each time to a new
receiver: in windows, and one by one, as to an endpoint that does not support windows.
"""

from __future__ import annotations

import argparse
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from standing import BIN, HERE, Standing, disk_bytes, unheard

from playhead_receiver.storage import Query, open_store


def record(environment: dict[str, str], runs: int, steps: int) -> None:
    """Record agents, two at a time."""

    def one(number: int) -> None:
        agent = [BIN / "opentelemetry-instrument", sys.executable, HERE / "steps_agent.py"]
        words = [*agent, str(steps), str(number + 1)]
        subprocess.run(words, env=environment, check=True, stdout=subprocess.DEVNULL)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(one, range(runs)))


def push(environment: dict[str, str], senders: int) -> float:
    """Send everything in the spool. Returns the seconds that it took."""
    begin = time.perf_counter()
    words = [BIN / "playhead", "spool", "push"]
    pushing = [
        subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL) for _ in range(senders)
    ]
    for process in pushing:
        process.wait()
    return time.perf_counter() - begin


def wire_bytes() -> int:
    """Bytes sent over loopback by all processes since the machine was started."""
    return int(Path("/sys/class/net/lo/statistics/tx_bytes").read_text())


def delivered(way: str, spool: Path, data: Path, given: argparse.Namespace) -> dict[str, str]:
    """Send ``spool`` the given way to a new receiver. Returns the cost, and what was kept."""
    environment = {
        **unheard(spool, data),
        "PLAYHEAD_ENDPOINT_KIND": "other" if way == "one by one" else "playhead",
    }
    spool_bytes = disk_bytes(spool)
    standing = Standing(data)
    standing.settle()
    before_s, before_bytes = standing.cpu_s(), wire_bytes()
    took_s = push({**environment, "PLAYHEAD_ENDPOINT": standing.http}, given.senders)
    cpu_s, peak_mib = standing.cpu_s() - before_s, standing.peak_mib()
    sent_bytes = wire_bytes() - before_bytes
    standing.stop(signal.SIGKILL)
    store = open_store(data, read_only=True)
    kept = list(store.runs(Query(mode=None, limit=1 << 30)))
    facts = sum(
        1 for run in kept for one in run.instances for _ in store.tape(bytes.fromhex(one)).facts()
    )
    store.close()
    spans = sum(run.spans for run in kept)
    lost = given.runs - sum(run.status == "success" and not run.missing for run in kept)
    steps = given.runs * given.steps
    return {
        "way": way,
        "runs": f"{len(kept):,}",
        "incomplete": f"{lost}",
        "spans": f"{spans:,}",
        "facts": f"{facts:,}",
        "seconds": f"{took_s:.1f}",
        "spans_s": f"{spans / took_s:,.0f}",
        "facts_s": f"{facts / took_s:,.0f}",
        "receiver_cpu_s": f"{cpu_s:.1f}",
        "receiver_us_fact": f"{cpu_s / max(1, facts) * 1e6:,.0f}",
        "wire_bytes_step": f"{sent_bytes / steps:,.0f}",
        "peak_mib": f"{peak_mib:.0f}",
        "spool_bytes": f"{spool_bytes:,}",
        "disk_bytes_step": f"{disk_bytes(data) / steps:,.0f}",
    }


def main() -> None:
    """Record, send, count; prints a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--senders", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=1, help="how often each way is taken, in turn")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        recorded = Path(place, "recorded")
        record(unheard(recorded, Path(place, "none")), given.runs, given.steps)
        for number in range(given.rounds):
            for way in ("one by one", "in windows"):
                spool, data = Path(place, f"spool-{way}-{number}"), Path(place, f"data-{way}-{number}")
                shutil.copytree(recorded, spool)
                columns = delivered(way, spool, data, given)
                if not number and way == "one by one":
                    print("| " + " | ".join(columns) + " |\n" + "|---" * len(columns) + "|")
                print("| " + " | ".join(columns.values()) + " |", flush=True)
                shutil.rmtree(spool)
                shutil.rmtree(data)


if __name__ == "__main__":
    main()
