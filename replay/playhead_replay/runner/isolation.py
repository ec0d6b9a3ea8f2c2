"""Runs a child process without network and write access to files, as far as the kernel allows."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

PROBE_TIMEOUT_S = 60.0
"""Ends a probe that hangs: a busy machine is no machine without namespaces."""

PROGRAM = Path(__file__).with_name("isolated")
"""The folder of the program that isolates itself and becomes the command."""


@dataclass(frozen=True, slots=True)
class Withheld:
    """What the kernel is asked to withhold from a process."""

    network: bool
    files: bool
    """Changes of files outside its scratch folder, and access to other processes."""


def isolated(scratch: Path, said: Path, *, network: bool, files: bool, wait_s: float = 0.0) -> list[str]:
    """Words to put before a command; empty on systems other than Linux.

    The command dies with this process. ``network``: the command has no network. ``files``: the command
    can change no file outside ``scratch`` and reaches no other process; processes that it starts may
    outlive it for ``wait_s`` seconds. `enforced` later reads from ``said`` what the kernel could
    enforce.
    """
    if sys.platform != "linux":
        return []
    asked = options(scratch, said, parent=os.getpid(), network=network, files=files)
    asked += ["--wait", str(wait_s)]
    return [sys.executable, "-I", "-S", str(PROGRAM), *asked, "--"]


def options(scratch: Path, said: Path, *, parent: int, network: bool, files: bool) -> list[str]:
    """The options for an existing process (`isolated.entering.enter`), which dies with ``parent``."""
    if sys.platform != "linux":
        return []
    words = ["--parent", str(parent), "--said", str(said)]
    words += ["--network", "none"] if network else []
    return [*words, *(["--scratch", str(scratch)] if files else [])]


def enforced(said: Path) -> frozenset[str]:
    """What the kernel enforces: ``network``, ``files``, ``processes``."""
    try:
        return frozenset(said.read_text("utf-8").split())
    except OSError:
        return frozenset()


@functools.cache
def enforceable() -> frozenset[str]:
    """What the kernel would enforce on this machine."""
    with tempfile.TemporaryDirectory(prefix="playhead-probe-") as folder:
        scratch, said = Path(folder), Path(folder, "said")
        try:
            subprocess.run(
                [
                    *isolated(scratch, said, network=True, files=True),
                    sys.executable,
                    "-I",
                    "-S",
                    "-c",
                    "",
                ],
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                timeout=PROBE_TIMEOUT_S,
            )
        except (OSError, subprocess.TimeoutExpired):
            return frozenset()
        return enforced(said)
