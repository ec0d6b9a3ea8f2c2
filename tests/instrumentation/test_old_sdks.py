"""The same client tests against older SDKs, each in an environment of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ROOMS = ("semconv", "instrumentation", "exporter", "receiver", "replay", "checkpoint", "cli")
CHANGED = {"openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2"}
"""What an old SDK may want in another version than the one that is pinned."""


def declared(room: str) -> list[str]:
    """What a room needs of others."""
    project = tomllib.loads((ROOT / room / "pyproject.toml").read_text("utf-8"))["project"]
    return [one for one in project["dependencies"] if not one.startswith("playhead")]


NEEDED = (
    *declared("semconv"),
    *declared("instrumentation"),
    "pytest",
    "pytest-timeout",
    "pytest-xdist",
)


def pip(python: Path, *words: str) -> None:
    done = subprocess.run(
        [str(python), "-m", "pip", "--disable-pip-version-check", *words],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.acceptance
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("openai", "anthropic"),
    [("openai>=2,<3", "anthropic<1"), ("openai>=1.90,<2", "anthropic>=1,<2")],
)
def test_call_forms_with_older_sdks(tmp_path, openai, anthropic):
    venv.create(tmp_path / "venv", with_pip=True)
    python = tmp_path / "venv" / "bin" / "python"
    pins = [
        line
        for line in (ROOT / "constraints.txt").read_text("utf-8").splitlines()
        if line.partition("==")[0].strip().lower() not in CHANGED
    ]
    constraints = tmp_path / "constraints.txt"
    constraints.write_text("\n".join(pins), "utf-8")
    pip(python, "install", "-q", "-c", str(constraints), *NEEDED, openai, anthropic)
    path = os.pathsep.join(str(ROOT / room) for room in ROOMS)
    done = subprocess.run(
        [
            str(python),
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "tests/instrumentation/libraries/model_sdks",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    versions = subprocess.run(
        [str(python), "-m", "pip", "list", "--format=freeze"], capture_output=True, text=True, check=True
    )
    sys.stdout.write(done.stdout)
    sys.stdout.write(
        "".join(
            one + "\n" for one in versions.stdout.splitlines() if one.startswith(("openai", "anthr"))
        )
    )
    assert done.returncode == 0, done.stdout[-6000:]


@pytest.mark.acceptance
@pytest.mark.timeout(300)
@pytest.mark.parametrize("wanted", ["asyncpg==0.27.0", "asyncpg==0.29.0", "asyncpg"])
def test_statements_with_the_oldest_and_the_newest_asyncpg(tmp_path, wanted):
    """`async-timeout` is what the older ones import."""
    pip(Path(sys.executable), "install", "-q", "--target", str(tmp_path), wanted, "async-timeout")
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"),
            *("-k", "asyncpg", "tests/instrumentation/libraries/databases"),
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:]
