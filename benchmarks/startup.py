"""What it costs to start: time that playhead adds to a program that does nothing.

Each figure is the median of differences between two adjacent starts, one with and one without, in
varying order, so that a busy machine affects both equally. ``opentelemetry-instrument`` is compared with
itself in a setup where the SDK is configured by its own configurator, and playhead is neither distro,
configurator nor instrumentor; ``playhead record`` is compared with plain ``python``. ``control``
compares the base with itself: its difference is noise. Processor time is that of the process and of all
children that it waited for.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from latency import sink

LEVELS = ("exchanges", "causal", "strict")
LEFT_OUT = ("PLAYHEAD", "OTEL", "PYTHON")
"""Prefixes of variables that would affect the measurement, most of all ``PYTHONDONTWRITEBYTECODE``."""

CLOCKS = ("processor time", "wall time")
HI = 'print("hi")'
CONFIGURATOR = """[opentelemetry_configurator]
control = opentelemetry.sdk._configuration:_OTelSDKConfigurator
"""
"""Entry point of a distribution on the path of the control, which only configures the SDK."""


@dataclass(frozen=True)
class Start:
    """A way to start a program."""

    name: str
    words: Sequence[str]
    environ: Mapping[str, str]

    def measure(self) -> tuple[float, float]:
        """Start it once. Returns ms of processor time and ms of wall time. It must succeed."""
        begun = time.perf_counter_ns()
        null = os.open(os.devnull, os.O_RDWR)
        streams = [(os.POSIX_SPAWN_DUP2, null, number) for number in range(3)]
        pid = os.posix_spawn(self.words[0], self.words, self.environ, file_actions=streams)
        os.close(null)
        _, status, usage = os.wait4(pid, 0)
        wall = time.perf_counter_ns() - begun
        if status:
            raise SystemExit(f"{self.name} ended with {os.waitstatus_to_exitcode(status)}")
        return (usage.ru_utime + usage.ru_stime) * 1000, wall / 1e6


def starts(folder: Path, endpoint: str) -> dict[str, tuple[Start, list[Start]]]:
    """By program: the base of the comparison, and the starts that are measured against it."""
    python, beside = sys.executable, Path(sys.executable).parent
    made = folder / "path" / "control-0.dist-info"
    made.mkdir(parents=True)
    (made / "METADATA").write_text("Metadata-Version: 2.1\nName: control\nVersion: 0\n")
    (made / "entry_points.txt").write_text(CONFIGURATOR)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(LEFT_OUT)}
    common = {
        **kept,
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "PLAYHEAD_SPOOL_DIR": str(folder / "spool"),
        "PLAYHEAD_DATA_DIR": str(folder / "data"),
        "PLAYHEAD_QUIET": "1",
    }
    without = {
        **common,
        "PYTHONPATH": str(made.parent),
        "OTEL_PYTHON_DISTRO": "none",
        "OTEL_PYTHON_CONFIGURATOR": "control",
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": "playhead",
    }
    instrumented = [str(beside / "opentelemetry-instrument"), python, "-c", "pass"]
    agent = folder / "agent.py"
    agent.write_text(HI + "\n")
    recorded = [str(beside / "playhead"), "record"]

    def instrument(name: str, **more: str) -> Start:
        return Start(name, instrumented, {**common, "PLAYHEAD_ENDPOINT": endpoint, **more})

    return {
        "opentelemetry-instrument python -c pass": (
            Start("without playhead", instrumented, without),
            [
                Start("control", instrumented, without),
                instrument("disabled", PLAYHEAD_DISABLED="1"),
                *(instrument(level, PLAYHEAD_LEVEL=level) for level in LEVELS),
            ],
        ),
        f"playhead record, {HI}": (
            Start("python agent.py", [python, str(agent)], common),
            [
                Start("control", [python, str(agent)], common),
                *(Start(one, [*recorded, "--level", one, str(agent)], common) for one in LEVELS),
            ],
        ),
    }


def measure(pairs: int, only: Sequence[str] = ()) -> dict[str, dict[str, dict[str, list[float]]]]:
    """By program, launcher and each of `CLOCKS`: ms added, ms of the base; one figure per pair."""
    order = random.Random(7)
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    with ExitStack() as stack:
        endpoint = stack.enter_context(sink())
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for what, (base, ways) in starts(folder, endpoint).items():
            others = [one for one in ways if not only or one.name in ("control", *only)]
            for one in (base, *others):
                one.measure()  # compiles it and creates its folders
            figures = found[what] = {one.name: defaultdict(list) for one in others}
            for number in range(pairs):
                for one in order.sample(others, len(others)):
                    spent = {}
                    for start in order.sample([base, one], 2):
                        spent[start.name] = start.measure()
                    held = figures[one.name]
                    for clock, ours, without in zip(
                        CLOCKS, spent[one.name], spent[base.name], strict=True
                    ):
                        held[clock].append(ours - without)
                        held[f"{clock} of the base"].append(without)
                print(f"{what}: pair {number + 1} of {pairs}", file=sys.stderr)
    return found


def tables(found: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> str:
    """The figures as Markdown."""
    lines: list[str] = []
    for what, by_name in found.items():
        lines += [f"| `{what}`: ms added | {' | '.join(CLOCKS)} |", "|---|---|---|"]
        for name, figures in by_name.items():
            lines.append(f"| {name} | " + " | ".join(_cell(figures[one]) for one in CLOCKS) + " |")
        base = [statistics.median(by_name["control"][f"{one} of the base"]) for one in CLOCKS]
        lines += ["", f"Without: {base[0]:,.0f} ms of processor time, {base[1]:,.0f} ms", ""]
    return "\n".join(lines)


def _cell(values: Sequence[float]) -> str:
    low, _, high = statistics.quantiles(values, n=4)
    return f"{statistics.median(values):+,.0f} [{low:+,.0f} … {high:+,.0f}]"


def main() -> None:
    """Measure, print the tables, write the JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("--only", nargs="+", default=(), help="exchanges, …: these, and the control")
    parser.add_argument("--json", type=Path, help="write all figures here")
    given = parser.parse_args()
    found = measure(given.pairs, given.only)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {given.pairs} pairs"
    print(f"{machine}; median [quartiles]\n\n{tables(found)}")
    if given.json:
        given.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
