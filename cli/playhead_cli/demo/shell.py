"""Commands that a user would type, each printed before it runs."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from playhead_core.errors import PlayheadError, UsageError

SDKS = ("openai", "anthropic", "httpx")
NOT_INHERITED = ("VIRTUAL_ENV", "PLAYHEAD_ENDPOINT", "PLAYHEAD_AGENT", "OTEL_SERVICE_NAME")
"""Variables that are not inherited.

The demo's agents run in this interpreter and are recorded here under their own names.
"""


def agents_dir() -> Path:
    """Folder of the example agents: ``examples/`` of the repository, or inside the installed package."""
    return (Path(__file__).parent / "agents").resolve()


@dataclass(frozen=True, slots=True)
class Stage:
    """The folder and environment of a demonstration."""

    environ: Mapping[str, str]
    """The environment of its commands. ``PLAYHEAD_DATA_DIR`` in it selects another data folder."""
    agents: Path = field(default_factory=agents_dir)
    """Folder of the agents that are recorded."""
    port: int = 0
    """Port of the provider; 0: any."""


def say(text: str, *commands: str) -> None:
    """Print a message of the demo; below it commands to try."""
    print(f"\n{text}", flush=True)
    for command in commands:
        print(f"  {command}", flush=True)


def require(*modules: str) -> None:
    """`UsageError` when a module that the demo needs is not installed."""
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise UsageError(f"the demo needs {', '.join(missing)}", hint="pip install 'playhead[demo]'")


class Shell:
    """Runs commands in a folder and prints each before it runs. ``environ``: their environment."""

    def __init__(self, environ: Mapping[str, str], folder: Path | None = None) -> None:
        self.environ = {name: value for name, value in environ.items() if name not in NOT_INHERITED}
        self._folder = folder

    def playhead(self, *arguments: str) -> int:
        """Run a playhead command. Returns its exit status."""
        return self._run("playhead", "playhead_cli", arguments)

    def pytest(self, *arguments: str) -> int:
        """Run pytest. Returns its exit status."""
        return self._run("pytest", "pytest", arguments)

    def record(self, agent: Path, *words: str, fails: bool = False) -> str:
        """Record one agent.

        Returns the name of its run. `PlayheadError` if it did not end as expected.
        """
        status = self.playhead("record", _short(agent, self._folder), *words)
        latest = self.latest()
        if (status != 0) != fails:
            raise PlayheadError(f"{agent.name} ended with {status}", hint=f"playhead show {latest}")
        return latest

    def latest(self) -> str:
        """Return the name of the newest run."""
        listed = subprocess.run(
            [sys.executable, "-m", "playhead_cli", "ls", "--json"],
            env=self.environ,
            check=True,
            stdout=subprocess.PIPE,
        )
        runs: list[dict[str, Any]] = json.loads(listed.stdout)["runs"]
        return str(runs[0]["name"])

    def _run(self, name: str, module: str, arguments: tuple[str, ...]) -> int:
        print(f"\n$ {name} {shlex.join(arguments)}", flush=True)
        words = [sys.executable, "-m", module, *arguments]
        return subprocess.run(words, env=self.environ, cwd=self._folder).returncode


def _short(path: Path, folder: Path | None) -> str:
    here = folder or Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
