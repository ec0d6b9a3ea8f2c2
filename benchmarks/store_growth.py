"""How the receiver's work grows with what it stores: processor time of each part, at growing sizes.

One quantity grows at a time: calls of one run, runs, light spans, payload spans. Between two sizes the
requests of the difference are stored, then the runs are summed up and made searchable, each until
nothing is left. What grows linearly takes the same time a span at every size. ``newest runs``: the list
of the newest 50, of which the time should not depend on the size at all.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from ingest_load import Load, Request, requests

from playhead_receiver.ingest import Intake
from playhead_receiver.storage import Query, open_store

LISTED = 20
"""How often the list of runs is asked for at each size."""
AT_ONCE = 10
"""Requests that are stored before the runs are summed up and indexed again."""
STEPS = 20


@dataclass(frozen=True)
class Growth:
    """A quantity that grows, and the load that makes it grow."""

    unit: str
    load: Load
    spans: int
    """Spans of one unit."""
    sizes: tuple[int, ...]


GROWTHS = {
    "calls": Growth("calls of one run", Load(1, 10_000, "light"), 2, (1_000, 3_000, 10_000)),
    "runs": Growth("runs", Load(100_000, 1, "light"), 3, (1_000, 10_000, 30_000, 100_000)),
    "light": Growth(
        "light spans", Load(24_390, STEPS, "light"), 1, (10_000, 100_000, 300_000, 1_000_000)
    ),
    "payload": Growth("payload spans", Load(4_878, STEPS), 1, (10_000, 50_000, 200_000)),
}


def used_by(act: Callable[[], object]) -> float:
    """Return the seconds of processor time that a call takes."""
    begin_s = time.process_time()
    act()
    return time.process_time() - begin_s


def until_done(act: Callable[[], int]) -> None:
    """Call ``act`` until it returns 0."""
    while act():
        pass


def measure(growth: Growth, most: int) -> Iterator[dict[str, Any]]:
    """Yield a row a size: µs a span of each part since the size before, and ms of a list."""
    load = requests(growth.load)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(Path(folder))
        intake, done = Intake(store), 0
        for size in growth.sizes:
            if size > most:
                break
            stored, before = dict.fromkeys(("intake", "summaries", "index"), 0.0), done
            while done < size * growth.spans and (some := list(islice(load, AT_ONCE))):
                stored["intake"] += used_by(lambda some=some: take(intake, some))
                done += sum(request.spans for request in some)
                stored["summaries"] += used_by(lambda: until_done(store.sum_up))
                stored["index"] += used_by(lambda: until_done(store.index))
            lists = [used_by(lambda: list(store.runs(Query(limit=50)))) for _ in range(LISTED)]
            row = {part: used_s / (done - before) * 1e6 for part, used_s in stored.items()}
            yield {growth.unit: size, **row, "newest runs, ms": statistics.median(lists) * 1000}
        store.close()


def take(intake: Intake, some: list[Request]) -> None:
    """Store requests."""
    for request in some:
        intake.export("traces", request.body)


def main() -> None:
    """Print a table for each quantity."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=GROWTHS, nargs="*", default=list(GROWTHS))
    parser.add_argument("--most", type=int, default=1_000_000, help="leave out larger sizes")
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found: dict[str, list[dict[str, Any]]] = {}
    for name in asked.only:
        growth = GROWTHS[name]
        print(f"\n| {growth.unit} | intake, µs a span | summaries | index | newest runs, ms |")
        print("|---|---|---|---|---|", flush=True)
        rows = found[name] = []
        for row in measure(growth, asked.most):
            rows.append(row)
            cells = [f"{value:,.0f}" for value in list(row.values())[:4]]
            print(f"| {' | '.join(cells)} | {row['newest runs, ms']:.1f} |", flush=True)
    if asked.json:
        asked.json.write_text(json.dumps(found, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
