"""The demo itself: record the example agents, look at a run, replay them all with the provider gone.

Everything is done by the commands that a user would type, each printed before it runs.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from playhead_receiver.command_name import command_name
from playhead_receiver.demo.provider import Provider
from playhead_receiver.demo.trap import Trap
from playhead_semconv.errors import PlayheadError, UsageError

AGENTS = ("weather_agent.py", "research_agent.py", "refund_agent.py")
SDKS = ("openai", "anthropic", "httpx")
NOT_INHERITED = ("VIRTUAL_ENV", "PLAYHEAD_ENDPOINT", "PLAYHEAD_AGENT", "OTEL_SERVICE_NAME")
"""The demo's agents run in this interpreter and are recorded here, under their own names."""


def agents_dir() -> Path:
    """Where the example agents lie: ``examples/`` of the repository, or inside the installed package."""
    return (Path(__file__).parent / "agents").resolve()


def run_demo(*, environ: Mapping[str, str] | None = None) -> int:
    """Show the whole way on the user's own data directory; 0 when every replay was identical.

    ``environ``: what the commands inherit, by default this process's environment; ``PLAYHEAD_DATA_DIR``
    in it chooses another data directory. `UsageError` when the SDKs of the agents are not installed.
    """
    _require_sdks()
    begin = time.monotonic()
    inherited = os.environ if environ is None else environ
    tour = _Tour({name: value for name, value in inherited.items() if name not in NOT_INHERITED})
    with Provider() as provider:
        port = int(provider.url.rpartition(":")[2])
        tour.environ.update(provider.environment)
        _say(f"A scripted provider answers on {provider.url}; nothing leaves this machine.")
        _say("1. Record three agents, unmodified, on the real SDKs.")
        runs = [tour.record(agents_dir() / agent) for agent in AGENTS]
        asked = provider.requests
    _say("2. Look at the first. The provider refused its first request with a 429; the SDK came again.")
    tour.playhead("show", runs[0])
    _say("3. Replay, with the provider gone. What was said is on the tape.")
    for name in provider.environment:
        tour.environ.pop(name)
    with Trap(port) as trap:
        statuses = [tour.playhead("replay", run) for run in runs]
        contacts = trap.contacts
    took = time.monotonic() - begin
    if any(statuses) or contacts:
        _say(f"Not every replay was identical; {contacts} connections were tried. That is a defect.")
        return 1
    _say(
        f"{len(runs)} runs, {asked} requests recorded; {len(runs)} replays identical, "
        f"0 connections tried; {took:.0f} s."
    )
    own = command_name()
    _say("next:", f"{own} show {runs[0]}:2", f"{own} replay {runs[1]}", f"{own} ls")
    return 0


class _Tour:
    """Runs commands of playhead, each printed before."""

    def __init__(self, environ: dict[str, str]) -> None:
        self.environ = environ

    def playhead(self, *arguments: str) -> int:
        """Run one; its exit status."""
        print(f"\n$ playhead {shlex.join(arguments)}", flush=True)
        return subprocess.run([*_command(), *arguments], env=self.environ).returncode

    def record(self, agent: Path) -> str:
        """Record one agent; the name of its run. `PlayheadError` if it failed."""
        status = self.playhead("record", _short(agent))
        latest = self._latest()
        if status != 0:
            raise PlayheadError(f"{agent.name} ended with {status}", hint=f"playhead show {latest}")
        return latest

    def _latest(self) -> str:
        listed = subprocess.run(
            [*_command(), "ls", "--json"], env=self.environ, check=True, stdout=subprocess.PIPE
        )
        runs: list[dict[str, Any]] = json.loads(listed.stdout)["runs"]
        return str(runs[0]["name"])


def _command() -> list[str]:
    return [sys.executable, "-m", "playhead_receiver"]


def _short(path: Path) -> str:
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _say(text: str, *commands: str) -> None:
    print(f"\n{text}", flush=True)
    for command in commands:
        print(f"  {command}", flush=True)


def _require_sdks() -> None:
    from importlib.util import find_spec

    missing = [name for name in SDKS if find_spec(name) is None]
    if missing:
        raise UsageError(
            f"the demo's agents need {', '.join(missing)}", hint="pip install 'playhead-receiver[demo]'"
        )
