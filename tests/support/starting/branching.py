"""Runs that are killed, resumed and forked, with the command line in processes of its own."""

from __future__ import annotations

import subprocess
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from support.starting import warm
from support.starting.running import agent_environment

from playhead_receiver.storage import open_store
from playhead_replay import Run

PATIENCE_S = 120


def playhead(*words: str, environ: Mapping[str, str], cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run ``playhead`` without a terminal."""
    return warm.playhead(*words, environ=environ, cwd=cwd, timeout_s=PATIENCE_S)


def environment(folder: Path, provider: str, **more: str) -> dict[str, str]:
    """Environment of an agent and a command line that share a home, a spool and a data folder."""
    home = folder / "home"
    home.mkdir(exist_ok=True)
    return agent_environment(
        "http://127.0.0.1:9",
        folder / "spool",
        provider,
        HOME=str(home),
        PYTHONHASHSEED="0",
        PLAYHEAD_DATA_DIR=str(folder / "data"),
        **more,
    )


@contextmanager
def stored(folder: Path, *names: str) -> Generator[list[Run]]:
    """Runs in the data folder of `environment`."""
    store = open_store(folder / "data", read_only=True)
    try:
        yield [Run.load(store, name) for name in names]
    finally:
        store.close()
