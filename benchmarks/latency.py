"""Added latency on the caller's path: playhead beside OpenTelemetry's own and OpenInference.

Each variant lives in a process of its own. Each round covers all variants in varying order, so that a
busy machine affects them equally. A figure is the difference to ``off`` in the same round: median over
the rounds, with minimum and maximum in brackets. ``control`` is a second ``off``: its difference is
noise.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

HERE = Path(__file__).parent
VARIANTS = ("off", "control", "playhead", "genai-openai", "openinference")
PACKAGES = (
    "openai",
    "opentelemetry-sdk",
    "opentelemetry-instrumentation-genai-openai",
    "openinference-instrumentation-openai",
)


@dataclass(frozen=True)
class Sdk:
    """An SDK whose calls are timed."""

    workloads: str
    """Module with its workloads."""
    variants: tuple[str, ...] = VARIANTS
    packages: tuple[str, ...] = PACKAGES


CLOCKS = {"wall": "Wall time", "thread": "Processor time of the caller's thread"}
"""What a call takes; the second is nearly the same on a machine that does other work too."""

SDKS = {
    "openai": Sdk("workloads"),
    "anthropic": Sdk(
        "workloads_anthropic",
        ("off", "control", "playhead", "genai-anthropic", "openinference-anthropic"),
        (
            "anthropic",
            "opentelemetry-sdk",
            "opentelemetry-instrumentation-genai-anthropic",
            "openinference-instrumentation-anthropic",
        ),
    ),
    "google-genai": Sdk(
        "workloads_genai",
        ("off", "control", "playhead", "otel-google-genai", "openinference-google-genai"),
        (
            "google-genai",
            "opentelemetry-sdk",
            "opentelemetry-instrumentation-google-genai",
            "openinference-instrumentation-google-genai",
        ),
    ),
    "boto3": Sdk(
        "workloads_bedrock",
        ("off", "control", "playhead", "otel-botocore", "openinference-bedrock"),
        (
            "boto3",
            "opentelemetry-sdk",
            "opentelemetry-instrumentation-botocore",
            "openinference-instrumentation-bedrock",
        ),
    ),
}


OTHERS = (
    *("openai", "anthropic", "google-genai", "google_genai"),
    *("bedrock", "botocore", "boto3", "httpx", "urllib3"),
)


@dataclass
class Worker:
    """A variant's process."""

    variant: str
    process: subprocess.Popen[str]

    def ask(self, line: str) -> dict[str, float | list[float]]:
        """Run one batch. Returns its figures."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return json.loads(self.read())

    def read(self) -> str:
        """The next line of its output."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.variant} ended with {self.process.wait()}")
        return line


@contextmanager
def serving(*words: str) -> Iterator[str]:
    """A program of this folder that prints its URL."""
    command = [sys.executable, str(HERE / words[0]), *words[1:]]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def sink(*words: str) -> AbstractContextManager[str]:
    """The endpoint to which all variants export."""
    return serving("sink.py", *words)


def asked(url: str) -> dict[str, float]:
    """A server's answer, decoded."""
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


@contextmanager
def worker(variant: str, endpoint: str, state: str, workloads: str = "workloads") -> Iterator[Worker]:
    """Start a variant with full content capture, and wait until it is warm."""
    environment = {
        **os.environ,
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_SEMCONV_STABILITY_OPT_IN": "gen_ai_latest_experimental",
        "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "SPAN_ONLY",
        "OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT": "100000",  # OpenInference needs it: one attribute per field
        "OTEL_PYTHON_DISABLED_INSTRUMENTATIONS": ",".join(OTHERS),  # of other projects, with these names
        "PLAYHEAD_BOUNDARIES": "+openai,+anthropic,+botocore",
        "OTEL_TRACES_EXPORTER": "none",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "PLAYHEAD_ENDPOINT": endpoint,
        "PLAYHEAD_SPOOL_DIR": f"{state}/spool",
        "PLAYHEAD_QUIET": "1",
    }
    command = [sys.executable, str(HERE / "worker.py"), variant, workloads]
    if variant == "playhead":
        command.insert(0, str(Path(sys.executable).with_name("opentelemetry-instrument")))
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        one = Worker(variant, process)
        assert one.read() == "ready\n"
        yield one
        assert process.stdin is not None
        process.stdin.close()
        process.wait(60)


def turns(rounds: int, names: Iterable[str], workers: list[Worker]) -> Iterator[tuple[str, Worker]]:
    """Pairs of workload and worker: each pair once per round, in varying order."""
    order = random.Random(7)
    for number in range(rounds):
        for name in names:
            for one in order.sample(workers, len(workers)):
                yield name, one
        print(f"round {number + 1} of {rounds}", file=sys.stderr)


def measure(
    rounds: int, variants: tuple[str, ...], module: str = "workloads"
) -> dict[str, dict[str, dict[str, list[float]]]]:
    """Workload → variant → ``wall`` and ``cpu``: µs per unit, one figure per round."""
    workloads = importlib.import_module(module).WORKLOADS
    figures = {name: {variant: {"wall": [], "cpu": []} for variant in variants} for name in workloads}
    with ExitStack() as stack:
        endpoint = stack.enter_context(sink())
        state = stack.enter_context(tempfile.TemporaryDirectory())
        workers = [stack.enter_context(worker(one, endpoint, state, module)) for one in variants]
        for name, one in turns(rounds, workloads, workers):
            answer, (_, repetitions, units) = one.ask(name), workloads[name]
            found = figures[name][one.variant]
            found["wall"].append(statistics.median(answer["ns"]) / 1000)
            found["cpu"].append(answer["cpu_ns"] / repetitions / units / 1000)
        assert asked(f"{endpoint}/counts")["bytes"] > 0, "nothing was exported"
    return figures


def summary(figures: dict[str, dict[str, dict[str, list[float]]]]) -> dict[str, object]:
    """Workload → variant → clock → median, minimum and maximum difference to ``off``; and the base."""
    result: dict[str, object] = {}
    for name, variants in figures.items():
        table: dict[str, object] = {}
        for variant, clocks in variants.items():
            table[variant] = {
                clock: _difference(values, variants["off"][clock]) for clock, values in clocks.items()
            }
        result[name] = table
    return result


def _difference(values: list[float], off: list[float]) -> dict[str, float]:
    added = [value - base for value, base in zip(values, off, strict=True)]
    return {
        "median": round(statistics.median(values), 1),
        "added": round(statistics.median(added), 1),
        "least": round(min(added), 1),
        "greatest": round(max(added), 1),
    }


def table(result: dict[str, object], clock: str) -> str:
    """The figures of one clock as a Markdown table."""
    variants = list(next(iter(result.values())))
    lines = ["| | off | " + " | ".join(variants[1:]) + " |", "|---" * (len(variants) + 1) + "|"]
    for name, by_variant in result.items():
        cells = [f"{by_variant['off'][clock]['median']:,.1f}"]
        for variant in variants[1:]:
            one = by_variant[variant][clock]
            cells.append(f"{one['added']:+,.1f} [{one['least']:+,.1f} … {one['greatest']:+,.1f}]")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Measure, print two tables, write the JSON."""
    given = arguments(__doc__, rounds=15)
    sdk = SDKS[given.sdk]
    os.environ["BENCH_CLOCK"] = given.clock
    variants = tuple(given.variants.split(",")) if given.variants else sdk.variants
    figures = measure(given.rounds, variants, sdk.workloads)
    tables = {
        "wall": f"{CLOCKS[given.clock]}, µs per call (chunk: per chunk); added to off",
        "cpu": "Processor time of the process, µs per call (chunk: per chunk); added to off",
    }
    report(given, figures, tables, sdk.packages)


def arguments(about: str | None, rounds: int) -> argparse.Namespace:
    """The command line of a comparison; ``rounds``: the default number."""
    parser = argparse.ArgumentParser(description=(about or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=rounds)
    parser.add_argument("--variants", default="", help="comma-separated; off is needed")
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="what is timed on the path")
    parser.add_argument("--sdk", choices=SDKS, default="openai", help="whose calls are timed")
    parser.add_argument("--json", type=Path, help="write all figures here")
    return parser.parse_args()


def report(
    given: argparse.Namespace,
    figures: dict[str, dict[str, dict[str, list[float]]]],
    tables: dict[str, str],
    names: tuple[str, ...] = PACKAGES,
) -> None:
    """Print a table for each clock in ``tables``, below the text given there; write the JSON."""
    result = summary(figures)
    machine = f"Python {platform.python_version()}, {os.cpu_count()} cores, {given.rounds} rounds"
    packages = ", ".join(f"{name} {version(name)}" for name in names)
    print(f"{machine}\n{packages}")
    for clock, says in tables.items():
        print(f"\n{says}\n\n{table(result, clock)}")
    if given.json:
        facts = {"machine": machine, "packages": packages, "summary": result, "rounds": figures}
        given.json.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    main()
