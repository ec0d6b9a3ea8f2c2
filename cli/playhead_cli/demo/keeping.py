"""Keeps the demo's provider running in the background, and the example agents in a folder."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path

from playhead_cli.demo.shell import Stage, agents_dir
from playhead_cli.running.kept_provider import FILE, KeptProvider
from playhead_core.errors import PlayheadError, UsageError


def examples_here(folder: Path) -> Path:
    """Return the folder ``examples`` in ``folder``, with the example agents in it.

    It is created if it is missing; existing agents are not changed. `UsageError` if a folder
    of that name has other content.
    """
    examples = folder / "examples"
    agents = sorted(agents_dir().glob("*.py"))
    if not examples.exists():
        examples.mkdir()
        for agent in agents:
            shutil.copy(agent, examples)
    elif not all((examples / agent.name).is_file() for agent in agents):
        raise UsageError(
            f"{examples} exists and does not belong to the demo",
            hint="run it in another folder: playhead demo --keep",
        )
    return examples


def freed_port(data_dir: Path) -> int:
    """Return a port for a kept provider: that of the previous one, which is ended, else a free one.

    Forks of runs that were recorded with the previous one find the new one there.
    """
    before = KeptProvider.read(data_dir)
    stop(data_dir)
    for port in (before.port if before is not None else 0, 0):
        try:
            with socket.create_server(("127.0.0.1", port)) as listener:
                return int(listener.getsockname()[1])
        except OSError:
            continue  # another program has that port now
    raise PlayheadError("no port is free on 127.0.0.1")


def keep(data_dir: Path, stage: Stage) -> KeptProvider:
    """Start a provider that stays, and that programs in the folder of the agents find.

    `PlayheadError` if it cannot be started.
    """
    words = [sys.executable, "-m", "playhead_cli.demo", str(stage.port)]
    words += ["--keep", str(data_dir), os.path.realpath(stage.agents)]
    with subprocess.Popen(
        words,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        text=True,
    ) as child:
        assert child.stdout is not None
        said = child.stdout.readline().strip()
        kept = KeptProvider.read(data_dir)
        if said != "listening" or kept is None:
            raise PlayheadError("the demo's provider cannot be started", cause=said)
        child.returncode = 0  # it runs on its own; this process does not wait for it
    return kept


def stop(data_dir: Path) -> bool:
    """End the kept provider, or remove the file of a dead one. Return whether one was running."""
    kept = KeptProvider.read(data_dir)
    runs = kept is not None and kept.answers()
    if kept is not None and runs:
        kept.stop()
    else:
        (data_dir / FILE).unlink(missing_ok=True)
    return runs
