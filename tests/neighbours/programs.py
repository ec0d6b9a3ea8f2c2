"""The programs next to playhead, unmodified: built once, from pinned versions, into a cache.

``python -m neighbours.programs`` builds what is missing and prints a line for each. What this machine
cannot build is one line too, and no error: its tests are not collected then.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MANIFEST = Path(__file__).parents[2] / "collector-config" / "builder.yaml"
CACHE = Path(os.environ.get("NEIGHBOURS_CACHE") or "~/.cache/playhead-neighbours").expanduser()
BUILDER = "go.opentelemetry.io/collector/cmd/builder@v0.161.0"
TELEMETRYGEN = "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen@v0.161.0"
JAEGER = "github.com/jaegertracing/jaeger/cmd/jaeger@v1.76.0"
"""The module version of release 2.13.0."""
GO = {
    "CGO_ENABLED": "0",
    "GOTOOLCHAIN": "local",
    "GOFLAGS": os.environ.get("GOFLAGS", "")
    + " -buildvcs=false -trimpath",  # as the builder does: they share a cache
}


def run(*words: str | Path, cwd: Path, **environ: str) -> None:
    """Run a step of a build; its output counts only if it fails."""
    environment = {**os.environ, **GO, **environ}
    subprocess.run(words, cwd=cwd, env=environment, check=True, capture_output=True, text=True)


def installed(module: str) -> Callable[[Path], Path]:
    """How a command of a Go module is built."""

    def build(folder: Path) -> Path:
        run("go", "install", module, cwd=folder, GOBIN=str(folder))
        return folder / module.partition("@")[0].rpartition("/")[2]

    return build


def jaeger(folder: Path) -> Path:
    """Build Jaeger in a module of its own: `go install` refuses modules with replacements."""
    run("go", "mod", "init", "neighbours", cwd=folder)
    run("go", "get", "-tool", JAEGER, cwd=folder)
    run("go", "build", "-o", "jaeger", JAEGER.partition("@")[0], cwd=folder)
    return folder / "jaeger"


def collector(folder: Path) -> Path:
    """Build the Collector of `MANIFEST`."""
    builder = installed(BUILDER)(folder)
    run(builder, "--config", MANIFEST, cwd=folder)
    return folder / "otelcol" / "otelcol"


def promtool(folder: Path) -> Path:
    """Take promtool out of Debian's package."""
    run("apt-get", "download", "prometheus", cwd=folder)
    run("dpkg", "-x", next(folder.glob("prometheus_*.deb")), folder, cwd=folder)
    return folder / "usr" / "bin" / "promtool"


@dataclass(frozen=True)
class Program:
    """A program: ``pinned`` is what decides what is built, ``version`` asks it what it is."""

    name: str
    pinned: str
    build: Callable[[Path], Path]
    version: tuple[str, ...]

    @property
    def path(self) -> Path:
        """Where it is, or will be."""
        return CACHE / f"{self.name}-{hashlib.sha256(self.pinned.encode()).hexdigest()[:12]}"


PROGRAMS = {
    one.name: one
    for one in (
        Program("promtool", "Debian", promtool, ("--version",)),
        Program("otelcol", BUILDER + MANIFEST.read_text("utf-8"), collector, ("--version",)),
        Program("telemetrygen", TELEMETRYGEN, installed(TELEMETRYGEN), ()),
        Program("jaeger", JAEGER, jaeger, ()),
    )
}


def ensure(program: Program) -> str:
    """Build a program unless it is there. Returns what to print about it."""
    pinned = program.pinned.partition("dist:")[0].rpartition("@")[2].split()[0]
    if program.path.exists():
        return f"{program.name}: {reported(program) or pinned}"
    CACHE.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        try:
            made = program.build(Path(folder))
            shutil.move(made, program.path)
        except FileNotFoundError as problem:
            return f"{program.name}: this machine cannot build it: no {problem.filename}"
        except subprocess.CalledProcessError as problem:
            *_, last = problem.stderr.strip().splitlines() or [str(problem)]
            return f"{program.name}: this machine cannot build it: {last[:200]}"
    return f"{program.name}: {reported(program) or pinned}, built in {time.monotonic() - start:.0f} s"


def reported(program: Program) -> str:
    """What a program says about its version, if it does."""
    if not program.version:
        return ""
    done = subprocess.run([program.path, *program.version], capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr).partition("\n")[0].strip()


def main() -> int:
    """Build all."""
    for program in PROGRAMS.values():
        print(ensure(program), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
