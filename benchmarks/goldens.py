"""How long a suite of goldens takes under pytest: one after the other, and with ``-n 2``.

Each golden is a run of ``examples/weather_agent.py``: the real OpenAI SDK, a retry, tools in threads and
a streamed answer, five requests in all. They are recorded first, against a server on loopback that is
stopped before they are replayed.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from playhead_cli.demo.provider import Provider

AGENT = Path(__file__).parents[1] / "examples" / "weather_agent.py"
TEST = """
import pytest

@pytest.mark.parametrize("number", range(COUNT))
def test_packing(tape, number):
    command = ["weather_agent.py", f"Trip {number}: I fly to Oslo, then to Rome. What do I pack?"]
    run = tape.replay(command=command)
    run.assert_tool_sequence(["weather", "weather"])
    run.assert_steps(at_most=4)
    run.assert_status("success")
"""
WAYS = {"sequential": (), "-n 2": ("-n", "2")}


def pytest(folder: Path, *words: str, **variables: str) -> float:
    """Run the whole suite, which must pass. Returns seconds."""
    dropped = ("PLAYHEAD", "OTEL", "PYTEST", "OPENAI", "CI")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    environment = {**kept, "OPENAI_API_KEY": "none", "PLAYHEAD_QUIET": "1", **variables}
    begun = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )
    taken = time.monotonic() - begun
    if done.returncode:
        raise RuntimeError(done.stdout[-4000:] + done.stderr[-2000:])
    return taken


def suite(folder: Path, count: int) -> None:
    """Record ``count`` goldens."""
    shutil.copy(AGENT, folder)
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "test_packing.py").write_text(TEST.replace("COUNT", str(count)))
    with Provider(pace_s=0.0) as provider:
        pytest(folder, "--playhead-record=missing", **provider.environment)


def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Way → seconds, one figure per round; the order of ways varies."""
    figures: dict[str, list[float]] = {way: [] for way in WAYS}
    order = random.Random(7)
    for _ in range(rounds):
        for way in order.sample(list(WAYS), len(WAYS)):
            figures[way].append(round(pytest(folder, *WAYS[way]), 2))
    return figures


def main() -> None:
    """Record, measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--goldens", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where the suite is kept, and found again")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "test_packing.py").exists():
            folder.mkdir(parents=True, exist_ok=True)
            suite(folder, given.goldens)
        figures = measure(folder, given.rounds)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {given.rounds} rounds"
    packages = ", ".join(f"{name} {version(name)}" for name in ("openai", "pytest", "pytest-xdist"))
    print(f"{machine}\n{packages}\n\nseconds for {given.goldens} goldens, median [least … most]\n")
    for way, taken in figures.items():
        print(f"{way:>12}  {statistics.median(taken):5.1f} [{min(taken):.1f} … {max(taken):.1f}]")
    if given.json:
        facts = {"machine": machine, "packages": packages, "seconds": figures}
        given.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
