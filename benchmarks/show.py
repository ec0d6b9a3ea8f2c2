"""Processor time and memory of ``playhead show`` for one long run, also beside another checkout."""

from __future__ import annotations

import argparse
import multiprocessing
import os
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from statistics import median

from query import add_long_run

from playhead_receiver.storage import open_store

PACKAGES = "semconv exporter instrumentation checkpoint replay analysis receiver cli".split()
SLOW = ("PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED")
"""Variables under which each start compiles everything, and each line is written alone."""
VIEWS = {"tree": (), "--json": ("--json",)}


def fill(folder: str, spans: int) -> None:
    """Store one run of about this many spans."""
    store = open_store(folder)
    add_long_run(store, spans)
    store.close()


def shown(folder: str, checkout: str, options: tuple[str, ...]) -> tuple[float, float, int]:
    """Processor time in s, peak memory in MB and size of the output of one command."""
    env = {name: value for name, value in os.environ.items() if name not in SLOW} | {"NO_COLOR": "1"}
    if checkout:
        env["PYTHONPATH"] = os.pathsep.join(str(Path(checkout, name)) for name in PACKAGES)
    command = [sys.executable, "-m", "playhead_cli", "show", "last", "--store", folder, *options]
    process = subprocess.Popen(command, env=env, stdout=subprocess.PIPE)
    assert process.stdout is not None
    size: list[int] = []
    reader = threading.Thread(target=lambda out=process.stdout: size.append(len(out.read())))
    reader.start()
    _, status, used = os.wait4(process.pid, 0)
    reader.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}: exit status {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, size[0]


def main() -> None:
    """Fill, show, print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--spans", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beside", default="", help="folder of another checkout, shown in turn")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # In a separate process: the peak of a command is at least that of the process that starts it.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as filling:
            for spans in (2, given.spans):
                filling.submit(fill, f"{folder}/{spans}", spans).result()
        rows = [
            (f"{view}, {spans:,} spans", f"{folder}/{spans}", checkout, options)
            for spans in (2, given.spans)
            for view, options in VIEWS.items()
            for checkout in dict.fromkeys(("", given.beside))
        ]
        found: list[list[tuple[float, float, int]]] = [[] for _ in rows]
        for _ in range(given.rounds + 1):
            for (_, place, checkout, options), results in zip(rows, found, strict=True):
                results.append(shown(place, checkout, options))
    print("| view | checkout | processor, s: median (least) | peak, MB |\n|---|---|---|---|")
    for (name, _, checkout, _), results in zip(rows, found, strict=True):
        times, peaks, _ = zip(*results[1:], strict=True)  # the first one compiled the modules
        where = "the other" if checkout else "this"
        print(f"| {name} | {where} | {median(times):.2f} ({min(times):.2f}) | {max(peaks):.0f} |")


if __name__ == "__main__":
    main()
