"""A service recorded by `playhead record` under a real server."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

import httpx
from support.starting.home import PATIENCE_S, Home
from support.starting.inner_pytest import run_pytest
from support.starting.running import AGENTS

from playhead_cli.demo.provider import Provider

T = TypeVar("T")

LISTENS = re.compile(r"http://127\.0\.0\.1:(\d+)")


class RecordedService:
    """A running service.

    ``words``: the command that `playhead record` runs; it prints where it listens. ``ends``: by what.
    """

    def __init__(self, home: Home, *words: str, ends: signal.Signals = signal.SIGINT) -> None:
        self._home = home
        self._ends = ends
        self._process = home.start("record", *words)
        self._listens = threading.Event()
        self.said: list[str] = []
        self._reading = threading.Thread(target=self._read, daemon=True)
        self._reading.start()

    def _read(self) -> None:
        for line in self._process.stderr or ():
            self.said.append(line)
            if LISTENS.search(line):
                self._listens.set()
        self._listens.set()

    def __enter__(self) -> Self:
        assert self._listens.wait(PATIENCE_S)
        found = LISTENS.search("".join(self.said))
        assert found, "".join(self.said)
        self.url = found[0]
        self.client = httpx.Client(base_url=self.url, timeout=PATIENCE_S)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.stop()

    def stop(self, by: signal.Signals | None = None) -> None:
        """End the service, and wait until all its data is stored."""
        if self._process.poll() is None:
            self._process.send_signal(by or self._ends)
        try:
            self._process.communicate(timeout=PATIENCE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            raise


def home_with(folder: Path, provider: Provider, program: str) -> Home:
    (folder / "work").mkdir(parents=True)
    shutil.copy(AGENTS / program, folder / "work" / program)
    home = Home(folder, provider.environment)
    home.folder = folder / "work"
    return home


def under_pytest(home: Home, *paths: str) -> subprocess.CompletedProcess[str]:
    """Run tests in the folder of a home, by default all, without the service and the provider."""
    return run_pytest("-q", *(paths or "."), cwd=home.folder, environ=home.bare)


def identical(home: Home, name: str, *words: str) -> dict[str, Any]:
    """The report of a replay; fails if it differs from the recording."""
    status, report = home.report(name, *words)
    assert report["divergences"] == [], report["divergences"]
    assert (status, report["verdict"]) == (0, "identical")
    assert report["fidelity"]["exact"] == report["asked"]
    assert report["outputs"]["inbound response"]["identical"] is True
    return report


def at_once(asks: Sequence[Callable[[], T]]) -> list[T]:
    """Start all of ``asks`` at the same time, each in a thread. Returns their results."""
    start = threading.Barrier(len(asks))

    def ask(one: Callable[[], T]) -> T:
        start.wait(PATIENCE_S)
        return one()

    with ThreadPoolExecutor(len(asks)) as pool:
        return list(pool.map(ask, asks))


def outputs(report: dict[str, Any]) -> dict[str, bool]:
    """For each output of a report, whether it is identical."""
    return {name: check["identical"] for name, check in report["outputs"].items()}
